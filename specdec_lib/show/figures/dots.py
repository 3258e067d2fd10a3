"""Charts of dots with intervals along an axis of numbers, or over names that stand side by side."""

from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import add_diagonal, add_dots
from specdec_lib.show.figures.marks import check, lanes, marks, names_of, span_of
from specdec_lib.show.figures.theme import PAPERS, SOURCES, Look, escape, looks, with_prefix, wrap

WIDEST = 26  # pixels across the dot of the most tokens
EWIF_LOOKS = {
    "printed": PAPERS[0],
    "recomputed for the same k": Look(SOURCES["draft"]),
    "at the best k, where another is better": Look(SOURCES["target"], symbol="star"),
}
RATES = {"ends": "low rate high", "note": "{at_risk:,.0f} tokens at risk"}
ACCEPTED, RATE = "How often a guess is accepted, by", "acceptance rate"
SAID = {"predicted": "predicted", "SWI": "counted", "clock": "measured"}
CLAIMS = {"predicted": "formulas", "SWI": "of SWI", "clock": "by the clock"}
TICKS = (0.25, 0.5, 1, 2, 3, 4, 6, 8, 10)  # of a scorecard's axes
VERDICTS = {  # of a scorecard's table, as its figure says them: which effect is larger
    "reproduced": "reproduced",
    "same sign, smaller": "nearer to 1 than printed",
    "same sign, larger": "farther from 1",
    "sign unsettled": "too close to tell",
    "opposite": "opposite",
}
VISIBLE = {"cross": "circle", "x": "square"}  # strokes vanish behind other marks


def acceptance(
    table: pd.DataFrame,
    *,
    x: str,
    x_title: str,
    log_x: bool = False,
    title: str = "",
    apart: float = 0.0,
    bare: str = "",
) -> go.Figure:
    """Acceptance `rate` (NaN draws nothing) over the column that `x` names, as dots with intervals
    `low` to `high`, joined by a line per `series`, and per `part` of it if there is that column;
    `at_risk` counts the tokens.

    apart    how far the outer series stand beside their numbers; where `log_x`, in octaves
    bare     which marks have no interval, for the headline
    """
    check(table, "", f"{x} series low rate high at_risk")
    note = f"{x_title.split(',')[0]}: {{{x}:,g}}; {RATES['note']}"
    rows = marks(table, x, "rate", series="series", ends=RATES["ends"], note=note)
    if log_x and not rows["x"].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {rows['x'].min()}")
    chart = Chart(high=384, x=x_title, y=RATE)
    styles, values = looks(rows["series"]), sorted(set(rows["x"]))
    aside = dict(zip(styles, np.linspace(-apart, apart, len(styles)), strict=True))
    aside = rows["series"].map(aside)
    rows["x"] = rows["x"] * 2**aside if log_x else rows["x"] + aside
    for _, own in rows.groupby(rows.get("part", rows["panel"])):
        add_dots(chart, own, styles, joined=2)
    chart.figure.update_traces(hoverinfo="y+text+name", selector={"hoverinfo": "x+y+text+name"})
    chart.axis("x", type="log" if log_x else "linear", showline=True)
    if len(values) <= 24 and all(float(one).is_integer() for one in values):
        words = [with_prefix(one, "") if log_x else f"{one:g}" for one in values]
        chart.axis("x", tickvals=values, ticktext=words)
    chart.show_rates(rows)
    return chart.titled(title or f"{ACCEPTED} {x_title.split(',')[0]}", bare=bare)


def kinds(table: pd.DataFrame, *, x_title: str, title: str = "") -> go.Figure:
    """Acceptance rates, as for `acceptance`, with their values, a place on the axis per `kind`."""
    check(table, "", "kind series low rate high at_risk")
    place = lanes(table, "kind", "series", 0.6)
    rows = marks(table, place, "rate", series="series", text="rate", **RATES)
    chart = Chart(high=384, x=x_title, y=RATE)
    add_dots(chart, rows, size=11)
    chart.name_places("x", table["kind"])
    chart.show_rates(rows)
    return chart.titled(title or f"{ACCEPTED} {x_title.split(',')[0]}")


def calibration_curve(table: pd.DataFrame) -> go.Figure:
    """Acceptance `rate` against the draft's `confidence`, the mean of a bin, a dot with an interval
    per bin; the larger its area, the more tokens are `at_risk` in it. A panel per `series`.
    """
    check(table, "", "confidence series low rate high at_risk")
    rows = marks(table, "confidence", "rate", panel="series", **RATES)
    share = rows["at_risk"] / max(1.0, float(rows["at_risk"].max()))
    chart = Chart(rows["panel"], wide=450, high=470, x="confidence of the draft", y=RATE)
    add_diagonal(chart, (-0.02, 1.02), name="perfectly calibrated")
    sized = rows.assign(size=(WIDEST * np.sqrt(share)).clip(lower=7))
    add_dots(chart, sized, {"": Look(SOURCES["draft"])}, joined=1)
    return chart.titled("Is the draft's confidence right? Larger areas: more guesses")


def predicted_tokens(table: pd.DataFrame) -> go.Figure:
    """`measured` tokens per round, with an interval `low` to `high`, against `predicted` ones, a
    dot per `name`, a panel per `sampling`; in the band they agree to 5 %.
    """
    rows = _predictions(table)
    x, y = (f"{how} tokens per round" for how in ("predicted", "counted"))
    chart = Chart(rows["panel"], wide=450, high=490, x=x, y=y)
    ends = span_of(rows[["x", "y", "low", "high"]], 0.08, 0.08)
    add_diagonal(chart, ends, name="as predicted", near=0.05)
    add_dots(chart, rows)
    return chart.titled("Counted against predicted tokens per round: on the line they agree")


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """The same for tokens per second; in the band they agree to 10 %. The headline has the median
    error, the largest median of one kind, and the largest error.
    """
    rows = _predictions(table)
    values = rows[["x", "y", "low", "high"]].astype(float)
    if not values.min().min() > 0:
        raise ValueError(f"speeds are above 0, got down to {values.min().min():g}")
    x, y = (f"{how}, in tokens per second" for how in ("predicted", "measured"))
    chart = Chart(rows["panel"], wide=395, high=444, x=x, y=y, gap=0.04)
    ends = 0.94 * values.min().min(), 1.06 * values.max().max()
    add_diagonal(chart, ends, name="as predicted", near=0.1)
    add_dots(chart, rows)
    errors = (values["x"] / values["y"] - 1).abs()
    medians = errors.groupby([rows["panel"], rows["series"]]).median()
    return chart.titled(
        f"Measured against predicted, {len(table)} settings: median error {errors.median():.1%},"
        f" of the worst kind ({', '.join(filter(None, medians.idxmax()))}) {medians.max():.1%};"
        f" largest {errors.max():.1%}"
    )


def _predictions(table: pd.DataFrame) -> pd.DataFrame:
    check(table, "", "name series sampling predicted low measured high")
    by = {"series": "series", "panel": "sampling", "ends": "low measured high", "note": "{name}"}
    return marks(table, "predicted", "measured", **by)


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A `value` with one and with two `stages`, a series per `shape` of tree ("chain", "tree") and
    a panel per `sampling`.
    """
    check(table, "shape stages sampling", "low value high")
    table, shapes = table.sort_values("stages", kind="stable"), sorted(names_of(table["shape"]))
    by = {"series": "shape", "panel": "sampling", "ends": "low value high", "text": "value"}
    rows = marks(table, lanes(table, "stages", "shape", 0.34, shapes), "value", **by)
    chart = Chart(rows["panel"], wide=320, y=value_title)
    add_dots(chart, rows, looks(shapes), size=11)
    counts = table["stages"].unique()
    chart.name_places("x", [f"{count} stage{'s' if count != 1 else ''}" for count in counts])
    chart.start_at_zero("y", rows, 1.1)
    return chart.titled("One stage against two, for a chain and for a tree")


def speed_sweep(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of each `draft` by the `value` of a `sweep`, "temperature" or
    "domain", a panel each, whose name has the one domain or temperature that the rest stands at.
    """
    check(table, "sweep value draft", "domain temperature speed_up_low speed_up speed_up_high")
    said = {"temperature": "by temperature ({domain})", "domain": "by domain (T = {temperature:g})"}
    if strangers := sorted({*table["sweep"]} - {*said}):
        raise ValueError(f"a sweep is by {' or '.join(said)}, got {strangers[0]!r}")
    first = table.drop_duplicates("sweep").set_index("sweep")
    panels = {name: said[name].format_map(first.loc[name]) for name in said if name in first.index}
    drafts = names_of(table["draft"])
    chart = Chart(panels.values(), wide=390, y="measured speed-up over plain decoding (dotted)")
    for sweep, panel in panels.items():
        own = table[table["sweep"] == sweep]
        place = lanes(own, "value", "draft", 0.07 * len(drafts), drafts)
        ends = "speed_up_low speed_up speed_up_high"
        rows = marks(own, place, "speed_up", series="draft", ends=ends).assign(panel=panel)
        ordered = sweep == "temperature"
        add_dots(chart, rows, looks(drafts), joined=2 if ordered else 0)
        words = names_of(own["value"].map("{:g}".format) if ordered else own["value"])
        ticks = {"tickvals": list(range(len(words))), "ticktext": words}
        chart.axis("x", panel, **ticks, title=sweep, showgrid=False)
    most = table[["speed_up", "speed_up_high"]].max().max()
    chart.axis("y", range=[0, 1.08 * float(most)])
    headline = "Measured speed-up over plain decoding, by temperature and by kind of text"
    return chart.titled(headline, plain="y")


def ewif_by_drafters(table: pd.DataFrame) -> go.Figure:
    """EWIF per set of `drafters`: the one printed in the `paper` for k, `lengths`, `ours` for the
    same k, and the `best`, for `best_lengths`, where that is better; a panel per `data` set.
    """
    check(table, "data drafters", "lengths paper ours best best_lengths")
    best = table["best"].map("{:.3f}".format) + "<br>k = " + table["best_lengths"].map(escape)
    parts = (
        (table["paper"], table["paper"].map("{:.2f}".format)),
        (table["ours"], table["ours"].map("{:.3f}".format)),
        (table["best"].where(table["best"] > table["ours"] + 1e-9), best),
    )
    found, names = [], list(EWIF_LOOKS)
    for aside, name, (values, words) in zip((-0.29, 0.0, 0.29), names, parts, strict=True):
        rows = marks(table, lanes(table, "drafters") + aside, values, panel="data")
        found.append(rows.assign(series=name, text=words).dropna(subset=["y"]))
    rows, sets = pd.concat(found, ignore_index=True), names_of(table["drafters"])
    x, y = "drafters, with the printed k", "EWIF, predicted (1: plain)"
    chart = Chart(rows["panel"], wide=390, x=x, y=y)
    add_dots(chart, rows, EWIF_LOOKS, size=10)
    chart.name_places("x", sets, longest=14)
    star = {"mode": "markers+text", "name": names[-1]}
    chart.figure.update_traces(textposition="bottom center", selector=star)
    for data, own in table.groupby(table["data"].map(str)):
        lengths = own.set_index("drafters")["lengths"]
        ticks = [f"{wrap(name, 14)}<br>k = {escape(lengths.get(name, '–'))}" for name in sets]
        chart.axis("x", data, ticktext=ticks)
    chart.axis("y", range=span_of(rows["y"], 0.14, 0.28))
    headline = "EWIF, a predicted speed-up: as printed in Table 1, recomputed, and at the best k"
    return chart.titled(headline)


def scorecard(table: pd.DataFrame) -> go.Figure:
    """Our speed-up over plain decoding, or over another method, against the printed one: a mark per
    claim, a series per table or figure of the paper, a panel per paper; the legend says how ours
    was found.

    table    as of `claims.score`; claims that are no speed-ups are left out; a `panel` names theirs
    """
    check(table, "paper item claim", "by paper_value ours low high no_effect verdict")
    some = table.dropna(subset=["ours", "paper_value"]).query("no_effect == 1 and by != 'counted'")
    some = some.sort_values(["paper", "item"], ascending=[False, True])
    swi = some["by"].map({"SWI": ", SWI"}).fillna("")
    some = some.assign(series=some["paper"] + ", " + some["item"] + swi)
    by = {"series": "series", "panel": "panel" if "panel" in some else "paper"}
    some = some.assign(verdict=some["verdict"].replace(VERDICTS))
    rows = marks(some, "paper_value", "ours", ends="low ours high", note="{claim}: {verdict}", **by)
    values = rows[["x", "y", "low", "high"]].astype(float)
    ends = 0.9 * values.min().min(), 1.1 * values.max().max()
    x, y = "printed in the paper (× the other method)", "found here (× the other method)"
    chart, styles = Chart(rows["panel"], wide=430, high=440, x=x, y=y), looks(rows["series"])
    add_diagonal(chart, ends, name="as printed; below it: a smaller ratio here")
    for name, own in rows.groupby("series", sort=False):
        symbol = VISIBLE.get(styles[name].symbol, styles[name].symbol)
        look = {name: replace(styles[name], symbol=symbol)}
        add_dots(chart, own, look, by=SAID[own["by"].iloc[0]])
    ticks = [tick for tick in TICKS if ends[0] <= tick <= ends[1]]
    for axis in "xy":
        chart.count_in_factors(axis, *ends, ticks)
    kinds = {name: some[some["by"] == way]["verdict"] for way, name in CLAIMS.items()}
    said = [_verdicts(name, own) for name, own in kinds.items() if len(own)]
    return chart.titled(f"{len(some)} printed ratios beside ours. {'. '.join(said)}", plain="y")


def _verdicts(kind: str, verdicts: pd.Series) -> str:
    found = verdicts.value_counts()
    said = [f"{found[one]} {one}" for one in VERDICTS.values() if one in found]
    return f"{len(verdicts)} {kind}: {', '.join(said) if said[1:] else f'all {found.index[0]}'}"
