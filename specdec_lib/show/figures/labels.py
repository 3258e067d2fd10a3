"""Words in figures: short numbers, broken lines, and where words beside dots cover nothing."""

import textwrap
from collections.abc import Iterable, Sequence

from specdec_lib.show.figures.theme import escape

CHARACTER, LINE, AWAY = (
    6.9,
    16.0,
    8.0,
)  # pixels: of a character, of a line of text, and from a dot to its words
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
    """Text that plotly shows as it stands, broken into lines of at most `longest` characters where
    it has spaces.
    """
    lines = textwrap.wrap(str(text), longest, break_long_words=False)
    return "<br>".join(map(escape, lines)) or escape(text)


def beside(
    dots: Sequence[tuple[float, float]],
    texts: Sequence[str],
    *,
    size: tuple[float, float],
    obstacles: Iterable[Box] = (),
) -> list[str]:
    """Plotly's text position per dot: the one that covers the least of the dots, the obstacles and
    the other words.

    dots     pixels from the lower left corner of the plot
    texts    lines are divided by "<br>"
    size     width and height of the plot in pixels; words beyond it count as covered

    Raises ValueError unless there is one text per dot.
    """
    if len(dots) != len(texts):
        raise ValueError(f"{len(dots)} dots need as many texts, got {len(texts)}")
    width, height = size
    far = 10 * max(size)
    edges = [
        (-far, -far, 0, far),
        (width, -far, far, far),
        (0, -far, width, 0),
        (0, height, width, far),
    ]
    hard = [*((x - 6, y - 6, x + 6, y + 6) for x, y in dots), *obstacles, *edges]
    words = [
        {name: _box(dot, text, name) for name in PLACES}
        for dot, text in zip(dots, texts, strict=True)
    ]
    covered = [
        {name: HARD * sum(_shared(box, other) for other in hard) for name, box in boxes.items()}
        for boxes in words
    ]
    chosen: dict[int, str] = {}
    for at in [*range(len(dots))] * SWEEPS:
        others = [words[other][name] for other, name in chosen.items() if other != at]
        chosen[at] = min(
            PLACES,
            key=lambda name: (
                covered[at][name] + sum(_shared(words[at][name], other) for other in others)
            ),
        )
    return [chosen[at] for at in range(len(dots))]


def _box(dot: tuple[float, float], text: str, place: str) -> Box:
    lines = text.split("<br>")
    width, height = CHARACTER * max(map(len, lines)), LINE * len(lines)
    right, up = PLACES[place]
    left = (
        dot[0] + AWAY if right > 0 else dot[0] - AWAY - width if right < 0 else dot[0] - width / 2
    )
    bottom = dot[1] + AWAY if up > 0 else dot[1] - AWAY - height if up < 0 else dot[1] - height / 2
    return left, bottom, left + width, bottom + height


def _shared(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
