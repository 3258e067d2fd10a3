"""Our numbers beside the paper's: bars per method, and each prompt's relative performance."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.marks import (
    Look,
    check,
    check_once,
    groups,
    interval,
    looks,
    panels,
    short,
    tops,
    wrapped,
)
from specdec_lib.show.figures.theme import INK, escaped, tint

BARS = {
    "paper": ("#999999", "/", -0.2),
    "ours": ("#0072B2", "", 0.2),
}  # colour, hatch, place beside the method's tick
BAR = 0.36  # of the room between two methods
TITLE = 40  # characters of a line beside the y axis


def paper_and_ours(
    table: pd.DataFrame, *, y_title: str, lower_is_better: bool = False
) -> go.Figure:
    """Two bars per method, the paper's and ours, with their values on them; a panel per sampling.

    A NaN leaves its bar out.

    table    a row per sampling and method: `sampling`, `method`, `paper`, `ours`, optionally
             `ours_low` and `ours_high` (an interval)

    Raises ValueError if the table lacks a column or a row, has two rows for one bar, or an interval
    does not hold its value.
    """
    check(table, ("sampling", "method", "paper", "ours"))
    check_once(table, ("sampling", "method"))
    methods = {name: number for number, (name, _) in enumerate(groups(table, "method"))}
    samplings = list(groups(table, "sampling"))
    width = min(900, max(420, 110 + 92 * len(methods) * len(samplings)))
    figure = panels([name for name, _ in samplings], width=width, height=430)
    highest = (
        max(
            (
                float(tops(table, who, high=f"{who}_high").max())
                for who in BARS
                if table[who].notna().any()
            ),
            default=0.0,
        )
        or 1.0
    )
    for column, (_, rows) in enumerate(samplings, 1):
        for who in BARS:
            for trace in _bars(
                rows, who, [methods[str(name)] for name in rows["method"]], first=column == 1
            ):
                figure.add_trace(trace, row=1, col=column)
    room = (width - 110) / len(samplings) / len(methods) / 7.6  # characters to a method
    names = [wrapped(name, max(6, int(room))) for name in methods]
    figure.update_layout(bargap=0)
    figure.update_xaxes(
        tickvals=list(methods.values()),
        ticktext=names,
        tickangle=0,
        range=[-0.55, len(methods) - 0.45],
    )
    figure.update_xaxes(showgrid=False, showline=True)
    figure.update_yaxes(range=[0, 1.1 * highest])
    better = "lower" if lower_is_better else "higher"
    figure.update_yaxes(title=wrapped(f"{y_title} ({better} is better)", TITLE), col=1)
    return figure


def _bars(
    rows: pd.DataFrame, who: str, places: list[int], *, first: bool
) -> tuple[go.Bar, go.Scatter]:
    """The bars of one of the two, and the values above them, clear of the intervals."""
    colour, hatch, aside = BARS[who]
    xs = [place + aside for place in places]
    bars = {"paper_low", "paper_high"} if who == "paper" else {"ours_low", "ours_high"}
    error = (
        interval(rows, who, Look(INK, "solid", "circle"), low=f"{who}_low", high=f"{who}_high")
        if bars <= set(rows.columns)
        else None
    )
    bar = go.Bar(
        x=xs,
        y=rows[who],
        width=BAR,
        name=who,
        legendgroup=who,
        showlegend=first,
        error_y=error,
        marker={
            "color": tint(colour) if hatch else colour,
            "line": {"color": colour, "width": 1.3},
            "pattern": {
                "shape": hatch,
                "fgcolor": colour,
                "bgcolor": tint(colour),
                "size": 6,
                "solidity": 0.3,
            },
        },
        customdata=[escaped(str(method)) for method in rows["method"]],
        hovertemplate="%{customdata}: %{y:.4g}<extra>%{fullData.name}</extra>",
    )
    texts = [short(value) for value in rows[who]]
    values = go.Scatter(
        x=xs,
        y=tops(rows, who, high=f"{who}_high"),
        mode="text",
        text=texts,
        textposition="top center",
        textfont={"size": 12},
        cliponaxis=False,
        legendgroup=who,
        showlegend=False,
        hoverinfo="skip",
    )
    return bar, values


def relative_performance(table: pd.DataFrame) -> go.Figure:
    """Each prompt's relative performance per method, prompts sorted by that of "staged" (or else
    the last method); a panel per sampling.

    table    a row per sampling, prompt and method: `sampling`, `prompt`, `method`, `relative` (1 is
             plain decoding's)

    Raises ValueError if the table lacks a column or a row, or a panel has not one row for each of
    its prompts and methods.
    """
    check(table, ("sampling", "prompt", "method", "relative"))
    check_once(table, ("sampling", "prompt", "method"))
    samplings = list(groups(table, "sampling"))
    styles = looks(table["method"])
    figure = panels(
        [name for name, _ in samplings], width=min(900, 130 + 380 * len(samplings)), height=430
    )
    shown: set[str] = set()
    for column, (sampling, rows) in enumerate(samplings, 1):
        prompts = _ranked(rows, sampling)
        for name, own in groups(rows, "method"):
            own = own.set_index("prompt").loc[prompts]
            figure.add_scatter(
                x=list(range(1, len(prompts) + 1)),
                y=own["relative"],
                mode="lines+markers",
                line=styles[name].line | {"width": 1.2},
                marker=styles[name].marker(8 if len(prompts) <= 40 else 5),
                name=escaped(name),
                legendgroup=name,
                showlegend=name not in shown,
                customdata=[escaped(str(prompt)) for prompt in prompts],
                hovertemplate="%{customdata}, rank %{x}: %{y:.2f}<extra>%{fullData.name}</extra>",
                row=1,
                col=column,
            )
            shown.add(name)
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    figure.add_annotation(
        x=1,
        xref="x domain",
        y=1,
        xanchor="right",
        yanchor="top",
        text="plain decoding",
        showarrow=False,
        font={"size": 12},
    )
    figure.update_layout(showlegend=True)
    most = max(rows["prompt"].nunique() for _, rows in samplings)
    figure.update_xaxes(
        title="rank of the prompt",
        tickvals=_ticks(most),
        range=[0.5 - 0.02 * most, 0.5 + 1.02 * most],
    )
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title="relative performance", col=1)
    return figure


def _ticks(most: int) -> list[int]:
    """1 and round ranks up to `most`, at most eleven in all."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, most) if most <= 10 * step)
    return [1, *range(max(2, step), most + 1, step)]


def _ranked(rows: pd.DataFrame, sampling: str) -> list[object]:
    """The prompts of one panel, from the lowest relative performance of the leading method up."""
    methods = list(dict.fromkeys(rows["method"]))
    prompts = rows["prompt"].nunique()
    if len(rows) != prompts * len(methods):
        wanted = f"{prompts} prompts times {len(methods)} methods"
        raise ValueError(
            f"every prompt needs one row per method: {sampling!r} has {wanted} but {len(rows)} rows"
        )
    lead = rows[rows["method"] == ("staged" if "staged" in methods else methods[-1])]
    return lead.sort_values("relative", kind="stable")["prompt"].tolist()
