"""Charts of dots with intervals along an axis of numbers, or over names that stand side by side."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import COUNTED, MEASURED, PREDICTED, add_diagonal, add_dots
from specdec_lib.show.figures.marks import check, check_among, lanes, marks, names_of, span_of
from specdec_lib.show.figures.theme import PAPERS, SOURCES, Look, escape, looks, with_prefix, wrap

WIDEST = 26  # pixels across the dot of the most tokens
SWEEPS = ("temperature", "domain")
EWIF_LOOKS = {
    "printed": PAPERS[0],
    "recomputed for the same k": Look(SOURCES["draft"]),
    "at the best k, where another is better": Look(SOURCES["target"], symbol="star"),
}
RATES = {"series": "series", "ends": "low rate high", "note": "{at_risk:,.0f} tokens at risk"}
ACCEPTED, RATE = "How often a guess is accepted, by", "acceptance rate"
SAID = {"clock": MEASURED, "counted": COUNTED, "SWI": COUNTED, "predicted": PREDICTED}
TICKS = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 10)  # of a scorecard's axes
VERDICTS = ("reproduced", "same sign, smaller", "same sign, larger", "sign unsettled", "opposite")
PREDICTIONS = {"series": "series", "ends": "low measured high", "note": "{name}"}


def acceptance(
    table: pd.DataFrame, *, x: str, x_title: str, log_x: bool = False, title: str = ""
) -> go.Figure:
    """Acceptance rates as dots with intervals, joined by a line per series.

    table    the column that `x` names, `rate` (NaN draws nothing), `low`, `high`, `at_risk`,
             `series`
    """
    rows = marks(table, x, "rate", **RATES)
    if log_x and not rows["x"].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {rows['x'].min()}")
    chart = Chart(high=384, x=x_title, y=RATE)
    add_dots(chart, rows, joined=2)
    chart.axis("x", type="log" if log_x else "linear", showline=True)
    values = sorted(set(rows["x"]))
    if len(values) <= 24 and all(float(one).is_integer() for one in values):
        words = [with_prefix(one, "") if log_x else f"{one:g}" for one in values]
        chart.axis("x", tickvals=values, ticktext=words)
    chart.show_rates(rows)
    return chart.titled(title or f"{ACCEPTED} {x_title.split(',')[0]}")


def kinds(table: pd.DataFrame, *, x_title: str, title: str = "") -> go.Figure:
    """Acceptance rates as dots with intervals and their values, a place on the axis per kind.

    table    `kind`, `rate` (NaN draws nothing), `low`, `high`, `at_risk`, `series`
    """
    rows = marks(table, lanes(table, "kind", "series", 0.6), "rate", text="rate", **RATES)
    chart = Chart(high=384, x=x_title, y=RATE)
    add_dots(chart, rows, size=11)
    chart.name_places("x", table["kind"])
    chart.show_rates(rows)
    return chart.titled(title or f"{ACCEPTED} {x_title.split(',')[0]}")


def calibration_curve(table: pd.DataFrame) -> go.Figure:
    """Acceptance rate against the draft's confidence, a dot with an interval per bin; the larger
    its area, the more tokens are in it. A panel per way to a confidence.

    table    `confidence` (mean of the bin), `rate`, `low`, `high`, `at_risk`, `series` (its panel)
    """
    rows = marks(table, "confidence", "rate", panel="series", **RATES | {"series": ""})
    share = rows["at_risk"] / max(1.0, float(rows["at_risk"].max()))
    chart = Chart(rows["panel"], wide=450, high=470, x="confidence of the draft", y=RATE)
    add_diagonal(chart, (-0.02, 1.02), name="perfectly calibrated")
    sized = rows.assign(size=(WIDEST * np.sqrt(share)).clip(lower=7))
    add_dots(chart, sized, {"": Look(SOURCES["draft"])}, joined=1)
    return chart.titled("Is the draft's confidence right? Areas are numbers of tokens")


def predicted_tokens(table: pd.DataFrame) -> go.Figure:
    """Measured tokens per round against predicted ones; in the band they agree to 5 %.

    table    `name`, `predicted`, `measured`, `low` and `high` (interval of the measured), `series`,
             `sampling` (a panel each)
    """
    rows = marks(table, "predicted", "measured", panel="sampling", **PREDICTIONS)
    low, high = span_of(rows[["x", "y", "low", "high"]], 0.08, 0.08)
    x, y = (f"{how} tokens per round" for how in ("predicted", "counted"))
    chart = Chart(rows["panel"], wide=450, high=490, x=x, y=y)
    add_diagonal(chart, (low, high), name="as predicted", near=0.05)
    add_dots(chart, rows)
    return chart.titled("Counted against predicted tokens per round: on the line they agree")


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """Measured against predicted tokens per second; in the band they agree to 10 %. The headline
    has the median error, the largest median of one kind, and the largest error.

    table    as of `predicted_tokens`
    """
    rows = marks(table, "predicted", "measured", panel="sampling", **PREDICTIONS)
    values = rows[["x", "y", "low", "high"]].astype(float)
    if (values <= 0).any().any():
        raise ValueError(f"speeds are above 0, got down to {float(values.min().min()):g}")
    x, y = (f"{how}, in tokens per second" for how in ("predicted", "measured"))
    chart = Chart(rows["panel"], wide=395, high=444, x=x, y=y, gap=0.04)
    ends = 0.94 * float(values.min().min()), 1.06 * float(values.max().max())
    add_diagonal(chart, ends, name="as predicted", near=0.1)
    add_dots(chart, rows)
    errors = (values["x"] / values["y"] - 1).abs()
    medians = errors.groupby([rows["panel"], rows["series"]]).median()
    return chart.titled(
        f"Measured against predicted, {len(table)} settings: median error {errors.median():.1%},"
        f" of the worst kind ({', '.join(filter(None, medians.idxmax()))}) {medians.max():.1%};"
        f" largest {errors.max():.1%}"
    )


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A value with one stage and with two, a line per shape of tree and a panel per sampling.

    table    `shape` ("chain", "tree"), `stages` (1, 2), `sampling`, `value`, `low`, `high`
    """
    check(table, "shape stages sampling", "")
    table, shapes = table.sort_values("stages", kind="stable"), sorted(names_of(table["shape"]))
    place = lanes(table, "stages", "shape", 0.34, shapes)
    by = {"series": "shape", "panel": "sampling", "ends": "low value high", "text": "value"}
    rows = marks(table, place, "value", **by)
    chart = Chart(rows["panel"], wide=320, y=value_title)
    add_dots(chart, rows, looks(shapes), size=11)
    counts = table["stages"].unique()
    chart.name_places("x", [f"{count} stage{'s' if count != 1 else ''}" for count in counts])
    chart.start_at_zero("y", rows, 1.1)
    return chart.titled("One stage against two, for a chain and for a tree")


def speed_sweep(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding along what was swept, a panel per sweep; dots of a draft are
    joined where the values are numbers.

    table    `sweep` ("temperature", "domain"), `value` (a number or a word), `draft`, `speed_up`,
             `speed_up_low`, `speed_up_high`
    """
    check(table, "sweep value draft", "speed_up_low speed_up speed_up_high")
    check_among("a sweep", table["sweep"], SWEEPS)
    drafts = names_of(table["draft"])
    panels = {sweep: _swept(table, sweep) for sweep in SWEEPS if sweep in set(table["sweep"])}
    chart = Chart(panels.values(), wide=390, y="measured speed-up over plain decoding (dotted)")
    for sweep, panel in panels.items():
        own = table[table["sweep"] == sweep]
        place = lanes(own, "value", "draft", 0.07 * len(drafts), drafts)
        ends = "speed_up_low speed_up speed_up_high"
        rows = marks(own, place, "speed_up", series="draft", ends=ends).assign(panel=panel)
        ordered = all(isinstance(value, int | float) for value in own["value"])
        add_dots(chart, rows, looks(drafts), joined=2 if ordered else 0)
        words = names_of(own["value"].map("{:g}".format) if ordered else own["value"])
        ticks = {"tickvals": list(range(len(words))), "ticktext": words}
        chart.axis("x", panel, **ticks, title=sweep, showgrid=False)
    most = table[["speed_up", "speed_up_high"]].max().max()
    chart.axis("y", range=[0, 1.08 * float(most)])
    headline = "Measured speed-up over plain decoding, by temperature and by kind of text"
    return chart.titled(headline, plain="y")


def _swept(table: pd.DataFrame, sweep: str) -> str:
    """A panel's name: what is swept, and the one domain or temperature that the rest stands at."""
    other = {"temperature": ("domain", "{}"), "domain": ("temperature", "T = {:g}")}
    (column, said), own = other[sweep], table[table["sweep"] == sweep]
    fixed = own[column].unique() if column in own else []
    return f"by {sweep}" + (f" ({said.format(fixed[0])})" if len(fixed) == 1 else "")


def ewif_by_drafters(table: pd.DataFrame) -> go.Figure:
    """EWIF per set of drafters: the paper's printed value, ours for the same k, and the best k
    where that is better; a panel per data set.

    table    `data`, `drafters`, `lengths` (the printed k, as text), `paper`, `ours`, `best`,
             `best_lengths`
    """
    check(table, "data drafters", "lengths paper ours best best_lengths")
    rows, sets = _ewif_marks(table), names_of(table["drafters"])
    x, y = "drafters, with the printed k", "EWIF, predicted (1: plain)"
    chart = Chart(rows["panel"], wide=390, x=x, y=y)
    add_dots(chart, rows, EWIF_LOOKS, size=10)
    chart.name_places("x", sets, longest=14)
    star = {"mode": "markers+text", "name": list(EWIF_LOOKS)[-1]}
    chart.figure.update_traces(textposition="bottom center", selector=star)
    for data, own in table.groupby(table["data"].map(str)):
        lengths = own.set_index("drafters")["lengths"]
        ticks = [f"{wrap(name, 14)}<br>k = {escape(lengths.get(name, '–'))}" for name in sets]
        chart.axis("x", data, ticktext=ticks)
    chart.axis("y", range=span_of(rows["y"], 0.14, 0.28))
    headline = "EWIF, a predicted speed-up: as printed in Table 1, recomputed, and at the best k"
    return chart.titled(headline)


def _ewif_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Three marks per set of drafters; the third only where another k is better."""
    lengths = "<br>k = " + table["best_lengths"].map(escape)
    better = table["best"].where(table["best"] > table["ours"] + 1e-9)
    parts = (
        (table["paper"], -0.29, table["paper"].map("{:.2f}".format)),
        (table["ours"], 0.0, table["ours"].map("{:.3f}".format)),
        (better, 0.29, table["best"].map("{:.3f}".format) + lengths),
    )
    found = []
    for series, (values, aside, words) in zip(EWIF_LOOKS, parts, strict=True):
        rows = marks(table, lanes(table, "drafters") + aside, values, panel="data")
        found.append(rows.assign(series=series, text=words).dropna(subset=["y"]))
    return pd.concat(found, ignore_index=True)


def scorecard(table: pd.DataFrame) -> go.Figure:
    """Our speed-up over plain decoding, or over another method, against the printed one: a mark per
    claim, a series per table or figure of the paper, a panel per paper; the legend says how ours
    was found.

    table    as of `claims.score`: `paper`, `item`, `claim`, `by`, `paper_value`, `ours`, `low`,
             `high`, `no_effect`, `verdict`; claims that are no speed-ups are left out
    """
    check(table, "paper item claim", "by paper_value ours low high no_effect verdict")
    some = table.dropna(subset=["ours", "paper_value"]).query("no_effect == 1 and by != 'counted'")
    some = some.sort_values(["paper", "item"], ascending=[False, True])
    swi = some["by"].map({"SWI": ", SWI"}).fillna("")
    some = some.assign(series=some["paper"] + ", " + some["item"] + swi)
    by = {"series": "series", "panel": "paper", "ends": "low ours high"}
    rows = marks(some, "paper_value", "ours", note="{claim}: {verdict}", **by)
    values = rows[["x", "y", "low", "high"]].astype(float)
    ends = 0.9 * float(values.min().min()), 1.1 * float(values.max().max())
    x, y = "printed in the paper (× the other method)", "found here (× the other method)"
    chart, styles = Chart(rows["panel"], wide=430, high=440, x=x, y=y), looks(rows["series"])
    add_diagonal(chart, ends, name="as printed; below it: a smaller ratio here")
    for name, own in rows.groupby("series", sort=False):
        add_dots(chart, own, {name: styles[name]}, by=SAID[own["by"].iloc[0]])
    ticks = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    # plotly wants a logarithmic axis' ends as exponents
    axis = {"type": "log", "tickvals": ticks, "range": list(map(math.log10, ends))}
    for name in "xy":
        chart.axis(name, **axis, ticktext=[f"{tick:g}" for tick in ticks])
    found = some["verdict"].value_counts()
    said = "; ".join(f"{found[one]} {one}" for one in VERDICTS if one in found)
    formulas, swi = ((some["by"] == way).sum() for way in ("predicted", "SWI"))
    kinds = f"{formulas} formulas, {swi} of SWI, {len(some) - formulas - swi} by the clock"
    headline = f"{len(some)} printed speed-ups, {kinds}: {said}"
    return chart.titled(headline, plain="y")
