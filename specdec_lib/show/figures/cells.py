"""Charts over two quantities: cells with numbers in them, the map of break-even, the roofline."""

import math
from collections.abc import Iterable, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, check, marks
from specdec_lib.show.figures.forms import TWO_SIDED, add_cells, add_dots
from specdec_lib.show.figures.theme import (
    DARK,
    GAIN,
    INK,
    LOSS,
    SYMBOLS,
    Look,
    escape,
    names_of,
    tint,
)

HIGHEST = 0.5  # draft cost of the map, unless a mark stands higher
HERE = "here"
RIDGE = 5  # times lower its line ends below the roof: words of points stand further down
RANKS = 4  # of guesses, in the match table
LOW = 20  # cells, of which the lowest does not stretch the colours
MAP_LOOKS = {HERE: Look("#E69F00", symbol="star")}


def match_rates(table: pd.DataFrame) -> go.Figure:
    """How often a guess matches the target, by its rank and its gap: a cell per bin and rank, of
    the first `RANKS`, with the number in it; a missing cell stays empty.

    table    as `tables.gap_rates` gives it: `gap` (the bin's name, in nats; columns stand in the
             table's order), `rank` (from 0) and `rate` (0 to 1; NaN stays empty)
    """
    check(table, "gap rank", "rate")
    shown = table[table["rank"] < RANKS]
    grid = shown.pivot(index="rank", columns="gap", values="rate")[names_of(table["gap"])]
    grid.index = [f"rank {rank}" for rank in grid.index]
    x = "gap to the best guess in nats; for rank 0, its lead over the second"
    chart = Chart(high=86 + 38 * len(grid), x=x, y="rank of the guess")
    add_cells(chart, grid, name="rate", ends=(0, None))
    title = "How often a guess matches the target, by its rank and gap"
    return chart.axis("y", autorange="reversed").titled(title)


def surface(
    table: pd.DataFrame,
    *,
    best: Sequence[int],
    across: str,
    down: str,
    prompts: int,
    about: str = "",
) -> go.Figure:
    """Counted SWI over two entries of the K matrix: a cell per pair with the number in it; a frame
    around one. The lowest of each `LOW` cells have the palest colour, whatever they are.

    table           a row per cell: `k1`, `k2` and `swi` (× plain decoding; NaN stays empty)
    best            the k1 and k2 of the cell that has a frame
    across, down    what k1 and k2 count, for the axes
    prompts         that it was counted on, for the headline
    about           of which texts and drafts, for the headline

    Raises ValueError if the framed cell has no value.
    """
    check(table, "k1 k2", "swi")
    framed = (table["k1"] == best[0]) & (table["k2"] == best[1]) & table["swi"].notna()
    if not framed.any():
        raise ValueError(f"the frame marks a cell with a value, got k1 and k2 {tuple(best)}")
    grid = table.pivot(index="k2", columns="k1", values="swi").astype(float)
    wide = 70 + 42 * max(8, grid.shape[1])
    high = 106 + 30 * max(5, grid.shape[0])
    chart = Chart(wide=min(780, wide), high=high, x=across, y=down)
    palest = float(np.nanquantile(grid, 1 / LOW))
    bar = f"SWI<br>palest:<br>≤ {palest:.2f}"
    add_cells(chart, grid, name="SWI", framed=best, ends=(palest, None), bar=bar)
    words = f"Counted SWI over K ({prompts} prompts{about and f', {about}'})"
    return chart.titled(f"{words}: {grid.loc[best[1], best[0]]:.2f} framed")


def speed_surface(table: pd.DataFrame, *, about: str) -> go.Figure:
    """Predicted speed-up over a tree's budget and depth: a cell per pair, a panel per width; white
    is as fast as plain decoding, blank where no tree of this width and depth has room for the
    budget; a frame around the best.

    table    a row per cell: `budget` (nodes without the root), `depth` (of the deepest guess
             allowed), `width` (children per node at most) and `speed_up` (× plain decoding's speed)
    about    what it is predicted from, for the headline
    """
    check(table, "budget depth width", "speed_up")
    sizes = zip(table["width"], table["depth"], strict=True)
    room = [sum(width**level for level in range(1, depth + 1)) for width, depth in sizes]
    table = table.assign(speed_up=table["speed_up"].where(table["budget"] <= room))
    panels = {one: f"width ≤ {one}" if one > 1 else "width 1" for one in sorted({*table["width"]})}
    high = 94 + 34 * table["budget"].nunique()
    x = "deepest guess, at most"
    look = {"wide": 260, "high": high, "columns": len(panels), "gap": 0.03}
    chart = Chart(panels.values(), **look, x=x, y="budget, in nodes")
    least, most = (float(one) for one in table["speed_up"].agg(["min", "max"]))
    ends = (min(least, 1.0), max(most, 1.01))
    look = {"name": "predicted speed-up", "ends": ends, "shades": _around_one(*ends)}
    best = table.iloc[table["speed_up"].argmax()]
    for width, own in table.groupby("width"):
        grid = own.pivot(index="budget", columns="depth", values="speed_up")
        framed = (best["depth"], best["budget"]) if width == best["width"] else ()
        add_cells(chart, grid, panel=panels[width], framed=framed, **look)
    chart.drawn.append(table)
    return chart.titled(
        f"Predicted speed-up, {about}; framed: the best, {best['speed_up']:.2f}; blank: no such"
        " tree"
    )


def _around_one(least: float, most: float) -> list[list[object]]:
    """Shades from the least value to the most: white at 1, orange below and blue above it; only
    white to blue where the least is 1.
    """
    slower, _, faster = (colour for _, colour in TWO_SIDED)
    even = (1 - least) / (most - least)
    below = [[0, slower]] if even else []
    return [*below, [even, "#FFFFFF"], [1, faster]]


def break_even(
    table: pd.DataFrame, points: pd.DataFrame, *, title: str, here: Sequence[float] = ()
) -> go.Figure:
    """Where speculation pays: predicted speed-up over the acceptance rate and the cost of a draft
    pass, as shades with a line every quarter; on the thick line, at 1, it stops paying.

    table     a row per place of a grid: `acceptance_rate` (0 to 1), `cost` (seconds of a draft pass
              ÷ of a target pass) and `speed_up` (× plain decoding's speed, of the best chain there)
    points    our pairs on the map: `pair` (its name, "draft, sampler": a symbol per draft),
              `acceptance_rate`, perhaps with a 95 % interval `low` to `high`, and `cost`
    here      an acceptance rate and a cost that a star marks
    """
    check(table, "acceptance_rate cost", "speed_up")
    check(points, "", "pair acceptance_rate cost")
    grid = table.pivot(index="cost", columns="acceptance_rate", values="speed_up").astype(float)
    x = "acceptance rate of a guess"
    y = "seconds of a draft pass ÷ of a target pass"
    chart = Chart(high=464, x=x, y=y)
    _add_levels(chart, grid)
    ends = "low acceptance_rate high" if "low" in points else ""
    dots = marks(points, "acceptance_rate", "cost", series="pair", ends=ends, note="{pair}")
    add_dots(chart, dots, _pair_looks(names_of(dots["series"])), lying=True, size=11)
    if here:
        star = pd.DataFrame([here], columns=["x", "y"]).assign(series=HERE, panel="")
        add_dots(chart, star, MAP_LOOKS, size=19)
    chart.axis("x", range=[grid.columns.min(), grid.columns.max()], showgrid=False)
    highest = min(grid.index.max(), max(HIGHEST, *dots["y"], *here[1:]))
    chart.axis("y", range=[grid.index.min(), highest], showgrid=False)
    return chart.titled(title)


def _pair_looks(names: Sequence[str]) -> dict[str, Look]:
    """A symbol per draft, which stands before the comma of a pair's name, full under its first
    sampler and hollow under others.
    """
    drafts = [name.partition(",")[0] for name in names]
    symbols = dict(zip(names_of(drafts), cycle(SYMBOLS), strict=False))
    found = {}
    for place, (name, draft) in enumerate(zip(names, drafts, strict=True)):
        hollow = "-open" if draft in drafts[:place] else ""
        found[name] = Look(DARK, symbol=symbols[draft] + hollow)
    return found


def _add_levels(chart: Chart, grid: pd.DataFrame) -> None:
    """Add the speed-up as shades, as lines every quarter, and as the thick line of break-even."""
    most = max(1.25, float(np.nanmax(grid)))
    numbers = {"size": 11, "color": DARK}
    place = {"x": list(grid.columns), "y": list(grid.index), "z": grid.to_numpy(np.float32)}
    levels = {"start": 1.0, "end": most, "size": 0.25}
    bar = {"title": {"text": "predicted speed-up", "side": "top"}, "thickness": 14}
    shades = [[0, tint(LOSS)], [0.001, "#F4F9FC"], [1, GAIN]]
    look = {"zmin": 1.0, "zmax": most, "line": {"width": 0}, "contours": levels}
    look |= {"colorscale": shades, "colorbar": bar | {"tickvals": [*range(1, int(most) + 1)]}}
    said = "rate %{x:.2f}, cost %{y:.2f}: %{z:.2f} times as fast<extra></extra>"
    chart.add(go.Contour(**place, **look, hovertemplate=said))
    quiet = {"showscale": False, "hoverinfo": "skip"}
    thin = {"width": 0.7, "color": INK}
    levels |= {"start": 1.25, "coloring": "none", "showlabels": True, "labelfont": numbers}
    chart.add(go.Contour(**place, **quiet, contours=levels, line=thin, showlegend=False))
    even = {"type": "constraint", "operation": "=", "value": 1.0, "showlabels": False}
    thick = {"width": 3.5, "color": LOSS}
    name = "break-even"
    chart.add(go.Contour(**place, **quiet, contours=even, line=thick, name=name))


def roofline(
    table: pd.DataFrame, *, bytes_per_second: float, flops_per_second: float, name: str
) -> go.Figure:
    """Points under a machine's bandwidth line and compute roof, a measured one with its share of
    the lower of the two at its place; through it a dotted line of as many operations per byte and
    second, on which predicted points lie that take its overhead over.

    table                                 a row per point: `point` (its name), `intensity`
                                          (FLOP/byte) and `flops_per_second`, both above 0, and
                                          `kind` ("paper": measured there, or "ours": predicted from
                                          a share of the line that is assumed)
    bytes_per_second, flops_per_second    the most that the machine moves and computes
    name                                  the machine's

    Raises ValueError for another kind, or a number that is not above 0.
    Source: Williams, Waterman and Patterson 2009.
    """
    check(table, "", "point intensity flops_per_second kind")
    _check_points(table)
    bandwidth = float(bytes_per_second)
    roof = float(flops_per_second)
    ridge = roof / bandwidth
    numbers = table[["flops_per_second", "intensity"]]
    slowest, least = numbers.min()
    fastest, most = numbers.max()
    xs = 0.4 * min(ridge, least), 20 * max(ridge, most)
    ys = 0.4 * min(bandwidth * xs[0], slowest), 2.5 * max(roof, fastest)
    x = "operations per byte, in FLOP/byte"
    y = "operations per second, in FLOP/s"
    chart = Chart(high=416, x=x, y=y)
    _draw_roof(chart.figure, bandwidth, roof, xs, ys[0])
    shares = table["flops_per_second"] / (bandwidth * table["intensity"]).clip(upper=roof)
    rows = marks(table, "intensity", "flops_per_second", series="kind")
    said = _shares_in_words(shares, np.where(rows["x"] < ridge, "bandwidth line", "compute roof"))
    measured = rows["series"] == "paper"
    rows["text"] = " " + rows["point"].map(escape) + np.where(measured, said, "")
    slopes = shares * (roof / table["intensity"]).clip(upper=bandwidth)
    for slope in slopes[measured] if not measured.all() else ():
        _draw_overhead(chart.figure, slope, xs[0], 2 * float(most))
    paper = {"paper": Look(INK, symbol="diamond-open")}
    ours = {"ours": Look(GAIN)}
    add_dots(chart, rows[rows["series"] == "paper"], paper, size=11, by="measured")
    add_dots(chart, rows[rows["series"] == "ours"], ours, size=11, by="predicted")
    beside = {"mode": "markers+text"}
    chart.figure.update_traces(textposition="middle right", selector=beside)
    below = {**beside, "name": "paper, measured"}  # of the dotted line
    chart.figure.update_traces(textposition="bottom right", selector=below)
    for axis, ends in (("x", xs), ("y", ys)):
        low, high = map(math.log10, ends)
        ticks = [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
        words = list(map(theme.with_prefix, ticks))
        chart.count_in_factors(axis, ticks, ends).axis(axis, ticktext=words)
    return chart.titled(f"{name}: a tree's pass does more work for the same bytes")


def _shares_in_words(shares: Iterable[float], limits: Iterable[str]) -> list[str]:
    """Each share of its limit, in a line below a point's name."""
    return [
        f":<br> {100 * share:.{0 if share >= 0.01 else 2}f} % of the {limit}"
        for share, limit in zip(shares, limits, strict=True)
    ]


def _check_points(table: pd.DataFrame) -> None:
    lowest = table[["intensity", "flops_per_second"]].min().min()
    if not lowest > 0:
        raise ValueError(f"FLOP per second and intensities are above 0, got {lowest:g}")
    others = table["kind"][~table["kind"].isin(("paper", "ours"))]
    if len(others):
        raise ValueError(f"a point is of the kind paper or ours, got {others.iloc[0]!r}")


def _draw_overhead(figure: go.Figure, bandwidth: float, left: float, right: float) -> None:
    """The line of passes that lose as much to overhead as a measured one."""
    dotted = {"color": INK, "dash": "dot", "width": 1.5}
    words = ["", " assumed: the same overhead"]
    look = {"line": dotted, "showlegend": False, "hoverinfo": "skip", "mode": "lines+text"}
    heights = [bandwidth * left, bandwidth * right]
    place = {"x": [left, right], "y": heights, "textposition": "middle right"}
    figure.add_scatter(**place, **look, text=words, textfont={"size": 12})


def _draw_roof(
    figure: go.Figure, bandwidth: float, roof: float, xs: tuple[float, float], bottom: float
) -> None:
    """The slope, the roof and the ridge between them, with words at each."""
    ridge = roof / bandwidth
    left, right = xs
    quiet = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
    solid = {"color": INK, "width": 2.5}
    dotted = {"color": INK, "dash": "dot", "width": 1.2}
    heights = [bandwidth * left, roof, roof]
    figure.add_scatter(x=[left, ridge, right], y=heights, line=solid, **quiet)
    bottom = max(bottom, roof / RIDGE)
    figure.add_scatter(x=[ridge, ridge], y=[bottom, roof], line=dotted, **quiet)
    middle = math.sqrt(left * ridge)
    for x, y, text, side in (
        (middle, bandwidth * middle, f"{theme.with_prefix(bandwidth, 'B/s')} ", "right"),
        (right, roof, theme.with_prefix(roof, "FLOP/s"), "right"),
        (ridge, bottom, f"ridge {ridge:.3g} FLOP/byte", "left"),
    ):
        place = {"x": math.log10(x), "y": math.log10(y), "xanchor": side, "yanchor": "bottom"}
        figure.add_annotation(text=text, showarrow=False, font={"size": 12}, **place)
