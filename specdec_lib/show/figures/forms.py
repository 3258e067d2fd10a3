"""The four forms that charts are made of: dots, lines with bands, bars, and cells."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, ends_of, groups_of, named_rows
from specdec_lib.show.figures.theme import DARK, INK, WHISKER, Look, escape

SHADES = [[0, "#EAF4FA"], [1, "#5BA6D1"]]  # dark numbers are legible on all of them
TWO_SIDED = [[0, "#EA8A45"], [0.5, "#FFFFFF"], SHADES[1]]  # slower and faster
MOST_WITH_NUMBERS = 16  # columns of cells that still have room for their numbers
Looks = Mapping[str, Look]


def _parts(
    chart: Chart, marks: pd.DataFrame, looks: Looks | None, way: str, value: str
) -> list[tuple[str, str, Look, pd.DataFrame]]:
    """The marks that have a value: panel, series, look, and the marks that agree in these."""
    looks = looks or theme.looks(marks["series"])
    if way:
        marks = marks.assign(series=marks["series"] + f", {way}")
        looks = {f"{name}, {way}": look.found(way) for name, look in looks.items()}
    marks = marks.assign(look=marks.get("look", marks["series"])).dropna(subset=[value])
    chart.drawn.append(marks)
    parts = groups_of(marks, ["panel", "series", "look"])
    return [(panel, name, looks[look], own) for (panel, name, look), own in parts]


def add_dots(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Looks | None = None,
    *,
    lying: bool = False,
    joined: float = 0,
    size: float = 9,
    bands: bool = False,
    by: str = "",
    beside: bool = False,
) -> Chart:
    """Add a trace of dots per panel and series, with intervals and texts where the marks have them.

    looks     by series; without them each has one of the theme's
    lying     whether the value lies along x
    joined    pixels across the line that joins them along x; 0 for none; `size`: across a dot
    bands     whether intervals are bands behind all lines
    by        where the numbers come from, for the legend: "measured", "counted", "predicted" or ""
    beside    whether texts stand right of upright dots and not above their intervals
    """
    value = "x" if lying else "y"
    parts = _parts(chart, marks, looks, by, value)
    for panel, name, look, own in parts if bands and "low" in marks else ():
        band = own.dropna(subset=["low", "high"]).sort_values("x", kind="stable")
        xs = [*band["x"], *band["x"][::-1]]
        ys = [*band["low"], *band["high"][::-1]]
        chart.add(veil(xs, ys, look.colour, name=escape(name), showlegend=False), panel)
    mode = "+".join(["lines"] * bool(joined) + ["markers"] * bool(size))
    for panel, name, look, own in parts:
        own = own.sort_values("x", kind="stable") if joined else own
        line = {"color": look.colour, "dash": look.dash, "width": joined}
        given = _given(own, value, name, at=bool(joined))
        dots = go.Scatter(**given, line=line, marker=look.marker(size), mode=mode, cliponaxis=False)
        if not bands:
            _add_intervals(chart, dots, own, value, look.colour)
        if "size" in own:
            dots.update(marker={"size": list(own["size"]), "opacity": 0.5})
        chart.add(dots, panel)
        words_beside(chart, own, lying=lying, away=size, beside=beside)
    return chart


def veil(
    xs: Sequence[float | None], ys: Sequence[float | None], colour: str, **shown: object
) -> go.Scatter:
    """A veil in the outline of these points (None: none); it may overlap others, on light and on
    dark paper.
    """
    faint = f"rgba({','.join(map(str, hex_to_rgb(colour)))},0.18)"
    look = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": faint}
    return go.Scatter(x=xs, y=ys, **look, **shown, hoverinfo="skip")


def add_diagonal(chart: Chart, ends: tuple[float, float], *, name: str, near: float = 0) -> None:
    """Add the line of equal x and y, between these ends, and a veil of a share `near` around it."""
    low, high = ends
    for panel in chart.panels:
        if near:
            edges = [(1 - near) * low, (1 - near) * high, (1 + near) * high, (1 + near) * low]
            xs = [low, high, high, low]
            said = f"within {100 * near:.0f} %"
            chart.add(veil(xs, edges, INK, name=said), panel)
        dotted = {"mode": "lines", "line": {"dash": "dot", "color": INK, "width": 1.5}}
        chart.add(go.Scatter(x=ends, y=ends, name=name, hoverinfo="skip", **dotted), panel)
    chart.axis("x", range=ends).axis("y", range=ends)


def add_bars(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Looks | None = None,
    *,
    lying: bool = False,
    width: float = 0.6,
    by: str = "",
) -> Chart:
    """Add bars per panel and series, with intervals and texts where the marks have them.

    A column `look` names the look of each bar where it is not that of its series, a column `base`
    says where it starts, a column `inside` what stands in it; `by` is as in `add_dots`.
    """
    value = "x" if lying else "y"
    for panel, name, look, own in _parts(chart, marks, looks, by, value):
        bars = go.Bar(
            **_given(own, value, name, at=False),
            width=width,
            orientation="h" if lying else "v",
            base=list(own["base"]) if "base" in own else None,
            marker=look.bar(),
        )
        spans = own
        if "low" in own:  # a baseline's has no length
            spans = own.assign(low=own["low"].where(own["low"] < own["high"]))
        _add_intervals(chart, bars, spans, value, WHISKER)
        if "inside" in own:
            place = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
            bars.update(text=list(own["inside"]), textfont={"color": DARK, "size": 11}, **place)
        chart.add(bars, panel)
        words_beside(chart, own, lying=lying)
    chart.figure.update_layout(bargap=0, barmode="overlay")
    return chart


def add_cells(
    chart: Chart,
    grid: pd.DataFrame,
    *,
    name: str,
    ends: Sequence[float | None] = (None, None),
    shades: list[list[object]] = SHADES,
    panel: str = "",
    framed: Sequence[Any] = (),
    bar: str = "",
) -> None:
    """Add a cell per value of the grid, its rows upwards and its columns to the right.

    name      of the quantity
    ends      of the colours; None for the least and the greatest value
    framed    column and row of the cell that has a frame
    bar       above the bar of colours; "": the quantity's name
    """
    place = {"x": list(map(escape, grid.columns)), "y": list(map(escape, grid.index))}
    extremes = float(np.nanmin(grid)), float(np.nanmax(grid))  # plotly wants both ends, or none
    low, high = (own if end is None else end for end, own in zip(ends, extremes, strict=True))
    look = {"zmin": low, "zmax": high, "colorscale": shades, "xgap": 1, "ygap": 1}
    look["colorbar"] = {"title": {"text": bar or name, "side": "top"}, "thickness": 14}
    look["hovertemplate"] = f"%{{y}}, %{{x}}: {name} %{{z:.3f}}<extra></extra>"
    last = panel == list(chart.panels)[-1]
    cells = go.Heatmap(**place, **look, z=grid.to_numpy(dtype=float), showscale=last)
    if grid.shape[1] <= MOST_WITH_NUMBERS:
        cells.update(texttemplate="%{z:.2f}", textfont={"size": 11, "color": DARK})
    chart.add(cells, panel)
    for axis in "xy":
        chart.axis(axis, type="category", showgrid=False)
    if framed:
        x = list(grid.columns).index(framed[0])
        y = list(grid.index).index(framed[1])
        box = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
        line = {"color": DARK, "width": 3}
        chart.figure.add_shape(type="rect", **box, line=line, **chart.panels[panel])


def words_beside(
    chart: Chart, rows: pd.DataFrame, *, lying: bool, away: float = 4, beside: bool = False
) -> None:
    """The texts of marks of one panel and series, if they have any, clear of the intervals and
    `away` pixels off; in a lying chart, left of a mark below 0 and right of others. In an upright
    one they stand above the interval, or `beside` the mark, right of it.
    """
    if "text" not in rows:
        return
    place = {"x": rows["x"], "y": rows["y"]}
    texts = list(rows["text"])
    sides = "top center"
    if not beside:
        place["x" if lying else "y"] = ends_of(rows, "x" if lying else "y")
    if lying:
        texts = [f"{one.text} " if one.x < 0 else f" {one.text}" for one in named_rows(rows)]
        sides = [f"middle {'left' if x < 0 else 'right'}" for x in rows["x"]]
    elif beside:
        sides = "middle right"
    clear = {"opacity": 0, "size": 1.6 * away}  # the words stand clear of it
    look = {"mode": "markers+text", "marker": clear, "textfont": {"size": 11}, "hoverinfo": "skip"}
    name = {"name": escape(rows["series"].iloc[0]), "showlegend": False, "cliponaxis": False}
    words = go.Scatter(**place, **look, **name, text=texts, textposition=sides)
    chart.add(words, rows["panel"].iloc[0])


def _given(rows: pd.DataFrame, value: str, name: str, *, at: bool) -> dict[str, object]:
    """Marks of a series as plotly takes them, with what they say when hovered over; `at`: where."""
    given = {"x": list(rows["x"]), "y": list(rows["y"]), "name": escape(name)}
    given |= {"xhoverformat": ".4~g", "yhoverformat": ".4~g"}
    notes = [escape(note) for note in rows["note"]] if "note" in rows else None
    return given | {"hovertext": notes, "hoverinfo": f"{'x+y' if at else value}+text+name"}


def _add_intervals(
    chart: Chart, trace: go.Scatter | go.Bar, rows: pd.DataFrame, value: str, colour: str
) -> None:
    """Give the trace its intervals, by a trace of their own where only some marks have one: plotly
    draws caps at a mark without one too.
    """
    bars = {"visible": False}
    whole = rows[:0]
    if "low" in rows and len(whole := rows.dropna(subset=["low", "high"])):
        upper = whole["high"] - whole[value]
        lower = whole[value] - whole["low"]
        bars = {"type": "data", "color": colour, "thickness": 1.6, "width": 4}
        bars |= {"array": list(upper), "arrayminus": list(lower)}
    if 0 < len(whole) < len(rows):
        look = {"mode": "markers", "marker": {"opacity": 0}, "hoverinfo": "skip"}
        shown = {"cliponaxis": False, "name": trace.name, "showlegend": False}
        own = go.Scatter(x=whole["x"], y=whole["y"], **look, **shown)
        chart.add(own.update({f"error_{value}": bars}), rows["panel"].iloc[0])
    else:
        trace[f"error_{value}"] = bars
