"""Rows of a lying chart under headings, so that no name repeats what its neighbours share."""

import pandas as pd

from specdec_lib.show.figures.chart import Chart, groups_of
from specdec_lib.show.figures.theme import names_of, wrap

BETWEEN = {"line": {"width": 1, "color": "rgba(128,128,128,0.35)"}, "layer": "below"}  # rows
LONGEST = 64  # characters in a line of a name


def under_headings(table: pd.DataFrame, heading: str, name: str) -> tuple[pd.Series, list[str]]:
    """A place per row, from the top, and what stands at each place: every value of the column
    `heading`, in bold, takes the place above its names; rows that agree in both columns share one.
    """
    words: list[str] = []
    places: dict[tuple[str, str], float] = {}
    for head, own in groups_of(table, heading):
        words.append(f"<b>{wrap(head, LONGEST)}</b>")
        for one in names_of(own[name]):
            places[str(head), one] = float(len(words))
            words.append(wrap(one, LONGEST))
    pairs = zip(table[heading].map(str), table[name].map(str), strict=True)
    return pd.Series([places[pair] for pair in pairs], table.index), words


def name_rows(chart: Chart, words: list[str]) -> Chart:
    """The words of `under_headings` at the y axis, with a line above each heading but the first."""
    last = len(words) - 0.5
    for place, one in enumerate(words):
        if place and one.startswith("<b>"):
            chart.figure.add_hline(y=place - 0.5, **BETWEEN)
    ticks = {"tickvals": list(range(len(words))), "ticktext": words}
    return chart.axis("y", **ticks, range=[last, -0.5], showgrid=False, showline=True)
