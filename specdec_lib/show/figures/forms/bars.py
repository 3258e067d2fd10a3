"""The fourth form: bars, standing or lying, side by side or in pieces."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.chart import Chart, error_bars, hover, words_beside
from specdec_lib.show.figures.marks import groups
from specdec_lib.show.figures.theme import DARK, INK, Look, escape, tint


def add_bars(
    chart: Chart,
    marks: pd.DataFrame,
    looks: Mapping[str, Look],
    *,
    lying: bool = False,
    width: float = 0.6,
) -> None:
    """Add bars of a series per panel, with intervals, and texts at their ends where the marks have
    them.

    A column `look` names the look of each bar where it is not that of its series, a column `base`
    says where it starts, a column `inside` what stands in it.
    """
    value = "x" if lying else "y"
    for panel, rows in groups(marks, "panel"):
        for name, own in groups(rows, "series"):
            own = own.dropna(subset=[value])
            own_looks = [looks[which] for which in own["look" if "look" in own else "series"]]
            bars = go.Bar(
                x=list(own["x"]),
                y=list(own["y"]),
                width=width,
                orientation="h" if lying else "v",
                base=list(own["base"]) if "base" in own else None,
                marker=_paint(own_looks),
                name=escape(name),
                hovertext=hover(own, value),
                hovertemplate="%{hovertext}<extra>%{fullData.name}</extra>",
            )
            bars[f"error_{value}"] = error_bars(own, value, INK)
            if "inside" in own:
                place = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0}
                font = {"color": DARK, "size": 11}
                bars.update(text=list(own["inside"]), textfont=font, **place)
            chart.add(bars, panel)
            words_beside(chart, _stacked(own, value), lying=lying, panel=panel, name=escape(name))
    chart.figure.update_layout(bargap=0, barmode="overlay")


def _paint(looks: list[Look]) -> dict[str, object]:
    """Colours, rims and hatches of bars; for all at once where they are the same."""
    fills = [look.colour if look.full else tint(look.colour) for look in looks]
    edges = [look.colour for look in looks]
    inks = [tint(look.colour) if look.full else look.colour for look in looks]
    shapes = [look.hatch for look in looks]
    if len(set(looks)) == 1:
        fills, edges, inks, shapes = fills[0], edges[0], inks[0], shapes[0]
    hatch = {"shape": shapes, "fgcolor": inks, "bgcolor": fills, "size": 6, "solidity": 0.25}
    return {"color": fills, "line": {"color": edges, "width": 1.3}, "pattern": hatch}


def _stacked(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """The marks with each value where its bar ends."""
    return rows.assign(**{value: rows[value] + rows["base"]}) if "base" in rows else rows
