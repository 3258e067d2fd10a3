"""The roofline: how many operations per second a machine can do at each number of operations per
byte.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import MEASURED, PREDICTED, add_dots
from specdec_lib.show.figures.marks import check, check_among, marks
from specdec_lib.show.figures.theme import INK, SOURCES, Look, escape, with_prefix

KINDS = {"paper": Look(INK, symbol="diamond-open"), "ours": Look(SOURCES["draft"])}


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
    numbers = table[["flops_per_second", "intensity"]]
    (slowest, least), (fastest, most) = numbers.min(), numbers.max()
    if not min(bandwidth, roof, slowest, least) > 0:
        raise ValueError(
            "bytes and FLOP per second, of machine and points, and intensities are above 0, got"
            f" down to {min(bandwidth, roof, slowest, least)}"
        )
    check_among("a point's kind", table["kind"], KINDS)
    ridge = roof / bandwidth
    xs = 0.4 * min(ridge, least), 20 * max(ridge, most)
    ys = 0.4 * min(bandwidth * xs[0], slowest), 2.5 * max(roof, fastest)
    names = "operations per byte, in FLOP/byte", "operations per second, in FLOP/s"
    chart = Chart(high=416, x=names[0], y=names[1])
    _draw_roof(chart.figure, bandwidth, roof, xs, ys[0])
    texts = []
    for row, share in zip(table.itertuples(), share_of_roof(table, bandwidth, roof), strict=True):
        limit = "bandwidth line" if row.intensity < ridge else "compute roof"
        digits = 0 if share >= 0.01 else 2
        texts.append(f"{escape(row.point)}, {100 * share:.{digits}f} % of the {limit}")
    rows = marks(table, "intensity", "flops_per_second", series="kind").assign(text=texts)
    for kind, way in ("paper", MEASURED), ("ours", PREDICTED):
        add_dots(chart, rows[rows["series"] == kind], {kind: KINDS[kind]}, size=11, by=way)
    chart.figure.update_traces(textposition="bottom right", selector={"mode": "markers+text"})
    for axis, ends in (("x", xs), ("y", ys)):
        low, high = map(math.log10, ends)
        ticks = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
        words = [with_prefix(tick, "").strip() for tick in ticks]
        chart.axis(axis, type="log", range=[low, high], tickvals=ticks, ticktext=words)
    return chart.titled(f"{name}: how far below the machine's roof, measured and predicted")


def share_of_roof(table: pd.DataFrame, bandwidth: float, roof: float) -> pd.Series:
    """Each point's operations per second, as a share of what the machine allows at its place."""
    allowed = (bandwidth * table["intensity"]).clip(upper=roof)
    return table["flops_per_second"] / allowed


def _draw_roof(
    figure: go.Figure, bandwidth: float, roof: float, xs: tuple[float, float], bottom: float
) -> None:
    """The slope, the roof and the ridge between them, with words at each."""
    ridge = roof / bandwidth
    quiet = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
    solid, dotted = {"color": INK, "width": 2.5}, {"color": INK, "dash": "dot", "width": 1.2}
    heights = [bandwidth * xs[0], roof, roof]
    figure.add_scatter(x=[xs[0], ridge, xs[1]], y=heights, line=solid, **quiet)
    figure.add_scatter(x=[ridge, ridge], y=[bottom, roof], line=dotted, **quiet)
    middle = math.sqrt(xs[0] * ridge)
    for x, y, text, side in (
        (middle, bandwidth * middle, f"{with_prefix(bandwidth, 'B/s')} ", "right"),
        (xs[1], roof, with_prefix(roof, "FLOP/s"), "right"),
        (ridge, bottom, f"ridge {ridge:.3g} FLOP/byte", "left"),
    ):
        place = {"x": math.log10(x), "y": math.log10(y), "xanchor": side, "yanchor": "bottom"}
        figure.add_annotation(text=text, showarrow=False, font={"size": 12}, **place)
