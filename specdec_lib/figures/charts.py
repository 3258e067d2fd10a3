"""Plain charts: laws side by side, and drafts side by side."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.figures.marks import check
from specdec_lib.figures.theme import SCREEN, SOURCES, colours, escaped, tint, visible

HATCHES = ("", "/", ".", "x", "-", "+")


def laws(table: pd.DataFrame) -> go.Figure:
    """Probabilities of the same tokens under several laws, as bars side by side; each law has a colour and a hatch of its own.

    table    a row per token and law: `token` (its text), `law`, `probability`; shown in the table's order

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
                "pattern": {"shape": HATCHES[number % len(HATCHES)], "fgcolor": colour, "bgcolor": tint(colour), "size": 6, "solidity": 0.3},
            },
            text=[f"{probability:.2f}".removeprefix("0") if probability else "0" for probability in rows["probability"]],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}<br>probability %{y:.4f}<extra>%{fullData.name}</extra>",
        )
    tokens = table["token"].nunique()
    figure.update_layout(
        template=SCREEN, barmode="group", bargap=0.25, bargroupgap=0.06, width=max(560, 120 + 34 * tokens * len(hues)), height=380, margin={"t": 56}
    )
    figure.update_xaxes(title="token", type="category", showgrid=False, tickangle=0 if tokens <= 10 else -40)
    figure.update_yaxes(title="probability", range=[0, min(1.08, 1.15 * float(table["probability"].max()))])
    return figure


def tokens_per_round(table: pd.DataFrame) -> go.Figure:
    """Tokens per round as a dot with an interval per draft, from the table's first row down; a line marks plain decoding's 1.

    table    a row per draft: `draft` (its name), `tokens_per_round`, `low` and `high` (ends of the interval)

    Raises ValueError if the table lacks a column or a row, or an interval does not hold its dot.
    """
    check(table, ("draft", "tokens_per_round", "low", "high"))
    middle, low, high = (table[name].astype(float) for name in ("tokens_per_round", "low", "high"))
    if not ((low <= middle) & (middle <= high)).all():
        raise ValueError(f"low ≤ tokens_per_round ≤ high must hold in every row, got\n{table[['low', 'tokens_per_round', 'high']]}")
    names = [escaped(str(name)) for name in table["draft"]]
    colour = SOURCES["draft"]
    figure = go.Figure()
    figure.add_scatter(
        x=middle,
        y=names,
        mode="markers",
        marker={"color": colour, "size": 11, "line": {"color": "#FFFFFF", "width": 1}},
        error_x={"type": "data", "array": high - middle, "arrayminus": middle - low, "color": colour, "thickness": 2, "width": 6},
        customdata=list(zip(low, high, strict=True)),
        hovertemplate="%{y}: %{x:.2f} (%{customdata[0]:.2f} to %{customdata[1]:.2f})<extra></extra>",
        showlegend=False,
    )
    for name, value, end in zip(names, middle, high, strict=True):
        figure.add_annotation(x=end, y=name, text=f"{value:.2f}", showarrow=False, xanchor="left", xshift=8)
    figure.add_vline(x=1, line={"dash": "dot", "width": 1.5, "color": SOURCES["target"]}, layer="below")
    figure.add_annotation(x=1, y=1, yref="paper", yanchor="bottom", text="plain decoding", showarrow=False)
    figure.update_layout(template=SCREEN, width=720, height=120 + 38 * len(names), margin={"t": 40})
    figure.update_xaxes(title="tokens per round", range=[0, 1.12 * max(1.0, float(high.max()))])
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=names[::-1], showgrid=False, range=[-0.6, len(names) - 0.4])
    return figure
