"""The four forms that charts are made of: dots, lines with bands, bars, and cells."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.marks import ends_of, groups
from specdec_lib.show.figures.theme import DARK, INK, Look, escape, faint, tint

SHADES = [[0, "#EAF4FA"], [1, "#5BA6D1"]]  # dark numbers are legible on all of them
TWO_SIDED = [[0, "#EA8A45"], [0.5, "#FFFFFF"], SHADES[1]]  # slower and faster
MOST_WITH_NUMBERS = 16  # columns of cells that still have room for their numbers
Looks = Mapping[str, Look]


def add_dots(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Looks | None = None,
    *,
    lying: bool = False,
    joined: float = 0,
    size: float = 9,
) -> None:
    """Add a trace of dots per panel and series, with intervals and texts where the marks have them.

    looks     by series; without them each has one of the theme's
    joined    width of the line that joins them; 0 for none
    """
    value, looks = "x" if lying else "y", looks or theme.looks(marks["series"])
    for panel, name, own in _pieces(marks):
        own, look = own.dropna(subset=[value]), looks[name]
        dots = go.Scatter(
            **_said(own, value, name, "%{x}: " if joined else ""),
            mode="lines+markers" if joined else "markers",
            line=look.line | {"width": joined},
            marker=look.marker(size),
            cliponaxis=False,
        )
        dots[f"error_{value}"] = _error_bars(own, value, look.colour)
        if "size" in own:
            dots.marker.update(size=list(own["size"]), opacity=0.75)
        chart.add(dots, panel)
        words_beside(chart, own, lying=lying, panel=panel, name=escape(name), away=size)


def add_lines(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Looks | None = None,
    *,
    dots: float = 0,
    width: float = 2,
) -> None:
    """Add a line per panel and series, over a band from `low` to `high` where the marks have them.

    dots    size of the marks on the lines; 0 for none
    """
    looks, marks = looks or theme.looks(marks["series"]), marks.dropna(subset=["y"])
    for panel, rows in groups(marks, "panel"):
        for _, name, own in _pieces(rows) if "low" in rows else ():
            own = own.sort_values("x", kind="stable").dropna(subset=["low", "high"])
            xs, ys = [*own["x"], *own["x"][::-1]], [*own["low"], *own["high"][::-1]]
            _add_area(chart, xs, ys, looks[name].colour, panel, escape(name), key=False)
        for _, name, own in _pieces(rows):
            line = go.Scatter(
                **_said(own.sort_values("x", kind="stable"), "y", name, "%{x}: "),
                mode="lines+markers" if dots else "lines",
                line=looks[name].line | {"width": width},
                marker=looks[name].marker(dots),
            )
            chart.add(line, panel)


def _add_area(
    chart: Chart, xs: list[float], ys: list[float], colour: str, panel: str, name: str, key: bool
) -> None:
    """Add a veil in the outline of these points, with an entry of the legend if `key`."""
    look = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": faint(colour)}
    veil = go.Scatter(x=xs, y=ys, **look, name=name, showlegend=None if key else False)
    chart.add(veil.update(hoverinfo="skip"), panel)


def add_diagonal(chart: Chart, ends: tuple[float, float], *, name: str, near: float = 0) -> None:
    """Add the line of equal x and y to every panel; a veil reaches a share `near` around it."""
    low, high = ends
    for panel in chart.panels:
        if near:
            edges = [(1 - near) * low, (1 - near) * high, (1 + near) * high, (1 + near) * low]
            xs, said = [low, high, high, low], f"within {100 * near:.0f} %"
            _add_area(chart, xs, edges, INK, panel, said, key=True)
        dotted = {"dash": "dot", "color": INK, "width": 1.5}
        line = go.Scatter(x=[low, high], y=[low, high], mode="lines", line=dotted, name=name)
        chart.add(line.update(hoverinfo="skip"), panel)


def add_bars(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Looks | None = None,
    *,
    lying: bool = False,
    width: float = 0.6,
) -> None:
    """Add bars per panel and series, with intervals and texts where the marks have them.

    A column `look` names the look of each bar where it is not that of its series, a column `base`
    says where it starts, a column `inside` what stands in it.
    """
    value, looks = "x" if lying else "y", looks or theme.looks(marks["series"])
    for panel, name, own in _pieces(marks):
        own = own.dropna(subset=[value])
        bars = go.Bar(
            **_said(own, value, name),
            width=width,
            orientation="h" if lying else "v",
            base=list(own["base"]) if "base" in own else None,
            marker=_paint([looks[which] for which in own["look" if "look" in own else "series"]]),
        )
        bars[f"error_{value}"] = _error_bars(own, value, INK)
        if "inside" in own:
            place = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
            bars.update(text=list(own["inside"]), textfont={"color": DARK, "size": 11}, **place)
        chart.add(bars, panel)
        ended = own.assign(**{value: own[value] + own["base"]}) if "base" in own else own
        words_beside(chart, ended, lying=lying, panel=panel, name=escape(name))
    chart.figure.update_layout(bargap=0, barmode="overlay")


def add_cells(
    chart: Chart,
    grid: pd.DataFrame,
    *,
    name: str,
    ends: Sequence[float | None] = (None, None),
    shades: list[list[object]] = SHADES,
    panel: str = "",
    scale: bool = True,
) -> None:
    """Add a cell per value of the grid, its rows upwards and its columns to the right.

    name     of the quantity
    ends     of the colours; None for the least and the greatest value
    scale    whether the scale of colours stands beside the panels
    """
    values = grid.to_numpy(dtype=float)
    cells = go.Heatmap(
        x=[escape(column) for column in grid.columns],
        y=[escape(row) for row in grid.index],
        z=values,
        zmin=ends[0],
        zmax=ends[1],
        colorscale=shades,
        xgap=1,
        ygap=1,
        showscale=scale,
        colorbar={"title": {"text": name, "side": "top"}, "thickness": 14},
        hovertemplate=f"%{{y}}, %{{x}}: {name} %{{z:.3f}}<extra></extra>",
    )
    if grid.shape[1] <= MOST_WITH_NUMBERS:
        text = [["" if value != value else f"{value:.2f}" for value in line] for line in values]
        cells.update(text=text, texttemplate="%{text}", textfont={"size": 11, "color": DARK})
    chart.add(cells, panel)
    look = {"type": "category", "showgrid": False}
    chart.figure.update_xaxes(look).update_yaxes(look)


def frame_cell(chart: Chart, grid: pd.DataFrame, at: Sequence[object], *, panel: str = "") -> None:
    """Draw a frame around the cell of one column and row of the grid."""
    x, y = list(grid.columns).index(at[0]), list(grid.index).index(at[1])
    box = {"x0": x - 0.5, "x1": x + 0.5, "y0": y - 0.5, "y1": y + 0.5}
    box["line"] = {"color": DARK, "width": 3}
    chart.figure.add_shape(type="rect", **box, **chart.panels[panel])


def words_beside(
    chart: Chart, rows: pd.DataFrame, *, lying: bool, panel: str, name: str, away: float = 4
) -> None:
    """The texts of marks as a trace of their own, clear of the intervals and `away` pixels off; in
    a lying chart, left of a mark below 0 and right of others.
    """
    if "text" not in rows:
        return
    far, texts, sides = ends_of(rows, "x" if lying else "y"), list(rows["text"]), "top center"
    if lying:
        left = list(rows["x"] < 0)
        texts = [f"{text} " if at else f" {text}" for text, at in zip(texts, left, strict=True)]
        sides = [f"middle {'left' if at else 'right'}" for at in left]
        sides = sides if any(left) else "middle right"
    words = go.Scatter(
        x=list(far if lying else rows["x"]),
        y=list(rows["y"] if lying else far),
        mode="markers+text",
        marker={"opacity": 0, "size": 1.6 * away},  # the words stand clear of it
        text=texts,
        textposition=sides,
        textfont={"size": 11},
        cliponaxis=False,
        name=name,
        showlegend=False,
        hoverinfo="skip",
    )
    chart.add(words, panel)


def _pieces(marks: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """The rows of each panel and series."""
    for panel, rows in groups(marks, "panel"):
        for name, own in groups(rows, "series"):
            yield panel, name, own


def _said(rows: pd.DataFrame, value: str, name: str, place: str = "") -> dict[str, object]:
    """Marks of a series as plotly takes them; hovered over, each says its place, its value, its
    interval and its note.
    """
    said = []
    for row in rows.to_dict("records"):
        words = f"{row[value]:.4g}"
        if row.get("low", float("nan")) == row.get("low"):
            words += f" ({row['low']:.4g} to {row['high']:.4g})"
        said.append(words + (f"<br>{escape(row['note'])}" if row.get("note") else ""))
    given = {"x": list(rows["x"]), "y": list(rows["y"]), "name": escape(name), "hovertext": said}
    return given | {"hovertemplate": f"{place}%{{hovertext}}<extra>%{{fullData.name}}</extra>"}


def _error_bars(rows: pd.DataFrame, value: str, colour: str) -> dict[str, object]:
    """The intervals around the values, as plotly wants them; none where an end is NaN."""
    if "low" not in rows or rows["low"].isna().all():
        return {"visible": False}
    middle = rows[value].astype(float)
    ends = {"array": list(rows["high"] - middle), "arrayminus": list(middle - rows["low"])}
    return ends | {"type": "data", "color": colour, "thickness": 1.6, "width": 4}


def _paint(looks: list[Look]) -> dict[str, object]:
    """Colours, rims and hatches of bars; for all at once where they are the same."""
    edges, shapes = [look.colour for look in looks], [look.hatch for look in looks]
    fills = [look.colour if look.full else tint(look.colour) for look in looks]
    inks = [tint(look.colour) if look.full else look.colour for look in looks]
    if len(set(looks)) == 1:
        fills, edges, inks, shapes = fills[0], edges[0], inks[0], shapes[0]
    hatch = {"shape": shapes, "fgcolor": inks, "bgcolor": fills, "size": 6, "solidity": 0.25}
    return {"color": fills, "line": {"color": edges, "width": 1.3}, "pattern": hatch}
