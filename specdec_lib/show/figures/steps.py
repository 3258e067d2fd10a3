"""One step of a round: the numbers that decided it."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES, escape, visible

WIDTH, ROW, AROUND = 760, 26, 150  # pixels: of a figure, of a candidate, and of what is around
LABEL = 16  # characters
NEEDS = {
    "coin": ("text", "wanted", "offered", "left", "probability", "uniform", "kept"),
    "sums": ("text", "log_probability", "noise", "sum"),
    "draws": ("text", "low", "high", "uniform"),
    "scores": ("text", "score"),
}
CHOSEN, GUESSED = SOURCES["target"], SOURCES["draft"]
Rows = list[dict[str, object]]


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
    having = [name for name, columns in NEEDS.items() if set(columns) <= set(table.columns)]
    if table.empty or not having:
        raise ValueError(
            f"a step is drawn from a row per candidate with the columns of {NEEDS}, got"
            f" {len(table)} rows of {list(table.columns)}"
        )
    rows = table.to_dict("records")
    draw = {"coin": _draw_coin, "sums": _draw_sums, "draws": _draw_parts, "scores": _draw_scores}
    traces, words, axis = draw[having[0]](rows)
    names = [*(["the coin"] if having[0] == "coin" else []), *map(_name, rows)]
    figure = go.Figure(traces)
    for place, text in enumerate(words):
        where = {"x": 0.66, "xref": "paper", "xanchor": "left", "y": place, "yref": "y"}
        font = {"family": MONOSPACE, "size": 12}
        figure.add_annotation(text=text, **where, showarrow=False, font=font)
    figure.update_layout(
        template=SCREEN,
        width=WIDTH,
        height=ROW * len(names) + AROUND,
        title={"text": escape(title)},
        margin={"t": 84},
        barmode="overlay",
        dragmode=False,
    )
    ticks = {"tickvals": list(range(len(names))), "ticktext": names, "showgrid": False}
    font = {"family": MONOSPACE, "size": 12}
    ends = [len(names) - 0.5, -0.5]
    figure.update_yaxes(**ticks, tickfont=font, range=ends, fixedrange=True, title="candidate")
    figure.update_xaxes(**axis, domain=[0, 0.64], fixedrange=True)
    return figure


def _name(row: dict[str, object]) -> str:
    """A candidate in words: bold where chosen, with the number of the guess that holds it."""
    name = escape(visible(str(row["text"]), LABEL))
    after = f"{escape(visible(str(row['after']), LABEL))} → " if "after" in row else ""
    marks = f"  child {row['child']}" if row.get("child") else ""
    return f"{after}<b>{name}</b>{marks}" if row.get("chosen") else f"{after}{name}{marks}"


def _colour(row: dict[str, object]) -> str:
    guessed = row.get("child") or "after" in row
    return CHOSEN if row.get("chosen") else GUESSED if guessed else INK


def _dots(xs: Sequence[float], ys: Sequence[float], name: str, **marker: object) -> go.Scatter:
    return go.Scatter(x=list(xs), y=list(ys), mode="markers", marker=marker, name=name)


def _bars(xs: Sequence[float], first: int, name: str, **look: object) -> go.Bar:
    places = list(range(first, first + len(xs)))
    return go.Bar(x=list(xs), y=places, orientation="h", name=name, **look)


def _number(xs: Sequence[float], ys: Sequence[float]) -> go.Scatter:
    line = {"symbol": "line-ns-open", "size": 17, "color": CHOSEN, "line": {"width": 3}}
    return _dots(xs, ys, "the number", **line)


def _draw_sums(rows: Rows) -> tuple[list[go.Scatter], list[str], dict[str, object]]:
    """From each log-probability, the noise leads to the sum; the largest sum wins."""
    places, colours = list(range(len(rows))), [_colour(row) for row in rows]
    starts, sums = ([row[name] for row in rows] for name in ("log_probability", "sum"))
    xs = [value for pair in zip(starts, sums, strict=True) for value in (*pair, None)]
    ys = [value for place in places for value in (place, place, None)]
    look = {"mode": "lines", "line": {"color": INK, "width": 2}, "name": "noise"}
    won = [bool(row.get("chosen")) for row in rows]
    sizes, symbols = (
        [15 if one else 10 for one in won],
        ["star" if one else "diamond" for one in won],
    )
    open_circle = {"symbol": "circle-open", "size": 9, "line": {"width": 2}}
    traces = [
        go.Scatter(x=xs, y=ys, hoverinfo="skip", **look),
        _dots(starts, places, "log-probability", color=colours, **open_circle),
        _dots(sums, places, "sum: the largest wins", color=colours, size=sizes, symbol=symbols),
    ]
    words = [
        f"{row['log_probability']:.2f} {'+' if row['noise'] >= 0 else '-'} {abs(row['noise']):.2f}"
        f" = {row['sum']:.2f}" + (f"   score {row['score']:.2f}" if "score" in row else "")
        for row in rows
    ]
    finite = [value for value in (*starts, *sums) if abs(value) < float("inf")] or [-1.0, 0.0]
    apart = 0.05 * (max(finite) - min(finite) + 1)
    axis = {"title": "nats", "range": [min(finite) - apart, max(finite) + apart]}
    return traces, [word.replace("-", "−") for word in words], axis


def _draw_parts(rows: Rows) -> tuple[list[go.Bar | go.Scatter], list[str], dict[str, object]]:
    """Each candidate's part of [0, 1), and the number that falls into one."""
    parts = [row["high"] - row["low"] for row in rows]
    paint = {"color": [_colour(row) for row in rows]}
    traces = [
        _bars(parts, 0, "part", marker=paint, base=[row["low"] for row in rows]),
        _number([row["uniform"] for row in rows], range(len(rows))),
    ]
    words = [
        f"{row['low']:.3f} to {row['high']:.3f}"
        + (f"   number {row['uniform']:.3f}" if "after" in row or row.get("chosen") else "")
        for row in rows
    ]
    title = "a number in [0, 1) draws the token on whose part it falls"
    return traces, words, {"title": title, "range": [0, 1]}


def _draw_coin(rows: Rows) -> tuple[list[go.Bar | go.Scatter], list[str], dict[str, object]]:
    """On top the coin: the number against the part of [0, 1) that keeps the child; below it what is
    wanted, was offered, and is left.
    """
    kept, limit, uniform = (rows[0][name] for name in ("kept", "probability", "uniform"))
    shown = {"wanted": (CHOSEN, ""), "offered": (GUESSED, "/")}
    if not kept:
        shown["left"] = (SOURCES["n-gram"], "x")
    wide = 0.8 / len(shown)
    traces = [
        _bars([limit], 0, "kept below", marker={"color": INK}, width=0.8, offset=-0.4),
        _number([uniform], [0]),
    ]
    for number, (name, (colour, hatch)) in enumerate(shown.items()):
        look = {"marker": {"color": colour, "pattern": {"shape": hatch}}, "width": wide}
        values = [row[name] for row in rows]
        traces.append(_bars(values, 1, name, offset=-0.4 + number * wide, **look))
    verdict = "< {:.3f}: kept" if kept else "≥ {:.3f}: rejected"
    words = [f"{uniform:.3f} {verdict.format(limit)}"]
    for row in rows:
        left = "" if kept else f" → {row['left']:.3f}"
        words.append(f"{row['wanted']:.3f}, {row['offered']:.3f}{left}")
    return traces, words, {"title": "probability", "range": [0, 1]}


def _draw_scores(rows: Rows) -> tuple[list[go.Bar], list[str], dict[str, object]]:
    scores = [row["score"] for row in rows]
    bars = _bars(scores, 0, "score", marker={"color": GUESSED}, showlegend=False)
    words = [f"{score:.2f}" for score in scores]
    return [bars], words, {"title": "score of the path", "range": [0, 1]}
