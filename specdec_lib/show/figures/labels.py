"""Words in figures: short numbers, broken lines, and where words beside dots cover nothing."""

import textwrap
from collections.abc import Iterable, Sequence

from specdec_lib.show.figures.theme import escape

CHARACTER, LINE, AWAY = 6.9, 16.0, 8.0  # pixels: a character, a line, from a dot to its words
HARD = 4.0  # how much worse words on a dot or a line are than words on words, by area
SWEEPS = 4  # words placed early may move again when all are placed
PLACES = {
    "middle right": (1, 0),
    "bottom right": (1, -1),
    "top right": (1, 1),
    "middle left": (-1, 0),
    "top left": (-1, 1),
    "bottom left": (-1, -1),
    "bottom center": (0, -1),
    "top center": (0, 1),
}

Box = tuple[float, float, float, float]  # left, bottom, right, top


def short(value: float, *, signed: bool = False) -> str:
    """A number in about three digits, as it stands beside a dot; NaN becomes the empty text."""
    number = float(value)
    if number != number:
        return ""
    size, sign = abs(number), "+" if signed else ""
    digits = ".0f" if size >= 100 else ".1f" if size >= 10 or signed else ".2f"
    if size and size < 0.1 and not signed:
        digits = ".2g"
    return f"{number:{sign},{digits}}".replace("-", "−")


def with_prefix(value: float, unit: str) -> str:
    """A quantity in three digits with an SI prefix: "3.35 TB/s"."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def wrap(text: object, longest: int) -> str:
    """Text that plotly shows as it stands, broken at spaces into lines of `longest` characters."""
    lines = textwrap.wrap(str(text), longest, break_long_words=False)
    return "<br>".join(map(escape, lines)) or escape(text)


def place_words(
    dots: Sequence[tuple[float, float]],
    texts: Sequence[str],
    *,
    size: tuple[float, float],
    obstacles: Iterable[Box] = (),
) -> list[str]:
    """Plotly's text position per dot: the one that covers the least of the dots, the obstacles and
    the other words.

    dots     pixels from the lower left corner of the plot
    texts    a text per dot; lines are divided by "<br>"
    size     width and height of the plot in pixels; words beyond it count as covered
    """
    width, height = size
    far = 10 * max(size)
    sides = [(-far, -far, 0, far), (width, -far, far, far), (0, -far, width, 0)]
    sides.append((0, height, width, far))
    hard = [*((x - 6, y - 6, x + 6, y + 6) for x, y in dots), *obstacles, *sides]
    words = [
        {name: _box(dot, text, name) for name in PLACES}
        for dot, text in zip(dots, texts, strict=True)
    ]
    chosen: dict[int, str] = {}
    for at in [*range(len(dots))] * SWEEPS:
        others = [words[other][name] for other, name in chosen.items() if other != at]
        covered = {
            name: HARD * sum(_shared(box, one) for one in hard)
            + sum(_shared(box, one) for one in others)
            for name, box in words[at].items()
        }
        chosen[at] = min(covered, key=covered.__getitem__)
    return [chosen[at] for at in range(len(dots))]


def _box(dot: tuple[float, float], text: str, place: str) -> Box:
    lines = text.split("<br>")
    sizes = CHARACTER * max(map(len, lines)), LINE * len(lines)
    left, bottom = (
        at + AWAY if side > 0 else at - AWAY - size if side < 0 else at - size / 2
        for at, size, side in zip(dot, sizes, PLACES[place], strict=True)
    )
    return left, bottom, left + sizes[0], bottom + sizes[1]


def _shared(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
