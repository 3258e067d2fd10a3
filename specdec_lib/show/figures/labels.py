"""Words in figures: short numbers, broken lines, text that plotly shows as it stands."""

import html
import textwrap

PREFIXES = {1e15: "P", 1e12: "T", 1e9: "G", 1e6: "M", 1e3: "k"}


def short(value: float, *, signed: bool = False) -> str:
    """A number in about three digits, as it stands beside a dot; NaN becomes the empty text."""
    number = float(value)
    if number != number:
        return ""
    size, sign = abs(number), "+" if signed else ""
    digits = ".0f" if size >= 100 else ".1f" if size >= 10 or signed else ".2f"
    if 0 < size < 0.1 and not signed:
        digits = ".2g"
    return f"{number:{sign},{digits}}".replace("-", "−")


def with_prefix(value: float, unit: str) -> str:
    """A quantity in three digits with an SI prefix: "3.35 TB/s"."""
    factor = next((factor for factor in PREFIXES if value >= factor), 1)
    return f"{value / factor:.3g} {PREFIXES.get(factor, '')}{unit}"


def wrap(text: object, longest: int) -> str:
    """Text that plotly shows as it stands, broken at spaces into lines of `longest` characters."""
    lines = textwrap.wrap(str(text), longest, break_long_words=False)
    return "<br>".join(map(escape, lines)) or escape(text)


def escape(text: object) -> str:
    """Text that plotly shows as it stands, be it code, markup or a dollar sign."""
    return html.escape(str(text), quote=False).replace("$", "&#36;")


def visible(text: str, longest: int = 10_000) -> str:
    """Text with its white space made visible, cut to `longest` characters."""
    signs = {" ": "␣", "\n": "⏎", "\t": "⇥"}
    shown = "".join(signs.get(mark, mark if mark.isprintable() else "·") for mark in text)
    return (shown if len(shown) <= longest else shown[: longest - 1] + "…") or "∅"
