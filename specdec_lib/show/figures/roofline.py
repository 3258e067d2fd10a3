"""The roofline: how many operations per second a machine can do at each number of operations per
byte.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import open_chart
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.labels import Box, place_words, with_prefix
from specdec_lib.show.figures.marks import check, check_among, marks
from specdec_lib.show.figures.theme import INK, SOURCES, Look, escape

KINDS = {"paper": Look(INK, symbol="diamond-open"), "ours": Look(SOURCES["draft"])}
PLOT = (640.0, 350.0)  # pixels, about
QUIET = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
Span = tuple[float, float]


def roofline(
    table: pd.DataFrame, *, bytes_per_second: float, flops_per_second: float, name: str
) -> go.Figure:
    """Points under a machine's bandwidth line and compute roof, each with its share of the lower of
    the two at its place.

    table                               `point` (its name), `intensity` (FLOP/byte),
                                        `flops_per_second`, `kind` ("paper", "ours")
    bytes_per_second, flops_per_second  the most that the machine moves and computes
    name                                the machine's
    Source: Williams, Waterman and Patterson 2009.
    """
    check(table, "", "point intensity flops_per_second kind")
    bandwidth, roof = float(bytes_per_second), float(flops_per_second)
    slowest, least = float(table["flops_per_second"].min()), float(table["intensity"].min())
    if not min(bandwidth, roof, slowest, least) > 0:
        raise ValueError(
            "bytes and FLOP per second, of machine and points, and intensities are above 0, got"
            f" down to {min(bandwidth, roof, slowest, least)}"
        )
    check_among("a point's kind", table["kind"], tuple(KINDS))
    ridge = roof / bandwidth
    xs = 0.4 * min(ridge, least), 20 * max(ridge, float(table["intensity"].max()))
    most = max(roof, float(table["flops_per_second"].max()))
    ys = 0.4 * min(bandwidth * xs[0], slowest), 2.5 * most
    names = "operations per byte, in FLOP/byte", "operations per second, in FLOP/s"
    chart = open_chart(size=(760, 416), x=names[0], y=names[1])
    add_dots(chart, marks(table, "intensity", "flops_per_second", series="kind"), KINDS, size=11)
    _draw_roof(chart.figure, bandwidth, roof, xs, ys)
    _name_points(chart.figure, table, bandwidth, roof, xs, ys)
    chart.figure.update_xaxes(_decades(xs)).update_yaxes(_decades(ys))
    return chart.titled(f"{name}: how far below the machine's roof")


def share_of_roof(table: pd.DataFrame, bandwidth: float, roof: float) -> pd.Series:
    """Each point's operations per second, as a share of what the machine allows at its place."""
    allowed = (bandwidth * table["intensity"]).clip(upper=roof)
    return table["flops_per_second"] / allowed


def _name_points(
    figure: go.Figure, table: pd.DataFrame, bandwidth: float, roof: float, xs: Span, ys: Span
) -> None:
    """Name and share of each point, beside it where they cover nothing."""
    dots, texts = [], []
    for row, share in zip(table.itertuples(), share_of_roof(table, bandwidth, roof), strict=True):
        limit = "bandwidth line" if bandwidth * row.intensity < roof else "compute roof"
        digits = 0 if share >= 0.01 else 2
        texts.append(f"{escape(row.point)}<br>{100 * share:.{digits}f} % of the {limit}")
        dots.append(_pixels(row.intensity, row.flops_per_second, xs, ys))
    figure.add_scatter(
        x=list(table["intensity"]),
        y=list(table["flops_per_second"]),
        mode="markers+text",
        marker={"opacity": 0, "size": 14},
        text=texts,
        textposition=place_words(dots, texts, size=PLOT, obstacles=_line(bandwidth, roof, xs, ys)),
        textfont={"size": 12},
        cliponaxis=False,
        showlegend=False,
        hoverinfo="skip",
    )


def _decades(ends: Span) -> dict[str, object]:
    """An axis on which each factor of 10 is one step, with a tick each."""
    low, high = (math.log10(end) for end in ends)
    ticks = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    words = [with_prefix(tick, "").strip() for tick in ticks]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": words}


def _pixels(x: float, y: float, xs: Span, ys: Span) -> Span:
    """From the lower left corner of the plot."""
    right = PLOT[0] * math.log(x / xs[0]) / math.log(xs[1] / xs[0])
    return right, PLOT[1] * math.log(y / ys[0]) / math.log(ys[1] / ys[0])


def _line(bandwidth: float, roof: float, xs: Span, ys: Span) -> list[Box]:
    """The roof as small boxes that words keep off, and the ridge with its own words."""
    boxes = []
    for step in range(121):
        at = xs[0] * (xs[1] / xs[0]) ** (step / 120)
        x, y = _pixels(at, min(bandwidth * at, roof), xs, ys)
        boxes.append((x - 4, y - 4, x + 4, y + 4))
    ridge = _pixels(roof / bandwidth, ys[0], xs, ys)[0]
    return [*boxes, (ridge - 2, 0.0, ridge + 2, PLOT[1]), (ridge, 0.0, ridge + 130, 16.0)]


def _draw_roof(figure: go.Figure, bandwidth: float, roof: float, xs: Span, ys: Span) -> None:
    """The slope, the roof and the ridge between them, with words at each."""
    ridge, heights = roof / bandwidth, [bandwidth * xs[0], roof, roof]
    solid, dotted = {"color": INK, "width": 2.5}, {"color": INK, "dash": "dot", "width": 1.2}
    figure.add_scatter(x=[xs[0], ridge, xs[1]], y=heights, line=solid, **QUIET)
    figure.add_scatter(x=[ridge, ridge], y=[ys[0], roof], line=dotted, **QUIET)
    (left, low), (right, high) = _pixels(xs[0], heights[0], xs, ys), _pixels(ridge, roof, xs, ys)
    angle = math.atan2(high - low, right - left)
    middle = math.log10(xs[0] * ridge) / 2
    slope = {"textangle": -math.degrees(angle)}
    slope |= {"xshift": -13 * math.sin(angle), "yshift": 13 * math.cos(angle)}
    left, right = ({"xanchor": side, "yanchor": "bottom"} for side in ("left", "right"))
    for x, y, text, look in (
        (middle, math.log10(bandwidth) + middle, with_prefix(bandwidth, "B/s"), slope),
        (math.log10(xs[1]), math.log10(roof), with_prefix(roof, "FLOP/s"), right),
        (math.log10(ridge), math.log10(ys[0]), f"ridge {ridge:.3g} FLOP/byte", left),
    ):
        figure.add_annotation(x=x, y=y, text=text, showarrow=False, font={"size": 12}, **look)
