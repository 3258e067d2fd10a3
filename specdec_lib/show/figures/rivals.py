"""A setting of the cascade beside what it must beat: what a round yields, what it costs, and what
comes of both.
"""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import headed
from specdec_lib.show.figures.marks import (
    check,
    check_once,
    interval,
    looks,
    panels,
    short,
    tops,
    wrapped,
)
from specdec_lib.show.figures.theme import INK, SOURCES, escaped, tint

PANELS = ("SWI: yield ÷ price", "tokens per round", "price of a round", "acceptance rate")
HATCHES = {"target": "", "middle": "/", "draft": "."}
OURS, THEIRS = SOURCES["draft"], SOURCES["context"]


def rivals(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """A lying bar per setting, the first one's darker, in four panels: SWI with its interval,
    tokens and price per round, acceptance rate.

    table    a row per setting, as of `replay.Replays.beside`: `setting` (its name), `swi`, `low`,
             `high`, `tokens_per_round`, `acceptance_rate` (NaN where nothing was tried), and per
             model `<model>_passes` and `<model>_price` per round, a target pass's price being 1

    Raises ValueError if the table lacks a column or a row, has a setting twice, or an interval does
    not hold its SWI.
    """
    check(
        table,
        (
            "setting",
            "swi",
            "low",
            "high",
            "tokens_per_round",
            "acceptance_rate",
            "target_passes",
            "target_price",
        ),
    )
    check_once(table, ("setting",))
    names = [f"{wrapped(str(name), 22)}\u2002" for name in table["setting"]]
    figure = panels(PANELS, width=900, height=140 + 44 * len(names), gap=0.055)
    look = looks(["draft"])["draft"]
    error = interval(table, "swi", look) | {"color": INK}
    hover = "SWI %{x:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra></extra>"
    told = {"customdata": table[["low", "high"]].to_numpy(), "hovertemplate": hover}
    figure.add_trace(_bars(table["swi"], names) | {"error_x": error} | told, row=1, col=1)
    _texts(figure, tops(table, "swi"), table["swi"], 1)
    for column, quantity in ((2, "tokens_per_round"), (4, "acceptance_rate")):
        figure.add_trace(
            _bars(table[quantity], names) | {"hovertemplate": "%{x:.3f}<extra></extra>"},
            row=1,
            col=column,
        )
        _texts(figure, table[quantity], table[quantity], column)
    price = _prices(figure, table, names)
    _texts(figure, price, price, 3)
    for column, most in enumerate(
        (tops(table, "swi").max(), table["tokens_per_round"].max(), price.max(), 1.0), 1
    ):
        figure.update_xaxes(range=[0, 1.32 * float(most)], row=1, col=column)
    figure.update_xaxes(tickvals=[0, 0.5, 1], row=1, col=4)
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        range=[len(names) - 0.4, -0.6],
        showgrid=False,
    )
    figure.add_vline(
        x=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below", row=1, col=1
    )
    figure.update_layout(
        barmode="stack", bargap=0.35, showlegend=True, legend={"traceorder": "normal"}
    )
    return headed(figure, title) if title else figure


def _bars(values: pd.Series, names: list[str]) -> dict[str, object]:
    """One panel's bars as plotly wants them: the first darker."""
    colours = [OURS if number == 0 else THEIRS for number in range(len(names))]
    marker = {
        "color": [tint(colour) if number else colour for number, colour in enumerate(colours)],
        "line": {"color": colours, "width": 1.5},
    }
    return {
        "type": "bar",
        "x": list(values),
        "y": list(range(len(names))),
        "orientation": "h",
        "marker": marker,
        "showlegend": False,
    }


def _prices(figure: go.Figure, table: pd.DataFrame, names: list[str]) -> pd.Series:
    """What the passes of a round cost, a piece per model, in the third panel; the sums come back."""
    models = [column.removesuffix("_price") for column in table if column.endswith("_price")]
    styles = looks(models)
    for model in models:
        colour = styles[model].colour
        figure.add_bar(
            x=table[f"{model}_price"],
            y=list(range(len(names))),
            orientation="h",
            name=escaped(model),
            marker={
                "color": tint(colour),
                "line": {"color": colour, "width": 1.2},
                "pattern": {
                    "shape": HATCHES.get(model, "x"),
                    "fgcolor": colour,
                    "bgcolor": tint(colour),
                    "size": 6,
                    "solidity": 0.25,
                },
            },
            customdata=table[f"{model}_passes"],
            hovertemplate="%{customdata:.2f} passes per round, price %{x:.3f}<extra>%{fullData.name}</extra>",
            row=1,
            col=3,
        )
    return table[[f"{model}_price" for model in models]].sum(axis=1)


def _texts(figure: go.Figure, ends: pd.Series, values: pd.Series, column: int) -> None:
    """Each value behind its bar."""
    texts = [f"\u2002{short(value)}" for value in values]
    place = {"textposition": "middle right", "textfont": {"size": 11}, "cliponaxis": False}
    figure.add_scatter(
        x=ends,
        y=list(range(len(texts))),
        mode="text",
        text=texts,
        **place,
        showlegend=False,
        hoverinfo="skip",
        row=1,
        col=column,
    )
