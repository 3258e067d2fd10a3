"""How figures look: one template for screens, one for paper, one colour per source word.

Colours are those of Okabe and Ito 2008, which people with any common colour vision tell apart;
their black is a grey here, to be seen on a dark page too.
"""

import html
import math
from collections.abc import Iterable, Sequence

import numpy as np
import plotly.graph_objects as go

INK = "#7A7A7A"  # equally far from white and from black paper
DARK = "#1a1a1a"  # text on a tint
MONOSPACE = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"
PROPORTIONAL = "Open Sans, Helvetica Neue, Helvetica, Arial, sans-serif"

SOURCES = {
    "target": "#D55E00",
    "draft": "#0072B2",
    "middle": "#56B4E9",
    "n-gram": "#009E73",
    "prompt": "#E69F00",
    "generation": "#F0E442",
    "bigram": "#CC79A7",
    "context": "#999999",
}
OTHERS = ("#7A5C2E", "#5B4B8A", "#3F6B6B", "#8C4A5A")


def _template(paper: str, ink: str, grid: str) -> go.layout.Template:
    axis = {
        "gridcolor": grid,
        "linecolor": ink,
        "zeroline": False,
        "automargin": True,
        "title": {"standoff": 12, "font": {"size": 13}},
    }
    legend = {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1.0,
        "yanchor": "bottom",
        "bgcolor": "rgba(0,0,0,0)",
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "font": {"family": PROPORTIONAL, "size": 13, "color": ink},
            "title": {
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "y": 1,
                "yref": "container",
                "yanchor": "top",
                "pad": {"t": 20},
                "font": {"size": 16},
            },
            "legend": legend,
            "colorway": [*SOURCES.values(), *OTHERS],
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"font": {"family": MONOSPACE, "size": 12}},
            "modebar": {"remove": ["select", "lasso"], "bgcolor": "rgba(0,0,0,0)", "color": ink},
            "margin": {"l": 24, "r": 24, "t": 76, "b": 24},
        }
    )


SCREEN = _template(paper="rgba(0,0,0,0)", ink=INK, grid="rgba(128,128,128,0.25)")
PAPER = _template(paper="#FFFFFF", ink="#222222", grid="#E3E3E3")


def colours(sources: Iterable[str]) -> dict[str, str]:
    """A colour per source, in order of first appearance: the known words have their own, the others
    share four darker ones in turn.
    """
    words = list(dict.fromkeys(sources))
    others = [word for word in words if word not in SOURCES]
    return {word: SOURCES.get(word) or OTHERS[others.index(word) % len(OTHERS)] for word in words}


def tint(colour: str) -> str:
    """The colour mixed with white, pale enough for dark text on it."""
    return "#" + "".join(
        f"{round(255 - 0.32 * (255 - int(colour[at : at + 2], 16))):02X}" for at in (1, 3, 5)
    )


def escaped(text: str) -> str:
    """Text that plotly shows as it stands, be it code, markup or a dollar sign."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def visible(text: str, longest: int | None = None) -> str:
    """Text with its white space made visible, cut to `longest` characters."""
    shown = "".join(
        {" ": "␣", "\n": "⏎", "\t": "⇥"}.get(mark, mark if mark.isprintable() else "·")
        for mark in text
    )
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return shown or "∅"


def rounded(
    left: float, top: float, right: float, bottom: float
) -> tuple[list[float], list[float]]:
    """The outline of a box with rounded corners, in the y-down pixels of `canvas`, closed."""
    corner = min(4.0, (right - left) / 3)
    bends = ((0.0, 1.0), (0.076, 0.617), (0.293, 0.293), (0.617, 0.076), (1.0, 0.0))
    xs, ys = [], []
    corners = (
        (left, top, 1, 1),
        (right, top, -1, 1),
        (right, bottom, -1, -1),
        (left, bottom, 1, -1),
    )
    for number, (x, y, inward_x, inward_y) in enumerate(corners):
        for along, across in bends if number % 2 == 0 else bends[::-1]:
            xs.append(x + inward_x * corner * along)
            ys.append(y + inward_y * corner * across)
    return [*xs, xs[0]], [*ys, ys[0]]


def outlines(boxes: Sequence[tuple[float, float, float, float]]) -> dict[str, np.ndarray]:
    """Many boxes (left, top, right, bottom) as the x and y of one trace that is filled to itself."""
    xs: list[float] = []
    ys: list[float] = []
    for box in boxes:
        x, y = rounded(*box)
        xs += [*x, math.nan]
        ys += [*y, math.nan]
    return {"x": np.round(xs, 1), "y": np.round(ys, 1)}


def canvas(figure: go.Figure, width: float, height: float, title: str) -> go.Figure:
    """The figure as a sheet on which one unit is one pixel, y downwards, without axes; the margins
    are added around it.
    """
    top = 76 if title else 48
    hidden = {"visible": False, "fixedrange": True}
    figure.update_layout(
        template=SCREEN,
        title={"text": escaped(title)},
        width=width + 48,
        height=height + top + 24,
        margin={"t": top},
        xaxis={**hidden, "range": [0, width]},
        yaxis={**hidden, "range": [height, 0]},
        dragmode=False,
        hovermode="closest",
        hoverdistance=40,
    )
    return figure
