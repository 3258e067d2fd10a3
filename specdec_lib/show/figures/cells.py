"""Charts over two quantities: cells with numbers in them, the map of break-even, the roofline."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import TWO_SIDED, add_cells, add_dots
from specdec_lib.show.figures.marks import check, marks, names_of
from specdec_lib.show.figures.theme import DARK, GAIN, INK, LOSS, Look, escape, tint, wrap

OPAQUE = "rgba(255,255,255,0.94)"  # behind a name on the map, that no line runs through it
HIGHEST = 0.5  # draft cost of the map, unless a mark stands higher
PAIR, HERE = "our pairs, rates counted and costs measured", "here"
KINDS = {"paper": Look(INK, symbol="diamond-open"), "ours": Look(GAIN)}  # of a roofline's points
MAP_LOOKS = {PAIR: Look(DARK, symbol="diamond"), HERE: Look("#E69F00", symbol="star")}


def match_rates(table: pd.DataFrame) -> go.Figure:
    """P(match | rank, gap), `rate`, as cells with the numbers in them, over the bins, `gap`, in
    their order, and the `rank` from 0; a missing cell stays empty.
    """
    check(table, "gap rank", "rate")
    grid = table.pivot(index="rank", columns="gap", values="rate")[names_of(table["gap"])]
    grid.index = [f"rank {rank}" for rank in grid.index]
    x = "gap to the best guess in nats; for rank 0, its lead over the second"
    chart = Chart(high=86 + 38 * len(grid), x=x, y="rank of the guess")
    add_cells(chart, grid, name="rate", ends=(0, 1))
    chart.axis("y", autorange="reversed")
    return chart.titled("How often a guess matches the target, by its rank and gap")


def surface(
    table: pd.DataFrame, *, best: Sequence[int], across: str, down: str, prompts: int = 0
) -> go.Figure:
    """`swi` over two entries of the K matrix, `k1` and `k2`, a cell per pair; a frame marks the
    optimum.

    best            the optimum's k1 and k2; ValueError if it is no cell with a value
    across, down    what k1 and k2 count, for the axes
    prompts         that it is counted on, for the headline; 0 where it does not say
    """
    check(table, "k1 k2", "swi")
    values = table.set_index(["k1", "k2"])["swi"].astype(float)
    if np.isnan(value := values.get(tuple(best), np.nan)):
        raise ValueError(f"the optimum is a cell with a value, got k1 and k2 {tuple(best)}")
    grid = values.unstack("k1")
    wide, high = 70 + 42 * max(8, grid.shape[1]), 106 + 30 * max(5, grid.shape[0])
    chart = Chart(wide=min(780, wide), high=high, x=across, y=down)
    add_cells(chart, grid, name="SWI", framed=best)
    count = f" ({prompts} prompts)" if prompts else ""
    return chart.titled(f"Counted SWI over K{count}: {value:.2f} in the frame, at {tuple(best)}")


def speed_surface(table: pd.DataFrame, *, about: str = "") -> go.Figure:
    """Predicted `speed_up` over `budget`, in nodes without the root, and `depth`, the deepest guess
    allowed, a panel per `width`, children per node at most; a frame marks the best. A cell whose
    tree has no room for its budget is blank.

    about    what it is predicted from, for the headline
    """
    check(table, "budget depth width", "speed_up")
    sizes = zip(table["width"], table["depth"], strict=True)
    room = [sum(width**level for level in range(1, depth + 1)) for width, depth in sizes]
    table = table.assign(speed_up=table["speed_up"].where(table["budget"] <= room))
    panels = {one: f"width ≤ {one}" if one > 1 else "width 1" for one in sorted({*table["width"]})}
    high = 94 + 34 * table["budget"].nunique()
    look = {"wide": 260, "high": high, "columns": len(panels), "gap": 0.03}
    chart = Chart(panels.values(), **look, x="deepest guess", y="budget, in nodes")
    most = float((table["speed_up"] - 1).abs().max()) or 1.0
    look = {"name": "predicted speed-up", "ends": (1 - most, 1 + most), "shades": TWO_SIDED}
    best = table.loc[table["speed_up"].idxmax()]
    for width, own in table.groupby("width"):
        grid = own.pivot(index="budget", columns="depth", values="speed_up")
        framed = (best["depth"], best["budget"]) if width == best["width"] else ()
        add_cells(chart, grid, panel=panels[width], framed=framed, **look)
    chart.counted(table)
    return chart.titled(
        f"Predicted speed-up over plain decoding{about and f', {about}'}: {best['speed_up']:.2f} in"
        f" the frame, budget {best['budget']:g}, depth {best['depth']:g}, width {best['width']:g};"
        " blank: no room for the budget"
    )


def break_even(
    table: pd.DataFrame, points: pd.DataFrame, *, title: str, here: Sequence[float] = ()
) -> go.Figure:
    """Predicted `speed_up` over `acceptance_rate` and what a draft pass costs, `cost`, in target
    passes, as levels every quarter; the thick line, at 1, is where speculation stops paying.

    points    our pairs on the map: `pair` (its name), `acceptance_rate`, perhaps with an interval
              `low` to `high`, and `cost`
    here      an acceptance rate and a cost that a star marks
    """
    check(table, (axes := "acceptance_rate cost"), "speed_up")
    check(points, "", f"pair {axes}")
    grid = table.pivot(index="cost", columns="acceptance_rate", values="speed_up").astype(float)
    x, y = "acceptance rate of a guess", "seconds of a draft pass ÷ of a target pass"
    chart, most = Chart(high=464, x=x, y=y), max(1.25, float(np.nanmax(grid.to_numpy())))
    place = {"x": list(grid.columns), "y": list(grid.index), "z": grid.to_numpy(np.float32)}
    levels, thin = {"start": 1.0, "end": most, "size": 0.25}, {"width": 0.7, "color": INK}
    look = {"zmin": 1.0, "zmax": most, "line": {"width": 0}, "contours": levels}
    look["colorscale"] = [[0, tint(LOSS)], [0.001, "#F4F9FC"], [1, GAIN]]
    ticks = list(range(1, int(most) + 1))
    look["colorbar"] = {"title": {"text": "predicted speed-up", "side": "top"}, "thickness": 14}
    look["colorbar"]["tickvals"] = ticks
    said = "rate %{x:.2f}, cost %{y:.2f}: %{z:.2f} times as fast<extra></extra>"
    chart.add(go.Contour(**place, **look, hovertemplate=said))
    quiet, font = {"showscale": False, "hoverinfo": "skip"}, {"size": 11, "color": DARK}
    levels |= {"start": 1.25, "coloring": "none", "showlabels": True, "labelfont": font}
    chart.add(go.Contour(**place, **quiet, contours=levels, line=thin, showlegend=False))
    even = {"type": "constraint", "operation": "=", "value": 1.0, "showlabels": False}
    look = {"line": {"width": 3.5, "color": LOSS}, "name": "break-even, predicted"}
    chart.add(go.Contour(**place, **quiet, contours=even, **look))
    ends = "low acceptance_rate high" if "low" in points else ""
    dots = marks(points, "acceptance_rate", "cost", ends=ends, note="{pair}").assign(series=PAIR)
    add_dots(chart, dots, MAP_LOOKS, lying=True, size=11)
    if here:
        star = pd.DataFrame([here], columns=["x", "y"]).assign(series=HERE, panel="")
        add_dots(chart, star, MAP_LOOKS, size=19)
    look = {"showarrow": False, "font": {"size": 12, "color": DARK}, "bgcolor": OPAQUE}
    cheap = dots[dots["y"] == dots["y"].min()]["x"]  # side by side: the left one's name is below
    for spot in dots.itertuples():
        below = spot.y == dots["y"].min() and spot.x < cheap.max()
        side = ("top", -8) if below else ("bottom", 8)
        text = wrap(spot.pair, 24).replace(", ", ",<br>")
        chart.figure.add_annotation(
            x=spot.x, y=spot.y, text=text, yanchor=side[0], yshift=side[1], borderpad=1, **look
        )
    chart.axis("x", range=[grid.columns.min(), grid.columns.max()], showgrid=False)
    highest = max(HIGHEST, *dots["y"], *here[1:])
    chart.axis("y", range=[grid.index.min(), min(grid.index.max(), highest)], showgrid=False)
    return chart.titled(title)


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
    if not min(slowest, least) > 0:
        raise ValueError(f"FLOP per second and intensities are above 0, got {min(slowest, least)}")
    ridge = roof / bandwidth
    xs = 0.4 * min(ridge, least), 20 * max(ridge, most)
    ys = 0.4 * min(bandwidth * xs[0], slowest), 2.5 * max(roof, fastest)
    if strangers := sorted({*table["kind"]} - {*KINDS}):
        raise ValueError(f"a point is of the {' or '.join(KINDS)}, got {strangers[0]!r}")
    x, y = "operations per byte, in FLOP/byte", "operations per second, in FLOP/s"
    chart = Chart(high=416, x=x, y=y)
    _draw_roof(chart.figure, bandwidth, roof, xs, ys[0])
    shares = table["flops_per_second"] / (bandwidth * table["intensity"]).clip(upper=roof)
    texts = []
    for row, share in zip(table.itertuples(), shares, strict=True):
        limit = "bandwidth line" if row.intensity < ridge else "compute roof"
        digits = 0 if share >= 0.01 else 2
        texts.append(f"{escape(row.point)}, {100 * share:.{digits}f} % of the {limit}")
    rows = marks(table, "intensity", "flops_per_second", series="kind").assign(text=texts)
    for kind, way in ("paper", "measured"), ("ours", "predicted"):
        add_dots(chart, rows[rows["series"] == kind], {kind: KINDS[kind]}, size=11, by=way)
    chart.figure.update_traces(textposition="bottom right", selector={"mode": "markers+text"})
    for axis, ends in (("x", xs), ("y", ys)):
        low, high = map(math.log10, ends)
        ticks = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
        chart.count_in_factors(axis, *ends, ticks)
        chart.axis(axis, ticktext=[theme.with_prefix(tick, "").strip() for tick in ticks])
    return chart.titled(f"{name}: how far below the machine's roof, measured and predicted")


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
        (middle, bandwidth * middle, f"{theme.with_prefix(bandwidth, 'B/s')} ", "right"),
        (xs[1], roof, theme.with_prefix(roof, "FLOP/s"), "right"),
        (ridge, bottom, f"ridge {ridge:.3g} FLOP/byte", "left"),
    ):
        place = {"x": math.log10(x), "y": math.log10(y), "xanchor": side, "yanchor": "bottom"}
        figure.add_annotation(text=text, showarrow=False, font={"size": 12}, **place)
