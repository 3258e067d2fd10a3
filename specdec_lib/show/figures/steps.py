"""One step of a round: the numbers that decided it."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import check
from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES, escape, visible

WIDTH, ROW, AROUND = 760, 26, 150  # pixels: of a figure, of a candidate, and of what is around
LABEL = 16  # characters
CHOSEN, GUESSED = SOURCES["target"], SOURCES["draft"]
FONT = {"family": MONOSPACE, "size": 12}
NUMBER = {"symbol": "line-ns-open", "size": 17, "color": CHOSEN, "line_width": 3}
Picture = tuple[list[go.Bar | go.Scatter], list[str], dict[str, object]]


def step(table: pd.DataFrame, *, title: str) -> go.Figure:
    """The candidates of one step of a round and the random number that decided between them.

    table    of a `show.steps.Step`: a row per candidate with its `text`, what decided, and where
             they are known `chosen`, `child` (its number, 0 for none), `after` and `score`
    """
    draw = _draw_coin if "wanted" in table else _draw_sums if "noise" in table else _draw_parts
    table = pd.DataFrame({"chosen": False, "child": 0}, table.index).assign(**table)
    guessed = table["child"].astype(bool) | ("after" in table)
    table["colour"] = np.select([table["chosen"], guessed], [CHOSEN, GUESSED], INK)
    traces, words, axis = draw(table)
    names = ["the coin"] * (draw is _draw_coin) + [*map(_name, table.to_dict("records"))]
    figure = go.Figure(traces)
    where = {"x": 0.66, "xref": "paper", "xanchor": "left", "yref": "y", "showarrow": False}
    for place, text in enumerate(words):
        figure.add_annotation(text=text, y=place, font=FONT, **where)
    look = {"template": SCREEN, "barmode": "overlay", "dragmode": False, "margin": {"t": 84}}
    size = {"width": WIDTH, "height": ROW * len(names) + AROUND}
    figure.update_layout(size, title={"text": escape(title)}, **look)
    ticks = {"tickvals": list(range(len(names))), "ticktext": names, "tickfont": FONT}
    look = {"range": [len(names) - 0.5, -0.5], "showgrid": False, "fixedrange": True}
    figure.update_yaxes(ticks | look, title="candidate")
    return figure.update_xaxes(axis, domain=[0, 0.64], fixedrange=True)


def _name(row: dict[str, object]) -> str:
    """A candidate in words: bold where chosen, with the number of the guess that holds it."""
    name = escape(visible(str(row["text"]), LABEL))
    after = f"{escape(visible(str(row['after']), LABEL))} → " if "after" in row else ""
    child = f"  child {row['child']}" if row["child"] else ""
    return f"{after}<b>{name}</b>{child}" if row["chosen"] else f"{after}{name}{child}"


def _dots(xs: pd.Series, name: str, **marker: object) -> go.Scatter:
    return go.Scatter(x=list(xs), y=[*range(len(xs))], mode="markers", marker=marker, name=name)


def _bars(xs: pd.Series, name: str, first: int = 0, **look: object) -> go.Bar:
    places = list(range(first, first + len(xs)))
    return go.Bar(x=list(xs), y=places, orientation="h", name=name).update(look)


def _draw_sums(table: pd.DataFrame) -> Picture:
    """From each log-probability, the noise leads to the sum; the largest sum wins."""
    starts, sums, won = table["log_probability"], table["sum"], table["chosen"]
    look = {"color": list(table["colour"])}
    circle = look | {"symbol": "circle-open", "size": 9, "line": {"width": 2}}
    kinds = look | {"symbol": np.where(won, "star", "diamond"), "size": np.where(won, 15, 10)}
    thin = {"base": list(starts), "width": 0.07, "hoverinfo": "skip", "marker": {"color": INK}}
    traces = [_bars(table["noise"], "noise", **thin), _dots(starts, "log-probability", **circle)]
    traces.append(_dots(sums, "sum: the largest wins", **kinds))
    said = "{log_probability:.2f} + {noise:.2f} = {sum:.2f}"
    said += "   score {score:.2f}" * ("score" in table)
    words = [said.format_map(row).replace("+ -", "- ") for row in table.to_dict("records")]
    both = pd.concat([starts, sums])
    finite = both[np.isfinite(both)]
    least, most = (finite.min(), finite.max()) if len(finite) else (-1.0, 0.0)
    apart = 0.05 * (most - least + 1)
    axis = {"title": "nats", "range": [least - apart, most + apart]}
    return traces, [word.replace("-", "−") for word in words], axis


def _draw_parts(table: pd.DataFrame) -> Picture:
    """Each candidate's part of [0, 1), and the number that falls into one."""
    check(table, "", "text low high uniform")
    look = {"marker": {"color": list(table["colour"])}, "base": list(table["low"])}
    traces = [_bars(table["high"] - table["low"], "part", **look)]
    traces.append(_dots(table["uniform"], "the number", **NUMBER))
    drawn = table["chosen"] | ("after" in table)
    words = table["low"].map("{:.3f}".format) + " to " + table["high"].map("{:.3f}".format)
    words += table["uniform"].map("   number {:.3f}".format).where(drawn, "")
    title = "a number in [0, 1) draws the token on whose part it falls"
    return traces, list(words), {"title": title, "range": [0, 1]}


def _draw_coin(table: pd.DataFrame) -> Picture:
    """On top the coin, the number against the part that keeps the child; then the distributions."""
    first = table.iloc[:1]
    kept, limit, uniform = first[["kept", "probability", "uniform"]].iloc[0]
    shown = [("wanted", CHOSEN, ""), ("offered", GUESSED, "/"), ("left", SOURCES["n-gram"], "x")]
    shown = shown[: 2 if kept else 3]
    coin = {"marker": {"color": INK}, "width": 0.8, "offset": -0.4}
    traces = [_bars(first["probability"], "kept below", **coin)]
    traces.append(_dots(first["uniform"], "the number", **NUMBER))
    for number, (name, colour, hatch) in enumerate(shown):
        marker, wide = {"color": colour, "pattern": {"shape": hatch}}, 0.8 / len(shown)
        look = {"marker": marker, "width": wide, "offset": -0.4 + number * wide}
        traces.append(_bars(table[name], name, 1, **look))
    words = [f"{uniform:.3f} {'<' if kept else '≥'} {limit:.3f}: {'kept' if kept else 'rejected'}"]
    said = "{wanted:.3f}, {offered:.3f}" + " → {left:.3f}" * (not kept)
    words += [said.format_map(row) for row in table.to_dict("records")]
    return traces, words, {"title": "probability", "range": [0, 1]}
