"""Words beside dots: where each stands so that none covers another."""

from collections.abc import Iterable, Sequence

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


def spread(values: Sequence[float], apart: float) -> list[float]:
    """The values moved as little as keeps neighbours `apart`: heights for words beside dots that
    lie close together.
    """
    order = sorted(range(len(values)), key=lambda at: values[at])
    clusters: list[list[float]] = []  # middle and count
    for at in order:
        clusters.append([values[at], 1])
        while len(clusters) > 1 and _gap(clusters[-2], clusters[-1], apart) < 0:
            upper, lower = clusters.pop(), clusters.pop()
            count = upper[1] + lower[1]
            clusters.append([(upper[0] * upper[1] + lower[0] * lower[1]) / count, count])
    places = [
        middle + apart * (number - (count - 1) / 2)
        for middle, count in clusters
        for number in range(int(count))
    ]
    moved = dict(zip(order, places, strict=True))
    return [moved[at] for at in range(len(values))]


def _gap(lower: Sequence[float], upper: Sequence[float], apart: float) -> float:
    return upper[0] - lower[0] - apart * (upper[1] + lower[1]) / 2


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
