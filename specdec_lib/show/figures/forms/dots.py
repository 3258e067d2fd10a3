"""The first form: dots with intervals."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.chart import Chart, error_bars, hover, words_beside
from specdec_lib.show.figures.marks import groups
from specdec_lib.show.figures.theme import Look, escape


def add_dots(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Mapping[str, Look],
    *,
    lying: bool = False,
    joined: float = 0,
    size: float = 9,
) -> None:
    """Add a trace of dots per panel and series, with intervals and texts where the marks have them.

    lying     whether the value is x and not y
    joined    width of the line that joins them; 0 for none
    """
    value = "x" if lying else "y"
    for panel, rows in groups(marks, "panel"):
        for name, own in groups(rows, "series"):
            own, look = own.dropna(subset=[value]), looks[name]
            place = "" if lying or not joined else "%{x}: "
            dots = go.Scatter(
                x=list(own["x"]),
                y=list(own["y"]),
                mode="lines+markers" if joined else "markers",
                line=look.line | {"width": joined},
                marker=look.marker(size),
                name=escape(name),
                cliponaxis=False,
                hovertext=hover(own, value),
                hovertemplate=place + "%{hovertext}<extra>%{fullData.name}</extra>",
            )
            dots[f"error_{value}"] = error_bars(own, value, look.colour)
            if "size" in own:
                dots.marker.update(size=list(own["size"]), opacity=0.75)
            chart.add(dots, panel)
            words_beside(chart, own, lying=lying, panel=panel, name=escape(name), away=size)
