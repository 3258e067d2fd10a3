"""How figures look and read: one template for screens, one for paper, one colour per meaning, and
words that plotly shows as they stand.

The colours are those of Okabe and Ito 2008, with a grey in place of their black; kinds of text and
methods have their own. A target in float32 is a blue circle, in int8 an amber square, in every
figure; a mark of embedded prompts is filled, of published prompts hollow.
"""

import html
import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import cycle

import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

INK = "#7A7A7A"  # equally far from white and from black paper
DARK = "#1a1a1a"  # text on a tint
WHISKER = "#5A5A5A"  # of a bar: seen on its tint, on white and on black paper
MONOSPACE = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"
PROPORTIONAL = "Open Sans, Helvetica Neue, Helvetica, Arial, sans-serif"

SOURCES = {"target": "#D55E00", "draft": "#0072B2", "middle": "#56B4E9", "n-gram": "#009E73"}
SOURCES |= {"prompt": "#E69F00", "generation": "#F0E442", "bigram": "#CC79A7", "context": "#999999"}
# slower and faster than plain decoding
LOSS = SOURCES["target"]
GAIN = SOURCES["draft"]
MODEL_NAMES = {"draft": "one-layer draft"}  # of a model, where "draft" might be read as a role
MEANINGS = SOURCES | {called: SOURCES[name] for name, called in MODEL_NAMES.items()}
MEANINGS |= {"Max-Gram": SOURCES["n-gram"], "ours": SOURCES["draft"], "paper": INK}
MEANINGS |= {"reading": SOURCES["bigram"]}
MEANINGS |= {"copy": SOURCES["prompt"], "reviewed copy": SOURCES["generation"]}
# of the target's edition; published prompts have a symbol of their own, not a colour
MEANINGS |= {"float32": "#0072B2", "int8": "#E69F00", "published": "#0072B2"}
MEANINGS |= {"chat": "#AA4499", "code": "#6677CC", "summary": "#999933", "math": "#CC6677"}
# of a setting, by the words before its numbers: "tree of 8"
METHODS = {"chain": "#8A6D3B", "tree": "#2F8F8F", "staged": "#6A4FB3", "cascade": "#B8325C"}
METHODS |= {"staged tree": METHODS["staged"], "speculative, tuned": METHODS["chain"]}
METHODS["staged, copies (tuned)"] = "#9B7BD4"
STRANGERS = (
    *(SOURCES[name] for name in ("draft", "target", "n-gram", "bigram", "prompt", "middle")),
    *("#7A5C2E", "#5B4B8A", "#3F6B6B", "#8C4A5A"),
)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "x", "star")
FORMS = {  # symbols of words with a meaning
    **{"chat": "circle", "code": "square", "summary": "diamond", "math": "triangle-up"},
    **{"target": "star", "middle": "square", "draft": "circle", "one-layer draft": "circle"},
    **{"reading": "diamond", "n-gram": "triangle-up", "Max-Gram": "cross"},
    **{"chain": "square", "tree": "circle", "staged": "diamond", "cascade": "triangle-up"},
    **{"staged tree": "diamond"},
    **{"published": "circle-open", "float32": "circle", "int8": "square"},
}
HATCHES = ("", "/", ".", "x", "-", "+", "\\")
SMALL = 8  # pixels: an open symbol of this size or less has a thinner rim
PREFIXES = {1e15: "P", 1e12: "T", 1e9: "G", 1e6: "M", 1e3: "k"}


@dataclass(frozen=True)
class Look:
    """How one series is drawn: it differs from the others by more than its colour.

    full    whether a bar has the colour itself and not its tint
    """

    colour: str
    dash: str = "solid"
    symbol: str = "circle"
    hatch: str = ""
    full: bool = False

    def found(self, way: str) -> "Look":
        """The look of "predicted" numbers, hollow or hatched, or of others, neither."""
        hollow = self.symbol.removesuffix("-open") + "-open"
        predicted = replace(self, hatch="/", symbol=hollow, full=False)
        return predicted if way == "predicted" else replace(self, hatch="")

    def marker(self, size: float) -> dict[str, object]:
        """A dot of `size` pixels with a white rim; an open symbol has a rim of its colour."""
        is_open = self.symbol.endswith("-open")
        rim = {"color": "#FFFFFF", "width": 1}
        if is_open:
            rim = {"color": self.colour, "width": 2 if size > SMALL else 1.4}
        return {"color": self.colour, "symbol": self.symbol, "size": size, "line": rim}

    def bar(self) -> dict[str, object]:
        """A bar in the colour itself or its tint, hatched in the other of the two."""
        fill = tint(self.colour)
        ink = self.colour
        if self.full:
            fill, ink = ink, fill
        hatch = {"shape": self.hatch, "fgcolor": ink, "bgcolor": fill, "size": 6, "solidity": 0.25}
        return {"color": fill, "line": {"color": self.colour, "width": 1.3}, "pattern": hatch}


OPEN = ("diamond-open", "square-open", "circle-open", "triangle-up-open")
PAPERS = tuple(Look(INK, symbol=symbol, hatch="/") for symbol in OPEN)  # a look per data set
EDITIONS = {
    "float32": Look(MEANINGS["float32"]),
    "int8": Look(MEANINGS["int8"], symbol="square", full=True),
}
NO_EDITION = Look("#4D4D4D", symbol="diamond")  # of what is counted for no edition
FAMILIES = ("embedded prompts", "published prompts")


def family_looks(editions: Mapping[str, Look]) -> dict[str, Look]:
    """A look per edition and family of prompts, named "float32, embedded prompts": the edition's,
    filled for embedded prompts and hollow for published ones.
    """
    filled, hollow = FAMILIES
    found = {}
    for edition, look in editions.items():
        found[f"{edition}, {filled}"] = look
        found[f"{edition}, {hollow}"] = replace(look, symbol=f"{look.symbol}-open")
    return found


def looks(names: Iterable[object]) -> dict[str, Look]:
    """A look per name: words with a meaning keep their colour, and their symbol unless an earlier
    word of the figure has it; others share what is left.
    """
    words = names_of(names)
    known = {}
    forms = {}
    for word in words:
        method = re.split(r" (?=of \d|\d)", word, maxsplit=1)[0]
        colour = MEANINGS.get(word) or METHODS.get(method)
        if colour:
            known[word] = colour
        form = FORMS.get(word) or FORMS.get(method)
        if form and form not in forms.values():
            forms[word] = form
    free = cycle(colour for colour in STRANGERS if colour not in known.values())
    left = cycle([form for form in SYMBOLS if form not in forms.values()] or SYMBOLS)
    ways = zip(words, cycle(DASHES), cycle(HATCHES), strict=False)
    return {
        word: Look(known.get(word) or next(free), dash, forms.get(word) or next(left), hatch)
        for word, dash, hatch in ways
    }


def names_of(column: Iterable[object]) -> list[str]:
    """The values as text, each once, in order of first appearance."""
    return list(dict.fromkeys(map(str, column)))


def tint(colour: str) -> str:
    """The colour mixed with white, pale enough for dark text on it."""
    return "#" + "".join(f"{round(255 - 0.32 * (255 - part)):02X}" for part in hex_to_rgb(colour))


def short(value: float, *, signed: bool = False) -> str:
    """A number in about three digits, as it stands beside a dot; NaN becomes the empty text."""
    if math.isnan(value):
        return ""
    size = abs(value)
    digits = ".2g" if 0 < size < 0.1 else ".2f"
    digits = ".0f" if size >= 100 else ".1f" if size >= 10 or signed else digits
    return f"{value:{'+' * signed},{digits}}".replace("-", "−")


def with_prefix(value: float, unit: str = "") -> str:
    """A quantity in three digits with an SI prefix: "3.35 TB/s"."""
    factor = next((factor for factor in PREFIXES if value >= factor), 1)
    return f"{value / factor:.3g} {PREFIXES.get(factor, '')}{unit}".strip()


def wrap(text: object, longest: int) -> str:
    """Text that plotly shows as it stands, broken at spaces into lines of `longest` characters."""
    return "<br>".join(map(escape, textwrap.wrap(str(text), longest, break_long_words=False)))


def escape(text: object) -> str:
    """Text that plotly shows as it stands, be it code, markup or a dollar sign."""
    return html.escape(str(text), quote=False).replace("$", "&#36;")


def visible(text: str, longest: int = 10_000) -> str:
    """Text with its white space made visible, cut to `longest` characters."""
    signs = {" ": "␣", "\n": "⏎", "\t": "⇥"}
    shown = "".join(signs.get(mark, mark if mark.isprintable() else "·") for mark in text)
    return (shown if len(shown) <= longest else shown[: longest - 1] + "…") or "∅"


def _template(paper: str, ink: str, grid: str) -> go.layout.Template:
    axis = {"gridcolor": grid, "linecolor": ink, "zeroline": False, "automargin": True}
    axis |= {"title": {"standoff": 12, "font": {"size": 13}}}
    title = {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 16}}
    title |= {"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 16}}
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"}
    layout = {"paper_bgcolor": paper, "plot_bgcolor": paper, "xaxis": axis, "yaxis": axis}
    layout |= {"title": title, "legend": legend | {"traceorder": "normal"}}
    layout |= {"font": {"family": PROPORTIONAL, "size": 13, "color": ink}}
    layout |= {"hoverlabel": {"font": {"family": MONOSPACE, "size": 12}}}
    layout |= {"margin": {"l": 24, "r": 24, "t": 76, "b": 24}}
    bar = {"remove": ["select", "lasso"], "bgcolor": "rgba(0,0,0,0)", "color": ink}
    return go.layout.Template(layout=layout | {"modebar": bar})


SCREEN = _template(paper="rgba(0,0,0,0)", ink=INK, grid="rgba(128,128,128,0.25)")
PAPER = _template(paper="#FFFFFF", ink="#222222", grid="#E3E3E3")
