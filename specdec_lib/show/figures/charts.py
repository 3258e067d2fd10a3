"""A plain chart: laws side by side."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.marks import check
from specdec_lib.show.figures.theme import SCREEN, colours, escaped, tint, visible

HATCHES = ("", "/", ".", "x", "-", "+")


def laws(table: pd.DataFrame) -> go.Figure:
    """Probabilities of the same tokens under several laws, as bars side by side; each law has a
    colour and a hatch of its own.

    table    a row per token and law: `token` (its text), `law`, `probability`; shown in the table's
             order

    Raises ValueError if the table lacks a column or a row.
    """
    check(table, ("token", "law", "probability"))
    figure = go.Figure()
    hues = colours(table["law"])
    for number, (law, colour) in enumerate(hues.items()):
        rows = table[table["law"] == law]
        figure.add_bar(
            x=[escaped(visible(str(token), 12)) for token in rows["token"]],
            y=rows["probability"],
            name=escaped(law),
            marker={
                "color": tint(colour) if number else colour,
                "line": {"color": colour, "width": 1.3},
                "pattern": {
                    "shape": HATCHES[number % len(HATCHES)],
                    "fgcolor": colour,
                    "bgcolor": tint(colour),
                    "size": 6,
                    "solidity": 0.3,
                },
            },
            text=[
                f"{probability:.2f}".removeprefix("0") if probability else "0"
                for probability in rows["probability"]
            ],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}<br>probability %{y:.4f}<extra>%{fullData.name}</extra>",
        )
    tokens = table["token"].nunique()
    figure.update_layout(
        template=SCREEN,
        barmode="group",
        bargap=0.25,
        bargroupgap=0.06,
        width=max(560, 120 + 34 * tokens * len(hues)),
        height=380,
        margin={"t": 56},
    )
    figure.update_xaxes(
        title="token", type="category", showgrid=False, tickangle=0 if tokens <= 10 else -40
    )
    figure.update_yaxes(
        title="probability", range=[0, min(1.08, 1.15 * float(table["probability"].max()))]
    )
    return figure
