"""One part taken away at a time: the tree, a stage, a level of the stack, the scout."""

from numbers import Real

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.labels import spread
from specdec_lib.show.figures.marks import (
    Look,
    check,
    check_once,
    groups,
    interval,
    looks,
    panels,
    place,
    short,
    tops,
    wrapped,
)
from specdec_lib.show.figures.theme import SOURCES, escaped

ONE = Look(SOURCES["draft"], "solid", "circle")
ASIDE, LABEL = (
    0.07,
    0.11,
)  # from one shape's dot to the next, and from the middle to the words, in stages
TITLE = 42  # characters of a line beside the y axis
ROOM = 1.28  # of an axis with words right of its dots, against its highest value


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A value with one stage and with two, a line with intervals per shape of tree; a panel per
    sampling, values beside the dots.

    table    a row per dot: `shape` ("chain", "tree"), `stages` (1, 2), `sampling`, `value`, `low`,
             `high`

    Raises ValueError if the table lacks a column or a row, has two rows for one dot, or an interval
    does not hold its value.
    """
    check(table, ("shape", "stages", "sampling", "value", "low", "high"))
    check_once(table, ("shape", "stages", "sampling"))
    samplings = list(groups(table, "sampling"))
    styles = looks(table["shape"])
    counts = sorted(set(table["stages"]))
    figure = panels(
        [name for name, _ in samplings], width=min(900, 110 + 320 * len(samplings)), height=430
    )
    highest = float(tops(table, "value").max())
    for column, (_, rows) in enumerate(samplings, 1):
        for name, own in groups(rows, "shape", along="stages"):
            figure.add_scatter(
                x=own["stages"] + ASIDE * (list(styles).index(name) - (len(styles) - 1) / 2),
                y=own["value"],
                mode="lines+markers",
                line=styles[name].line,
                marker=styles[name].marker(11),
                error_y=interval(own, "value", styles[name]),
                name=escaped(name),
                legendgroup=name,
                showlegend=column == 1,
                customdata=own[["stages", "low", "high"]].to_numpy(),
                hovertemplate="%{customdata[0]} stages: %{y:.3f} (%{customdata[1]:.3f} to %{customdata[2]:.3f})<extra>%{fullData.name}</extra>",
                row=1,
                col=column,
            )
        figure.add_trace(_values_beside(rows, counts, apart=0.055 * highest), row=1, col=column)
    words = [f"{count} stage{'s' if count != 1 else ''}" for count in counts]
    figure.update_xaxes(
        tickvals=counts,
        ticktext=words,
        showgrid=False,
        showline=True,
        range=[counts[0] - 0.5, counts[-1] + 0.5],
    )
    figure.update_yaxes(range=[0, 1.08 * highest])
    figure.update_yaxes(title=wrapped(value_title, TITLE), col=1)
    return figure


def _values_beside(rows: pd.DataFrame, counts: list[Real], *, apart: float) -> go.Scatter:
    """The values as words: left of the first count's dots, right of the others', moved up or down
    where they would touch.
    """
    xs, ys, texts, places = [], [], [], []
    for count, own in rows.dropna(subset=["value"]).groupby("stages"):
        left = count == counts[0]
        xs += [count + (-LABEL if left else LABEL)] * len(own)
        ys += spread(own["value"].astype(float).tolist(), apart)
        texts += [short(value) for value in own["value"]]
        places += ["middle left" if left else "middle right"] * len(own)
    return go.Scatter(
        x=xs,
        y=ys,
        mode="text",
        text=texts,
        textposition=places,
        textfont={"size": 12},
        showlegend=False,
        hoverinfo="skip",
    )


def stages(table: pd.DataFrame) -> go.Figure:
    """What each stack of models reaches, a dot with an interval per stack and a panel per metric;
    the stack of fewest levels on top.

    table    a row per dot: `levels` (models in the stack, the target among them), `stack` (its
             name), `metric`, `value`, `low`, `high`

    Raises ValueError if the table lacks a column or a row, has two rows for one dot, or an interval
    does not hold its value.
    """
    check(table, ("levels", "stack", "metric", "value", "low", "high"))
    check_once(table, ("stack", "metric"))
    table = table.sort_values("levels", kind="stable")
    places = {name: number for number, (name, _) in enumerate(groups(table, "stack"))}
    metrics = list(groups(table, "metric"))
    columns = 2 if len(metrics) == 4 else min(3, len(metrics))
    down = -(-len(metrics) // columns)
    height = 44 + down * (64 + 40 * len(places)) + 30
    figure = panels(
        [name for name, _ in metrics],
        width=min(900, 240 + 300 * columns),
        height=height,
        columns=columns,
    )
    for number, (_, rows) in enumerate(metrics):
        where = place(number, columns)
        _dots(
            figure,
            rows,
            "value",
            [places[str(name)] for name in rows["stack"]],
            name="",
            look=ONE,
            where=where,
        )
        figure.update_xaxes(range=[0, _end(rows, "value")], nticks=5, **where)
    figure.update_layout(margin={"t": 44})
    _rows(figure, [wrapped(name, 30) for name in places])
    return figure


def passes(table: pd.DataFrame) -> go.Figure:
    """Draft passes per round with and without a scout: a row of dots with intervals per draft, one
    dot per scout, a panel per sampling.

    table    a row per dot: `draft` (its name), `scout` ("none", "n-gram", …), `sampling` or
             `temperature`, `passes`, `low`, `high`

    Raises ValueError if the table lacks a column or a row, has two rows for one dot, or an interval
    does not hold its value.
    """
    by = "temperature" if "sampling" not in table and "temperature" in table else "sampling"
    check(table, ("draft", "scout", by, "passes", "low", "high"))
    check_once(table, ("draft", "scout", by))
    styles = looks(table["scout"])
    places = {name: number for number, (name, _) in enumerate(groups(table, "draft"))}
    samplings = list(groups(table, by))
    titles = [
        name if by == "sampling" else f"temperature {name.removesuffix('.0')}"
        for name, _ in samplings
    ]
    height = 150 + len(places) * (24 + 20 * len(styles))
    figure = panels(titles, width=min(900, 220 + 320 * len(samplings)), height=height)
    shown: set[str] = set()
    for number, (_, rows) in enumerate(samplings):
        for lane, scout in enumerate(styles):
            own = rows[rows["scout"].map(str) == scout]
            if own.empty:
                continue
            aside = (lane - (len(styles) - 1) / 2) * 0.7 / len(styles)
            heights = [places[str(name)] + aside for name in own["draft"]]
            _dots(
                figure,
                own,
                "passes",
                heights,
                name=scout,
                look=styles[scout],
                where=place(number, len(samplings)),
                legend=scout not in shown,
            )
            shown.add(scout)
    figure.update_xaxes(title="draft passes per round", range=[0, _end(table, "passes")])
    figure.update_layout(
        showlegend=True, legend={"title": {"text": "scout:  ", "font": {"size": 13}}}
    )
    _rows(figure, [wrapped(name, 26) for name in places])
    return figure


def _dots(
    figure: go.Figure,
    rows: pd.DataFrame,
    value: str,
    heights: list[float],
    *,
    name: str,
    look: Look,
    where: dict[str, int],
    legend: bool = False,
) -> None:
    """Dots with lying intervals, and their values right of them."""
    ends = tops(rows, value)
    figure.add_scatter(
        x=rows[value],
        y=heights,
        mode="markers",
        marker=look.marker(10),
        error_x=interval(rows, value, look),
        name=escaped(name),
        legendgroup=name,
        showlegend=legend,
        customdata=rows[["low", "high"]].to_numpy(),
        hovertemplate="%{x:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra>%{fullData.name}</extra>",
        **where,
    )
    texts = ["\u2002" + short(number) for number in rows[value]]
    words = {
        "mode": "text",
        "text": texts,
        "textposition": "middle right",
        "textfont": {"size": 12},
        "hoverinfo": "skip",
    }
    figure.add_scatter(x=ends, y=heights, **words, legendgroup=name, showlegend=False, **where)


def _end(rows: pd.DataFrame, value: str) -> float:
    """Where an axis ends that starts at 0 and leaves room for the words right of the dots."""
    return ROOM * (float(tops(rows, value).max()) or 1.0)


def _rows(figure: go.Figure, names: list[str]) -> None:
    """Names down the y axes, the first on top."""
    figure.update_yaxes(
        tickvals=list(range(len(names))),
        ticktext=names,
        range=[len(names) - 0.45, -0.55],
        showgrid=False,
        showline=True,
    )
