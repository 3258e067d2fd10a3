"""The chart of a scorecard: what was measured here against what the papers print."""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import COUNTED, MEASURED, PREDICTED, add_diagonal, add_dots
from specdec_lib.show.figures.marks import check, marks
from specdec_lib.show.figures.theme import looks

SAID = {"clock": MEASURED, "counted": COUNTED, "SWI": COUNTED, "predicted": PREDICTED}


def scorecard(table: pd.DataFrame) -> go.Figure:
    """Our speed-up over plain decoding, or over another method, against the printed one: a mark per
    claim, a series per table or figure of the paper, a panel per paper; the legend says how ours
    was found.

    table    as of `claims.score`: `paper`, `item`, `claim`, `by`, `paper_value`, `ours`, `low`,
             `high`, `no_effect`, `verdict`; claims that are no speed-ups are left out
    """
    check(table, "paper item claim", "by paper_value ours low high no_effect verdict")
    some = table[(table["no_effect"] == 1) & table["ours"].notna() & table["paper_value"].notna()]
    some = some[some["by"] != "counted"].sort_values(["paper", "item"], ascending=[False, True])
    swi = some["by"].map({"SWI": ", SWI"}).fillna("")
    some = some.assign(series=some["paper"] + ", " + some["item"] + swi)
    by = {"series": "series", "panel": "paper", "ends": "low ours high"}
    rows = marks(some, "paper_value", "ours", note="{claim}: {verdict}", **by)
    values = pd.concat([some["paper_value"], some["ours"], some["low"], some["high"]])
    x, y = "printed in the paper (× the other method)", "found here (× the other method)"
    chart = Chart(rows["panel"], wide=430, high=440, x=x, y=y)
    ends = 0.9 * float(values.min()), 1.1 * float(values.max())
    add_diagonal(chart, ends, name="as printed")
    styles = looks(rows["series"])
    for name, own in rows.groupby("series", sort=False):
        add_dots(chart, own, {name: styles[name]}, by=SAID[own["by"].iloc[0]])
    log = [math.log10(end) for end in ends]  # plotly wants a logarithmic axis' ends as exponents
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 3, 4, 6, 8, 10) if ends[0] <= tick <= ends[1]]
    axis = {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
    axis["range"] = log
    chart.figure.update_xaxes(axis).update_yaxes(axis)
    found = some["verdict"].value_counts()
    order = ["reproduced", "same sign, smaller", "same sign, larger", "sign unsettled", "opposite"]
    said = "; ".join(f"{found[one]} {one}" for one in order if one in found.index)
    formulas = (some["by"] == "predicted").sum()
    return chart.titled(
        f"{len(some)} printed speed-ups, {formulas} of them formulas: {said}",
        plain="y",
    )
