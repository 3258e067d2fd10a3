"""One step of a round: the numbers that decided it."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.labels import escape, visible
from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES

WIDTH, ROW, AROUND = 760, 26, 150  # pixels: of a figure, of a candidate, and of what is around
LABEL = 16  # characters
NEITHER = {"chosen": False, "child": 0}  # where the table does not say
CHOSEN, GUESSED = SOURCES["target"], SOURCES["draft"]
FONT = {"family": MONOSPACE, "size": 12}
Picture = tuple[list[go.Bar | go.Scatter], list[str], dict[str, object]]


def step(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """The candidates of one step of a round and the random number that decided between them: a
    picture by the columns that are there.

    table    a row per candidate with its `text`, and one of these groups of columns:
             `log_probability`, `noise`, `sum`: what is compared; `chosen` and `child` (its number,
             0 for none) mark the winner and the guesses.  `low`, `high`, `uniform`: the part of
             [0, 1) that draws it, and the number; `chosen` marks the one that is drawn.  `wanted`,
             `offered`, `left`, `probability`, `uniform`, `kept`: a coin for the first candidate,
             and the distribution before and after.  `score` alone: how likely the draft thinks its
             path is

    Raises ValueError if the table is empty or has none of these groups.
    """
    having = [name for name in NEEDS if {"text", *name.split()} <= set(table.columns)]
    if table.empty or not having:
        raise ValueError(
            f"a step is drawn from a row per candidate with the columns text and one of"
            f" {list(NEEDS)}, got {len(table)} rows of {list(table.columns)}"
        )
    draw = NEEDS[having[0]]
    table = table.assign(**{name: one for name, one in NEITHER.items() if name not in table})
    traces, words, axis = draw(table)
    names = [*(["the coin"] if draw is _draw_coin else []), *map(_name, table.to_dict("records"))]
    figure = go.Figure(traces)
    where = {"x": 0.66, "xref": "paper", "xanchor": "left", "yref": "y", "showarrow": False}
    for place, text in enumerate(words):
        figure.add_annotation(text=text, y=place, font=FONT, **where)
    figure.update_layout(
        template=SCREEN,
        width=WIDTH,
        height=ROW * len(names) + AROUND,
        title={"text": escape(title)},
        margin={"t": 84},
        barmode="overlay",
        dragmode=False,
    )
    ticks = {"tickvals": list(range(len(names))), "ticktext": names, "tickfont": FONT}
    look = {"range": [len(names) - 0.5, -0.5], "showgrid": False, "fixedrange": True}
    figure.update_yaxes(ticks | look, title="candidate")
    return figure.update_xaxes(axis, domain=[0, 0.64], fixedrange=True)


def _name(row: dict[str, object]) -> str:
    """A candidate in words: bold where chosen, with the number of the guess that holds it."""
    name = escape(visible(str(row["text"]), LABEL))
    after = f"{escape(visible(str(row['after']), LABEL))} → " if "after" in row else ""
    marks = f"  child {row['child']}" if row["child"] else ""
    return f"{after}<b>{name}</b>{marks}" if row["chosen"] else f"{after}{name}{marks}"


def _colours(table: pd.DataFrame) -> list[str]:
    guessed = table["child"].astype(bool) | ("after" in table)
    return np.select([table["chosen"], guessed], [CHOSEN, GUESSED], INK).tolist()


def _dots(xs: pd.Series, name: str, marker: dict[str, object]) -> go.Scatter:
    places = list(range(len(xs)))
    return go.Scatter(x=list(xs), y=places, mode="markers", marker=marker, name=name)


def _bars(xs: pd.Series, name: str, look: dict[str, object], first: int = 0) -> go.Bar:
    places = list(range(first, first + len(xs)))
    return go.Bar(x=list(xs), y=places, orientation="h", name=name).update(look)


def _number(xs: pd.Series) -> go.Scatter:
    line = {"symbol": "line-ns-open", "size": 17, "color": CHOSEN, "line": {"width": 3}}
    return _dots(xs, "the number", line)


def _draw_sums(table: pd.DataFrame) -> Picture:
    """From each log-probability, the noise leads to the sum; the largest sum wins."""
    starts, sums, won = table["log_probability"], table["sum"], table["chosen"]
    xs = [value for pair in zip(starts, sums, strict=True) for value in (*pair, None)]
    ys = [value for place in range(len(table)) for value in (place, place, None)]
    look = {"mode": "lines", "line": {"color": INK, "width": 2}, "name": "noise"}
    paint = {"color": _colours(table)}
    circle = {"symbol": "circle-open", "size": 9, "line": {"width": 2}}
    winner = {"symbol": ["diamond", "star"], "size": [10, 15]}
    ends = {name: [kinds[bool(one)] for one in won] for name, kinds in winner.items()}
    traces = [
        go.Scatter(x=xs, y=ys, hoverinfo="skip", **look),
        _dots(starts, "log-probability", paint | circle),
        _dots(sums, "sum: the largest wins", paint | ends),
    ]
    words = [
        f"{row['log_probability']:.2f} {'+' if row['noise'] >= 0 else '-'} {abs(row['noise']):.2f}"
        f" = {row['sum']:.2f}" + (f"   score {row['score']:.2f}" if "score" in row else "")
        for row in table.to_dict("records")
    ]
    finite = [value for value in (*starts, *sums) if abs(value) < float("inf")] or [-1.0, 0.0]
    apart = 0.05 * (max(finite) - min(finite) + 1)
    axis = {"title": "nats", "range": [min(finite) - apart, max(finite) + apart]}
    return traces, [word.replace("-", "−") for word in words], axis


def _draw_parts(table: pd.DataFrame) -> Picture:
    """Each candidate's part of [0, 1), and the number that falls into one."""
    look = {"marker": {"color": _colours(table)}, "base": list(table["low"])}
    traces = [_bars(table["high"] - table["low"], "part", look), _number(table["uniform"])]
    words = [
        f"{row.low:.3f} to {row.high:.3f}"
        + (f"   number {row.uniform:.3f}" if "after" in table or row.chosen else "")
        for row in table.itertuples()
    ]
    title = "a number in [0, 1) draws the token on whose part it falls"
    return traces, words, {"title": title, "range": [0, 1]}


def _draw_coin(table: pd.DataFrame) -> Picture:
    """On top the coin: the number against the part of [0, 1) that keeps the child; below it what is
    wanted, was offered, and is left.
    """
    kept, limit, uniform = table[["kept", "probability", "uniform"]].iloc[0]
    shown = [("wanted", CHOSEN, ""), ("offered", GUESSED, "/")]
    if not kept:
        shown.append(("left", SOURCES["n-gram"], "x"))
    wide = 0.8 / len(shown)
    coin = {"marker": {"color": INK}, "width": 0.8, "offset": -0.4}
    first = table.iloc[:1]
    traces = [_bars(first["probability"], "kept below", coin), _number(first["uniform"])]
    for number, (name, colour, hatch) in enumerate(shown):
        look = {"marker": {"color": colour, "pattern": {"shape": hatch}}, "width": wide}
        look["offset"] = -0.4 + number * wide
        traces.append(_bars(table[name], name, look, first=1))
    verdict = "< {:.3f}: kept" if kept else "≥ {:.3f}: rejected"
    words = [f"{uniform:.3f} {verdict.format(limit)}"]
    for row in table.itertuples():
        left = "" if kept else f" → {row.left:.3f}"
        words.append(f"{row.wanted:.3f}, {row.offered:.3f}{left}")
    return traces, words, {"title": "probability", "range": [0, 1]}


def _draw_scores(table: pd.DataFrame) -> Picture:
    look = {"marker": {"color": GUESSED}, "showlegend": False}
    words = [f"{score:.2f}" for score in table["score"]]
    axis = {"title": "score of the path", "range": [0, 1]}
    return [_bars(table["score"], "score", look)], words, axis


NEEDS = {
    "wanted offered left probability uniform kept": _draw_coin,
    "log_probability noise sum": _draw_sums,
    "low high uniform": _draw_parts,
    "score": _draw_scores,
}
