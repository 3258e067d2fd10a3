"""Charts of lying dots with intervals: a row per name, from the top down."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.marks import check, lanes, marks, names_of, span_of
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, PAPERS, SOURCES, Look, looks

ROOM = 1.28  # of an axis with words right of its dots, against its highest value
VERDICTS = {
    "slower than plain decoding": Look(LOSS, symbol="x"),
    "too close to tell": Look(INK, symbol="circle-open"),
    "faster": Look(GAIN),
    "too few prompts to tell": Look(INK, symbol="diamond-open"),
}
NAMES = {
    "autoregressive": "plain decoding",
    "hf_generate": "transformers generate",
    "hf_assisted": "transformers assisted",
    "hf_prompt_lookup": "transformers prompt lookup",
}
TICKS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32]
DRAFTERS = ("middle", "draft", "Max-Gram")
DRAFTERS += tuple(f"{names} + Max-Gram" for names in ("middle", "draft", "middle + draft"))
RULE_NAMES = {"draw_once": "draw_once (naive)", "k_seq": "K-SEQ"}
SIBLINGS = ("ranked", "top", "iid", "distinct")
SPEED_UPS = "speed_up_low speed_up speed_up_high"


def stages(table: pd.DataFrame, *, sampling: str = "") -> go.Figure:
    """The `value` that each `stack` of models reaches, a panel per `metric`; the stack of fewest
    `levels` on top. `sampling` is for the headline.
    """
    check(table, "stack metric", "levels low value high")
    table = table.sort_values("levels", kind="stable")
    by = {"panel": "metric", "ends": "low value high", "text": "value"}
    rows = marks(table, "value", lanes(table, "stack"), **by)
    chart = Chart(rows["panel"], wide=360, high=40 * table["stack"].nunique() + 80, columns=2)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])}, lying=True, size=10)
    for metric, own in rows.groupby("panel", sort=False):
        chart.start_at_zero("x", own, ROOM, panel=metric)
    chart.axis("x", nticks=5)
    chart.name_places("y", rows["stack"], longest=36)
    return chart.titled(f"What each level of the stack adds, counted{sampling and f', {sampling}'}")


def passes(table: pd.DataFrame) -> go.Figure:
    """`passes` of a draft per round: a row per `draft`, a dot per `scout`, a panel per
    `sampling`.
    """
    check(table, "draft scout sampling", "low passes high")
    by = {"series": "scout", "panel": "sampling", "text": "passes", "ends": "low passes high"}
    rows = marks(table, "passes", lanes(table, "draft", "scout"), **by)
    drafts, scouts = rows[["draft", "scout"]].nunique()
    high = 80 + drafts * (24 + 20 * scouts)
    chart = Chart(rows["panel"], wide=360, high=high, x="draft passes per round, counted")
    add_dots(chart, rows, lying=True, size=10)
    chart.start_at_zero("x", rows, ROOM)
    chart.name_places("y", rows["draft"])
    return chart.titled("Passes of the draft in a round, by the scout that guesses before it")


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """`speed_up` over plain decoding of every setting, `draft`, the lowest mean on top; a panel per
    `sampling`.
    """
    check(table, "draft sampling", SPEED_UPS)
    means = table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable")
    order, (slower, close, faster, untold) = names_of(means.index), VERDICTS
    low, high = table["speed_up_low"], table["speed_up_high"]
    verdict = np.select([high < 1, low > 1, low.isna()], [slower, faster, untold], close)
    by = {"series": "verdict", "panel": "sampling", "ends": SPEED_UPS, "note": "{draft}"}
    place = table["draft"].map(str).map(order.index)
    rows = marks(table.assign(verdict=verdict), "speed_up", place, **by)
    x = "measured speed-up over plain decoding"
    chart = Chart(rows["panel"], wide=380, high=74 + 24 * len(order), x=x, gap=0.04)
    add_dots(chart, rows, VERDICTS, lying=True)
    chart.start_at_zero("x", rows, 1.05)
    chart.name_places("y", order, longest=40)
    headline = "Where speculation pays by the clock, and where it is slower than plain decoding"
    if set(verdict) == {untold}:
        headline = "Measured speed-up of every setting: so few prompts settle no single one"
    return chart.titled(headline, plain="x")


def plans(table: pd.DataFrame) -> go.Figure:
    """`speed_up` over plain decoding of each `choice`: a row per `pair` and `domain`, a panel per
    `sampling`; as `measure.regret.summarise_regret` has them.
    """
    check(table, "pair sampling domain choice", SPEED_UPS)
    table = table.assign(name=table["pair"] + ": " + table["domain"])
    headline = "What a plan reaches on prompts it has not seen, beside the best fixed setting"
    return _speed_ups(table, "name", "choice", "counted and priced", headline)


def free_drafts(table: pd.DataFrame) -> go.Figure:
    """`speed_up` over plain decoding of drafts without a network, beside a draft model's tree: a
    row per `draft`, in it a lane per `domain`; a panel per `sampling`.
    """
    check(table, "draft domain sampling", SPEED_UPS)
    headline = "What copied, recycled and remembered tokens bring by the clock"
    return _speed_ups(table, "draft", "domain", "measured", headline)


def _speed_ups(table: pd.DataFrame, row: str, lane: str, how: str, headline: str) -> go.Figure:
    by = {"series": lane, "panel": "sampling", "ends": SPEED_UPS}
    rows = marks(table, "speed_up", lanes(table, row, lane), **by)
    count, beside = table[[row, lane]].nunique()
    x = f"speed-up over plain decoding (dotted), {how}"
    chart = Chart(rows["panel"], wide=400, high=80 + count * (24 + 12 * beside), x=x)
    add_dots(chart, rows, lying=True)
    values = rows[["x", "low", "high"]].assign(plain=1.0)
    chart.axis("x", range=[0.9 * values.min().min(), 1.05 * values.max().max()])
    chart.name_places("y", rows[row], longest=32)
    return chart.titled(headline, plain="x")


def verifiers(table: pd.DataFrame) -> go.Figure:
    """Tokens per round of each verification `rule`: a panel per `sampling`, a row per `shape` and
    rule and one for the bound, a dot per kind of `siblings`, that of the bound hollow; as
    `summarise_rules` has them.
    """
    ends = "tokens_per_round_low tokens_per_round tokens_per_round_high"
    check(table, "sampling shape rule siblings", f"{ends} prompts")
    bound = table["rule"] == "bound"
    table = table.assign(
        first=table["shape"].map(names_of(table["shape"]).index),
        bound=bound,
        name=table["shape"] + ": " + table["rule"].replace(RULE_NAMES),
        series=table["siblings"] + np.where(bound, ", bound", ""),
    ).sort_values(["first", "bound"], kind="stable")
    by = {"panel": "sampling", "series": "series", "ends": ends}
    note = "{siblings} siblings, {prompts} prompts"
    rows = marks(table, "tokens_per_round", lanes(table, "name", "siblings", 0.8), **by, note=note)
    styles = {}
    for kind, colour in zip(SIBLINGS, theme.STRANGERS, strict=False):
        styles |= {kind: Look(colour), f"{kind}, bound": Look(colour, symbol="diamond-open")}
    high = 90 + 40 * rows["name"].nunique()
    chart = Chart(rows["panel"], wide=330, high=high, x="tokens per round", gap=0.03)
    add_dots(chart, rows, styles, lying=True, size=8)
    chart.name_places("y", rows["name"], longest=30)
    chart.part_rows(rows.groupby("first")["name"].nunique().cumsum()[:-1])
    chart.axis("x", range=span_of(rows[["x", "low", "high"]], 0.06, 0.06), showline=True)
    return chart.titled("Tokens per round by verification rule, beside the bound of each draft")


def versus(table: pd.DataFrame) -> go.Figure:
    """How many times faster each of our methods is than each baseline, over all domains: a panel
    per sampler, a row per method, a dot per baseline; as `make bench` writes it, of one edition.

    A method in several runtimes says which, a baseline on how many prompts, and one of Hugging Face
    in which number format it was fastest.
    """
    ends, columns = "ratio_low ratio ratio_high", "temperature top_k runtime baseline_runtime"
    check(table, "", f"method baseline domain machine prompts {columns} {ends}")
    ours = table[(table["domain"] == "all") & ~table["method"].str.startswith("hf_")]
    several = ours.groupby("method")["runtime"].transform("nunique") > 1
    called, top_k = ours["method"].replace(NAMES), ours["top_k"].replace(0, math.nan)
    dtype = ", " + ours["baseline_runtime"].str.extract("^Hugging Face (.+)", expand=False)
    named = ours.assign(
        name=called.where(~several, called + ", " + ours["runtime"]),
        sampling=list(map(sampling_of, ours["temperature"], top_k)),
        baseline=ours["baseline"].replace(NAMES) + dtype.fillna("") + _prompts_by_baseline(ours),
    )
    check(named, "sampling name baseline", ends)
    by = {"series": "baseline", "panel": "sampling", "ends": ends, "text": "ratio"}
    rows = marks(named, "ratio", lanes(named, "name", "baseline", 0.8), **by)
    methods, baselines = rows[["name", "baseline"]].nunique()
    look = {"wide": 450, "high": 74 + 19 * (baselines + 1) * methods}
    chart = Chart(rows["panel"], **look, x="times as fast as the baseline, measured", y="method")
    add_dots(chart, rows, lying=True, size=8)
    chart.name_places("y", rows["name"])
    values = rows[["x", "low", "high"]].assign(plain=1.0)
    chart.count_in_factors("x", 0.85 * values.min().min(), 1.5 * values.max().max(), TICKS)
    chart.axis("x", showline=True)
    return chart.titled("Measured speed against each baseline, all domains", plain="x")


def _prompts_by_baseline(table: pd.DataFrame) -> pd.Series:
    """On how many prompts methods ran beside the baseline of each row: " (8 prompts)"."""
    counts = table.groupby("baseline")["prompts"]
    least, most = counts.transform("min"), counts.transform("max")
    span = least.astype(str).where(least == most, least.astype(str) + " to " + most.astype(str))
    return " (" + span + " prompts)"


def swi_by_drafters(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of `drafters`: a panel per list of `prices`, a row per set and `method`, in
    it a lane per domain (`ours`) and per data set of the `paper`.

    table    also `data`, a domain or the paper's data set; NaN where a number is missing
    """
    ends = "ours_low ours ours_high"
    check(table, "data prices method drafters", f"{ends} paper")
    table = table[table["method"] != "autoregressive"]
    table = table.assign(
        rank=[[*DRAFTERS, name].index(name) for name in table["drafters"]],
        set=table["drafters"].replace(theme.MODEL_NAMES, regex=True) + ", " + table["method"],
        list="prices: " + table["prices"].map(str),
        theirs="paper, " + table["data"].map(str),
    )
    ours = marks(table, "ours", 0, series="data", panel="list", ends=ends, text="ours")
    paper = marks(table, "paper", 0, series="theirs", panel="list", text="paper")
    rows = pd.concat([part.dropna(subset=["x"]) for part in (ours, paper)], ignore_index=True)
    named, rows = names_of(rows["series"]), rows.sort_values("rank", kind="stable")
    rows, sets = rows.assign(y=lanes(rows, "set", "series", order=named)), names_of(rows["set"])
    x, y = "SWI, counted (plain decoding is 1, dotted)", "drafters, and how they are used"
    high = 80 + 15 * (len(named) + 1.6) * len(sets)
    chart = Chart(table["list"], wide=260, high=high, x=x, y=y)
    theirs = [name for name in named if name.startswith("paper, ")]
    styles = looks(name for name in named if name not in theirs)
    add_dots(chart, rows, styles | dict(zip(theirs, PAPERS, strict=False)), lying=True, size=8)
    span = span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.08, 0.28)
    chart.axis("x", range=span, showline=True)
    chart.name_places("y", sets, longest=20)
    chart.part_rows(range(1, len(sets)))
    said = "Counted SWI of each set of drafters, by price list; the paper's, hollow, is counted too"
    return chart.titled(said, plain="x")
