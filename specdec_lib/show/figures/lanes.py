"""What the figures of the cascade share: a headline, a look per domain, bands, dots in lanes, and
hollow marks for the paper's numbers.
"""

from collections.abc import Iterable, Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.marks import Look, faint, interval, looks, short, tops, wrapped
from specdec_lib.show.figures.theme import INK, SCREEN, escaped

DOMAINS = ("code", "math", "prose")
EMPTY = {"template": SCREEN, "margin": {"t": 56}, "showlegend": True}  # of a figure without panels
HOLLOW = ("diamond-open", "square-open", "circle-open", "triangle-up-open")
HEADLINE, CHARACTER, BESIDE = (
    30,
    7.8,
    200,
)  # pixels: of a line, of one of its characters, and beside it
PAPERS = "paper"  # what the legend calls the hollow marks


def headed(figure: go.Figure, title: str) -> go.Figure:
    """The figure with a headline above its legend, broken into lines where it is narrow, and as
    much taller as that takes.
    """
    text = wrapped(title, max(24, int((figure.layout.width - BESIDE) / CHARACTER)))
    room = HEADLINE + 20 * text.count("<br>")
    return figure.update_layout(
        title={"text": text},
        margin={"t": figure.layout.margin.t + room},
        height=figure.layout.height + room,
    )


def domain_looks(names: Iterable[object]) -> dict[str, Look]:
    """A look per domain, the same in every figure for the three domains of the prompts."""
    return looks((*DOMAINS, *names))


def drafter_looks(names: Iterable[object]) -> dict[str, Look]:
    """A look per drafter, Max-Gram in the colour of the statistical models."""
    words = list(dict.fromkeys(map(str, names)))
    found = looks("n-gram" if word == "Max-Gram" else word for word in words)
    return {word: found["n-gram" if word == "Max-Gram" else word] for word in words}


def hollow(number: int = 0, *, size: float = 10) -> dict[str, object]:
    """The mark of the paper's numbers; where it has several data sets, each has a shape of its own."""
    return {
        "color": INK,
        "symbol": HOLLOW[number % len(HOLLOW)],
        "size": size,
        "line": {"color": INK, "width": 2},
    }


def band(
    rows: pd.DataFrame, x: str, look: Look, *, low: str = "low", high: str = "high", group: str = ""
) -> go.Scatter:
    """The veil from `low` to `high` along `x`; rows without an interval are left out."""
    rows = rows.dropna(subset=[low, high])
    xs, lows, highs = (rows[column].tolist() for column in (x, low, high))
    edge = {
        "x": [*xs, *xs[::-1]],
        "y": [*lows, *highs[::-1]],
        "mode": "lines",
        "line": {"width": 0},
    }
    return go.Scatter(
        **edge,
        fill="toself",
        fillcolor=faint(look.colour),
        legendgroup=group,
        showlegend=False,
        hoverinfo="skip",
    )


def words(
    xs: Iterable[float], ys: Iterable[float], texts: Iterable[str], place: str, *, group: str = ""
) -> go.Scatter:
    """Short texts beside marks."""
    look = {"textposition": place, "textfont": {"size": 11}, "cliponaxis": False}
    return go.Scatter(
        x=list(xs),
        y=list(ys),
        mode="text",
        text=list(texts),
        **look,
        legendgroup=group,
        showlegend=False,
        hoverinfo="skip",
    )


def lying(
    rows: pd.DataFrame,
    value: str,
    heights: Sequence[float],
    marker: dict[str, object],
    look: Look,
    *,
    name: str,
) -> list[go.Scatter]:
    """Dots at their heights, their values right of them; with lying intervals where there are
    `<value>_low` and `<value>_high`.
    """
    ends = {"low": f"{value}_low", "high": f"{value}_high"}
    known = set(ends.values()) <= set(rows.columns)
    dots = go.Scatter(
        x=rows[value],
        y=list(heights),
        mode="markers",
        marker=marker,
        error_x=interval(rows, value, look, **ends) if known else None,
        name=escaped(name),
        legendgroup=name,
        customdata=rows[list(ends.values())].to_numpy() if known else None,
        hovertemplate="%{x:.3f}"
        + (" (%{customdata[0]:.3f} to %{customdata[1]:.3f})" if known else "")
        + "<extra>%{fullData.name}</extra>",
    )
    texts = ["\u2003" + short(number) for number in rows[value]]
    return [
        dots,
        words(tops(rows, value, high=ends["high"]), heights, texts, "middle right", group=name),
    ]


def key(
    figure: go.Figure, shown: set[str], trace: go.Scatter | go.Bar, where: dict[str, int]
) -> None:
    """Add a trace to a panel; its name enters the legend once, however many panels have it."""
    if trace.name:
        trace.showlegend = trace.name not in shown
        shown.add(trace.name)
    figure.add_trace(trace, **where)
