"""One step of a round: the numbers that decided it."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES, escaped, visible

WIDTH, ROW, AROUND = (
    760,
    26,
    150,
)  # pixels: of a figure, of a candidate in it, and of what is above and below
LABEL = 16  # characters
NEEDS = {
    "sums": ("text", "log_probability", "noise", "sum"),
    "draws": ("text", "low", "high", "uniform"),
    "coin": ("text", "wanted", "offered", "left", "probability", "uniform", "kept"),
    "scores": ("text", "score"),
}
CHOSEN, GUESSED = SOURCES["target"], SOURCES["draft"]


def step(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """What competed in one step of a round, and the random number that decided: a picture by the
    columns that are there.

    table    a row per candidate with its `text`, and one of these groups of columns:
             `log_probability`, `noise`, `sum`: what is compared; `chosen` and `child` (its number,
             0 for none) mark the winner and the guesses `low`, `high`, `uniform`: the part of [0,
             1) that draws it, and the number; `chosen` marks the one that is drawn `wanted`,
             `offered`, `left`, `probability`, `uniform`, `kept`: a coin for the first candidate,
             and the law before and after `score` alone: how likely the draft thinks its path is

    Raises ValueError if the table is empty or has none of these groups.
    """
    having = [name for name, columns in NEEDS.items() if set(columns) <= set(table.columns)]
    if table.empty or not having:
        raise ValueError(
            f"a step is drawn from a row per candidate with the columns of {NEEDS}, got"
            f" {len(table)} rows of {list(table.columns)}"
        )
    name = "coin" if "coin" in having else having[0]
    figure = {"sums": _sums, "draws": _draws, "coin": _coin, "scores": _scores}[name](table)
    names = [*(["the coin"] if name == "coin" else []), *_names(table)]
    height = ROW * len(names) + AROUND
    look = {
        "template": SCREEN,
        "width": WIDTH,
        "height": height,
        "title": {"text": escaped(title)},
        "margin": {"t": 84},
    }
    figure.update_layout(**look, dragmode=False)
    ticks = {
        "tickvals": list(range(len(names))),
        "ticktext": names,
        "tickfont": {"family": MONOSPACE, "size": 12},
    }
    figure.update_yaxes(**ticks, range=[len(names) - 0.5, -0.5], showgrid=False, fixedrange=True)
    figure.update_xaxes(fixedrange=True)
    return figure


def _names(table: pd.DataFrame) -> list[str]:
    """The candidates as words: bold where chosen, with the number of the guess that holds them."""
    names = []
    for row in table.to_dict("records"):
        name = escaped(visible(str(row["text"]), LABEL))
        after = f"{escaped(visible(str(row['after']), LABEL))} → " if "after" in row else ""
        marks = f"  child {row['child']}" if row.get("child") else ""
        names.append(f"{after}<b>{name}</b>{marks}" if _is_chosen(row) else f"{after}{name}{marks}")
    return names


def _is_chosen(row: dict[str, object]) -> bool:
    return bool(row.get("chosen", False))


def _colour(row: dict[str, object]) -> str:
    return CHOSEN if _is_chosen(row) else GUESSED if row.get("child") or "after" in row else INK


def _sums(table: pd.DataFrame) -> go.Figure:
    """From each log-probability, the noise leads to the sum; the largest sum wins."""
    figure, rows = go.Figure(), table.to_dict("records")
    places, colours = list(range(len(rows))), [_colour(row) for row in rows]
    xs = [value for row in rows for value in (row["log_probability"], row["sum"], None)]
    ys = [value for place in places for value in (place, place, None)]
    figure.add_scatter(
        x=xs, y=ys, mode="lines", line={"color": INK, "width": 2}, name="noise", hoverinfo="skip"
    )
    circle = {"symbol": "circle-open", "size": 9, "color": colours, "line": {"width": 2}}
    figure.add_scatter(
        x=[row["log_probability"] for row in rows],
        y=places,
        mode="markers",
        marker=circle,
        name="log-probability",
    )
    sizes = [15 if _is_chosen(row) else 10 for row in rows]
    symbols = ["star" if _is_chosen(row) else "diamond" for row in rows]
    marker = {"symbol": symbols, "size": sizes, "color": colours}
    figure.add_scatter(
        x=[row["sum"] for row in rows],
        y=places,
        mode="markers",
        marker=marker,
        name="sum: the largest wins",
    )
    words = [
        f"{row['log_probability']:.2f} {'+' if row['noise'] >= 0 else '−'} {abs(row['noise']):.2f}"
        f" = {row['sum']:.2f}"
        for row in rows
    ]
    if "score" in table:
        words = [
            f"{word}   score {row['score']:.2f}" for word, row in zip(words, rows, strict=True)
        ]
    _said(figure, [word.replace("-", "−") for word in words])
    finite = [
        value
        for row in rows
        for value in (row["log_probability"], row["sum"])
        if abs(value) < float("inf")
    ]
    apart = 0.05 * (max(finite) - min(finite) + 1) if finite else 1.0
    figure.update_xaxes(
        title="nats",
        range=[min(finite, default=-1) - apart, max(finite, default=0) + apart],
        domain=[0, 0.64],
    )
    return figure


def _draws(table: pd.DataFrame) -> go.Figure:
    """Each candidate's part of [0, 1), and the number that falls into one."""
    figure, rows = go.Figure(), table.to_dict("records")
    places = list(range(len(rows)))
    parts = [row["high"] - row["low"] for row in rows]
    figure.add_bar(
        x=parts,
        base=[row["low"] for row in rows],
        y=places,
        orientation="h",
        marker={"color": [_colour(row) for row in rows]},
        name="part",
    )
    star = {"symbol": "line-ns-open", "size": 17, "color": CHOSEN, "line": {"width": 3}}
    figure.add_scatter(
        x=[row["uniform"] for row in rows], y=places, mode="markers", marker=star, name="the number"
    )
    words = [
        f"{row['low']:.3f} to {row['high']:.3f}"
        + (f"   number {row['uniform']:.3f}" if "after" in row or _is_chosen(row) else "")
        for row in rows
    ]
    _said(figure, words)
    figure.update_xaxes(
        title="a number in [0, 1) draws the token on whose part it falls",
        range=[0, 1],
        domain=[0, 0.64],
    )
    return figure


def _coin(table: pd.DataFrame) -> go.Figure:
    """On top the coin: the number against the part of [0, 1) that keeps the child; below it what is
    wanted, was offered, and is left.
    """
    figure, kept = go.Figure(), bool(table.kept.iloc[0])
    probability, uniform = float(table.probability.iloc[0]), float(table.uniform.iloc[0])
    figure.add_bar(
        x=[probability],
        y=[0],
        orientation="h",
        marker={"color": INK},
        width=0.8,
        offset=-0.4,
        name="kept below",
    )
    line = {"symbol": "line-ns-open", "size": 17, "color": CHOSEN, "line": {"width": 3}}
    figure.add_scatter(x=[uniform], y=[0], mode="markers", marker=line, name="the number")
    places = list(range(1, len(table) + 1))
    laws = {"wanted": CHOSEN, "offered": GUESSED} | ({} if kept else {"left": SOURCES["n-gram"]})
    for number, ((name, colour), pattern) in enumerate(
        zip(laws.items(), ("", "/", "x"), strict=False)
    ):
        look = {"color": colour, "pattern": {"shape": pattern}}
        wide = 0.8 / len(laws)
        figure.add_bar(
            x=table[name],
            y=places,
            orientation="h",
            marker=look,
            width=wide,
            offset=-0.4 + number * wide,
            name=name,
        )
    words = [
        f"{uniform:.3f} {'<' if kept else '≥'} {probability:.3f}: {'kept' if kept else 'rejected'}"
    ]
    for row in table.itertuples():
        words.append(
            f"{row.wanted:.3f}, {row.offered:.3f}" + ("" if kept else f" → {row.left:.3f}")
        )
    _said(figure, words)
    figure.update_xaxes(title="probability", range=[0, 1], domain=[0, 0.64])
    return figure


def _scores(table: pd.DataFrame) -> go.Figure:
    figure = go.Figure()
    figure.add_bar(
        x=table.score,
        y=list(range(len(table))),
        orientation="h",
        marker={"color": GUESSED},
        showlegend=False,
    )
    _said(figure, [f"{score:.2f}" for score in table.score])
    figure.update_xaxes(title="score of the path", range=[0, 1], domain=[0, 0.64])
    return figure


def _said(figure: go.Figure, words: list[str]) -> None:
    """The numbers in words, right of the picture."""
    for place, text in enumerate(words):
        figure.add_annotation(
            text=text,
            x=0.66,
            xref="paper",
            xanchor="left",
            y=place,
            yref="y",
            showarrow=False,
            font={"family": MONOSPACE, "size": 12},
        )
