"""The scorecard: what both papers print, and ours beside it."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart, check, marks, span_of
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.headings import name_rows, under_headings
from specdec_lib.show.figures.rows import KIND_NAMES
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, SOURCES, Look

PRINTED = "printed"
VERDICTS = {
    "reproduced": Look(SOURCES["n-gram"]),
    "larger": Look(SOURCES["middle"], symbol="triangle-right"),
    "smaller": Look(GAIN, symbol="triangle-left"),
    "compatible, too wide": Look(INK, symbol="circle-open"),
    "opposite": Look(LOSS, symbol="x"),
    "too few to tell": Look(INK, symbol="square-open"),
}
KINDS = {rf": {kind}$": f": {said}" for kind, said in KIND_NAMES.items()}
WAYS = {"clock": "by the clock", "counted": "counted", "SWI": "by SWI"}
ITEMS = ("Table 2", "Table 5")  # of SWI: rows behind the gains that are drawn
TICKS = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4)


def scorecard(table: pd.DataFrame) -> go.Figure:
    """Printed gains beside ours: a row per claim under its table of a paper, those by the clock
    first, then counted ones, then SWI; the printed ratio as a diamond, ours as a mark with a 95 %
    interval, whose colour and form say the verdict. Right of the dotted line ours goes the way that
    the paper's does: where it prints a ratio below 1, such as of bytes, the inverse is drawn, and
    its name says so.

    table    as `claims.score` gives it: a row per claim with `paper`, `item`, `claim`, `by`,
             `paper_value`, `ours` with `low` to `high`, `no_effect`, `kind` and `verdict`. Only
             gains that have a number on both sides are drawn, of SWI those over the best single
             drafter
    """
    check(table, "paper item claim", "by paper_value ours low high no_effect kind verdict")
    some = table.dropna(subset=["ours", "paper_value"]).query("kind == 'gain'")
    gains = len(some)
    some = some[~((some["by"] == "SWI") & some["item"].isin(ITEMS))]
    some, inverse = _as_ratios(some)
    order = list(WAYS)
    some = some.sort_values("by", key=lambda own: own.map(order.index), kind="stable")
    some["name"] = some["claim"].replace(KINDS, regex=True)
    some["name"] += np.where(inverse[some.index], ", inverse", "")
    some["of"] = some["paper"] + ", " + some["item"] + ", " + some["by"].map(WAYS)
    some["place"], words = under_headings(some, "of", "name")
    counts = some["verdict"].value_counts()
    called = {name: f"{name} ({counts[name]})" for name in VERDICTS if name in counts}
    some["said"] = some["verdict"].map(called)
    ours = marks(some, "ours", "place", series="said", ends="low ours high", note="{verdict}")
    theirs = marks(some, "paper_value", "place").assign(series=PRINTED)
    ends = span_of(pd.concat([ours[["x", "low", "high"]], theirs[["x"]]]))
    x = "gain as a ratio, logarithmic (dotted: none); inverse: 1 ÷ what is printed below 1"
    chart = Chart(wide=980, high=60 + 22 * len(words), x=x)
    add_dots(chart, theirs, {PRINTED: Look(INK, symbol="diamond-open")}, lying=True, size=10)
    for name, said in called.items():
        own = ours[ours["series"] == said]
        add_dots(chart, own, {said: VERDICTS[name]}, lying=True, size=9)
    name_rows(chart, words)
    low, high = 0.92 * max(ends[0], 0.05), 1.08 * ends[1]
    chart.count_in_factors("x", [tick for tick in TICKS if low <= tick <= high], (low, high))
    of_swi = " (of SWI only those over one drafter)" if len(some) < gains else ""
    return chart.titled(f"Printed gains, and ours{of_swi}", plain="x", room=72)


def _as_ratios(some: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Gains in percent as ratios, and ratios printed below 1 inverted; and which are those."""
    some = some.copy()
    percent = some["no_effect"] == 0
    for column in ("paper_value", "ours", "low", "high"):
        some[column] = some[column].where(~percent, 1 + some[column] / 100)
    inverse = some["paper_value"] < 1
    some["low"], some["high"] = (
        some["low"].where(~inverse, 1 / some["high"]),
        some["high"].where(~inverse, 1 / some["low"]),
    )
    for column in ("paper_value", "ours"):
        some[column] = some[column].where(~inverse, 1 / some[column])
    return some, inverse
