"""What a round yields, with the target's own token and without it."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import headed
from specdec_lib.show.figures.marks import check, check_once, looks, short, wrapped
from specdec_lib.show.figures.theme import INK, SCREEN, SOURCES, tint

ENDS = {
    True: ("tokens_per_round_low", "tokens_per_round_high"),
    False: ("accepted_per_round_low", "accepted_per_round_high"),
}


def yields(table: pd.DataFrame, *, bonus: bool = True) -> go.Figure:
    """Tokens per round: a lying bar per series of accepted guesses and, hatched behind it, the
    token that the target adds to every round.

    table    a row per series, as of `acceptance.tokens`: `series`, `rounds`, `tokens_per_round` and
             `accepted_per_round`, both with `_low` and `_high` (NaN: no interval)
    bonus    False leaves the target's token out, and shows the interval of what is left

    Raises ValueError if the table lacks a column or a row, or has two rows for one series.
    """
    check(
        table,
        ("series", "rounds", "tokens_per_round", "accepted_per_round", *ENDS[True], *ENDS[False]),
    )
    check_once(table, ("series",))
    names = [wrapped(str(name), 24) for name in table["series"]]
    accepted, emitted = (
        table["accepted_per_round"].astype(float),
        table["tokens_per_round"].astype(float),
    )
    figure, guessed, own = go.Figure(), SOURCES["draft"], SOURCES["target"]
    bar = {"y": names, "orientation": "h", "customdata": table[["rounds"]].to_numpy()}
    marker = {"color": tint(guessed), "line": {"color": guessed, "width": 1.5}}
    hover = "%{y}: %{x:.2f} per round over %{customdata[0]:,} rounds<extra>%{fullData.name}</extra>"
    figure.add_bar(x=accepted, **bar, marker=marker, name="accepted guesses", hovertemplate=hover)
    if bonus:
        hatch = {"shape": "/", "fgcolor": own, "bgcolor": tint(own), "size": 6, "solidity": 0.25}
        marker = {"color": tint(own), "line": {"color": own, "width": 1.5}, "pattern": hatch}
        figure.add_bar(
            x=emitted - accepted,
            **bar,
            marker=marker,
            name="the target's own token",
            hovertemplate=hover,
        )
    ends, shown = table[list(ENDS[bonus])].astype(float), emitted if bonus else accepted
    look = looks(["draft"])["draft"]
    low, high = (ends[name].fillna(shown) for name in ENDS[bonus])
    error = {
        "type": "data",
        "array": high - shown,
        "arrayminus": shown - low,
        "color": INK,
        "thickness": 1.6,
        "width": 4,
    }
    marks = look.marker(5) | {"color": INK}
    figure.add_scatter(
        x=shown,
        y=names,
        mode="markers",
        marker=marks,
        error_x=error,
        showlegend=False,
        hoverinfo="skip",
    )
    texts = {
        "text": [f"\u2002{short(value)}" for value in shown],
        "textposition": "middle right",
        "cliponaxis": False,
    }
    figure.add_scatter(
        x=high,
        y=names,
        mode="text",
        **texts,
        textfont={"size": 12},
        showlegend=False,
        hoverinfo="skip",
    )
    figure.add_vline(
        x=1 if bonus else 0, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below"
    )
    layout = {
        "barmode": "stack",
        "bargap": 0.4,
        "showlegend": True,
        "legend": {"traceorder": "normal"},
    }
    figure.update_layout(
        template=SCREEN, width=760, height=140 + 34 * len(names), margin={"t": 56}, **layout
    )
    words = "tokens per round" if bonus else "accepted guesses per round"
    figure.update_xaxes(title=words, range=[0, 1.15 * float(max(1.0, high.max()))])
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return headed(
        figure,
        f"{words.capitalize()}; a draft that is never right gives {1 if bonus else 0} (dotted)",
    )
