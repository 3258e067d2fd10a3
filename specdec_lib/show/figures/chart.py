"""A chart in the making: its panels with their axes, its legend and its headline."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType
from plotly.subplots import make_subplots

from specdec_lib.show.figures.labels import wrap
from specdec_lib.show.figures.marks import ends_of, names_of
from specdec_lib.show.figures.theme import INK, SCREEN, escape

PLAIN = {"line": {"dash": "dot", "width": 1.5, "color": INK}, "layer": "below"}  # plain decoding
WIDEST = 1160  # pixels of a figure: it fits a page
LETTER, KEY, LEGEND_ROW = 6.8, 46, 24  # pixels: of a letter, of a legend's mark, of its line
HEADLINE, HEADLINE_LETTER = 21, 8.0  # pixels


@dataclass(frozen=True)
class Chart:
    """A figure of panels, to which forms add their marks.

    panels    row and column of each panel, by its name
    """

    figure: go.Figure
    panels: dict[str, dict[str, int]]

    def add(self, trace: BaseTraceType, panel: str = "") -> None:
        """Add a trace to its panel; a name that several traces have stands in the legend once."""
        known = {other.name for other in self.figure.data if other.showlegend}
        if trace.showlegend is not False:
            trace.showlegend = bool(trace.name) and trace.name not in known
        trace.legendgroup = trace.name
        self.figure.add_trace(trace, **self.panels[panel])

    def titled(self, text: str) -> go.Figure:
        """The figure under a headline; it grows by what headline, legend and panel names take."""
        layout = self.figure.layout
        lines = textwrap.wrap(text, int((layout.width - 60) / HEADLINE_LETTER))
        names = [trace.name for trace in self.figure.data if trace.showlegend]
        head = 18 + HEADLINE * len(lines)
        ticks = max(map(len, layout.yaxis.ticktext or [""]))
        top = head + LEGEND_ROW * _legend_rows(names, layout.width - 80 - min(26, ticks) * LETTER)
        top += 30 if any(self.panels) else 8
        height = layout.height + top
        return self.figure.update_layout(
            title={"text": "<br>".join(map(escape, lines))},
            height=height,
            margin={"t": top},
            showlegend=bool(names),
            legend={"yref": "container", "y": 1 - head / height, "yanchor": "top"},
        )

    def name_places(
        self, axis: str, names: pd.Series | Sequence[str], *, longest: int = 24
    ) -> None:
        """Names, or a column's each once, at 0, 1, 2, … along an axis: from the left, or from the
        top down.
        """
        names = names_of(names) if isinstance(names, pd.Series) else names
        count = len(names)
        ends = (-0.5, count - 0.5) if axis == "x" else (count - 0.5, -0.5)
        ticks = {"tickvals": list(range(count)), "tickangle": 0}
        ticks["ticktext"] = [wrap(name, longest) for name in names]
        self._update(axis, ticks | {"range": ends, "showgrid": False, "showline": True})

    def start_at_zero(
        self, axis: str, rows: pd.DataFrame, room: float, *, least: float = 0.0
    ) -> None:
        """An axis from 0 to `room` times the marks' greatest upper end, or `least`."""
        end = max(least, float(ends_of(rows, axis).max()))
        self._update(axis, {"range": [0, room * (end if end > 0 else 1.0)]})

    def count_in_powers(self, values: Iterable[float]) -> None:
        """An x axis on which each doubling is one step, with a tick at each power of 2."""
        least, most = min(values), max(values)
        ticks = [2**power for power in range(64) if least <= 2**power <= most]
        self.figure.update_xaxes(type="log", tickvals=ticks, ticktext=list(map(str, ticks)))

    def _update(self, axis: str, look: dict[str, object]) -> None:
        {"x": self.figure.update_xaxes, "y": self.figure.update_yaxes}[axis](look)


def open_chart(
    panels: Iterable[str] = ("",),
    *,
    size: tuple[float, float],
    x: str = "",
    y: str = "",
    columns: int | None = None,
    shared_y: bool = True,
    gap: float = 0.05,
) -> Chart:
    """A chart of empty panels, side by side in rows of `columns`.

    size    width in pixels, at most 1160, and height, without what stands above the panels
    x, y    titles of the axes; that of y stands at the first panel of each row
    """
    names = list(dict.fromkeys(panels))
    across = min(columns or len(names), len(names))
    down = -(-len(names) // across)
    figure = make_subplots(
        rows=down,
        cols=across,
        subplot_titles=[escape(name) for name in names],
        shared_yaxes=shared_y,
        horizontal_spacing=gap,
        vertical_spacing=100 / size[1] if down > 1 else 0,
    )
    figure.update_annotations(font={"size": 14})
    figure.update_layout(template=SCREEN, width=min(WIDEST, round(size[0])), height=round(size[1]))
    figure.update_xaxes(title=wrap(x, max(20, int(size[0] / across / 8))))
    figure.update_yaxes(title=wrap(y, max(16, int(size[1] / down / 10))), col=1)
    at = ({"row": place // across + 1, "col": place % across + 1} for place in range(len(names)))
    return Chart(figure, dict(zip(names, at, strict=True)))


def fold(count: int) -> tuple[int, int]:
    """Columns and rows of so many panels: at most three side by side."""
    across = 2 if count == 4 else min(3, count)
    return across, -(-count // across)


def _legend_rows(names: Sequence[str], width: float) -> int:
    """How many lines the legend takes: plotly gives all entries the room of the widest, unless all
    stand in one line.
    """
    wide = [KEY + LETTER * len(name) for name in names]
    if sum(wide) <= width:
        return min(1, len(names))
    return -(-len(names) // max(1, int(width / max(wide))))
