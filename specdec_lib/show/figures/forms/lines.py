"""The second form: lines with bands."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.chart import Chart, hover
from specdec_lib.show.figures.marks import groups
from specdec_lib.show.figures.theme import INK, Look, escape, faint


def add_lines(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Mapping[str, Look],
    *,
    dots: float = 0,
    width: float = 2,
) -> None:
    """Add a line per panel and series, over a band from `low` to `high` where the marks have them.

    dots    size of the marks on the lines; 0 for none
    """
    for panel, rows in groups(marks.dropna(subset=["y"]), "panel"):
        for name, own in groups(rows, "series") if "low" in rows else ():
            _add_band(chart, own.sort_values("x", kind="stable"), looks[name].colour, panel, name)
        for name, own in groups(rows, "series"):
            own = own.sort_values("x", kind="stable")
            line = go.Scatter(
                x=list(own["x"]),
                y=list(own["y"]),
                mode="lines+markers" if dots else "lines",
                line=looks[name].line | {"width": width},
                marker=looks[name].marker(dots),
                name=escape(name),
                hovertext=hover(own, "y"),
                hovertemplate="%{x}: %{hovertext}<extra>%{fullData.name}</extra>",
            )
            chart.add(line, panel)


def _add_band(chart: Chart, rows: pd.DataFrame, colour: str, panel: str, name: str) -> None:
    rows = rows.dropna(subset=["low", "high"])
    xs, lows, highs = (rows[column].tolist() for column in ("x", "low", "high"))
    add_area(chart, [*xs, *xs[::-1]], [*lows, *highs[::-1]], colour, panel, name=escape(name))


def add_area(
    chart: Chart,
    xs: list[float],
    ys: list[float],
    colour: str,
    panel: str,
    *,
    name: str,
    key: bool = False,
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
            said = f"within {100 * near:.0f} %"
            add_area(chart, [low, high, high, low], edges, INK, panel, name=said, key=True)
        dotted = {"dash": "dot", "color": INK, "width": 1.5}
        line = go.Scatter(x=[low, high], y=[low, high], mode="lines", line=dotted, name=name)
        chart.add(line.update(hoverinfo="skip"), panel)
