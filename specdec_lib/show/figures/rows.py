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
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, PAPERS, SOURCES, STRANGERS, Look, looks

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
TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)
DRAFTERS = ("middle", "draft", "Max-Gram")
DRAFTERS += tuple(f"{names} + Max-Gram" for names in ("middle", "draft", "middle + draft"))
THIN = {"width": 1, "color": "rgba(128,128,128,0.35)"}
RULE_NAMES = {"draw_once": "draw_once (naive)", "k_seq": "K-SEQ", "traverse": "traverse"}
KINDS = ("ranked", "top", "iid", "distinct")  # of siblings
SPEED_UPS = "speed_up_low speed_up speed_up_high"


def stages(table: pd.DataFrame, *, sampling: str = "") -> go.Figure:
    """What each stack of models reaches, a panel per metric; the stack of fewest levels on top.

    table       `levels` (models, the target among them), `stack`, `metric`, `value`, `low`, `high`
    sampling    for the headline
    """
    check(table, "stack metric", "levels")
    table = table.sort_values("levels", kind="stable")
    by = {"panel": "metric", "ends": "low value high", "text": "value"}
    rows = marks(table, "value", lanes(table, "stack"), **by)
    chart = Chart(rows["panel"], wide=360, high=40 * table["stack"].nunique() + 80, columns=2)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])}, lying=True, size=10)
    for metric, own in rows.groupby("panel", sort=False):
        end = ROOM * (float(own["high"].fillna(own["x"]).max()) or 1.0)
        chart.axis("x", metric, range=[0, end], nticks=5)
    chart.name_places("y", rows["stack"], longest=36)
    return chart.titled(f"What each level of the stack adds, counted{sampling and f', {sampling}'}")


def passes(table: pd.DataFrame) -> go.Figure:
    """Draft passes per round: a row per draft, a dot per scout, a panel per sampling.

    table    `draft`, `scout` ("none", "n-gram", …), `sampling`, `passes`, `low`, `high`
    """
    by = {"once": "draft scout sampling", "series": "scout", "panel": "sampling", "text": "passes"}
    rows = marks(table, "passes", lanes(table, "draft", "scout"), ends="low passes high", **by)
    drafts, scouts = rows[["draft", "scout"]].nunique()
    high = 80 + drafts * (24 + 20 * scouts)
    chart = Chart(rows["panel"], wide=360, high=high, x="draft passes per round, counted")
    add_dots(chart, rows, lying=True, size=10)
    chart.start_at_zero("x", rows, ROOM)
    chart.name_places("y", rows["draft"])
    return chart.titled("Passes of the draft in a round, by the scout that guesses before it")


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of every setting, the lowest mean on top; a panel per sampling.

    table    `draft`, `sampling`, `speed_up`, `speed_up_low`, `speed_up_high`
    """
    check(table, "draft sampling", SPEED_UPS)
    means = table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable")
    order, (slower, close, faster, untold) = names_of(means.index), VERDICTS
    low, high = table["speed_up_low"], table["speed_up_high"]
    verdict = np.select([high < 1, low > 1, low.isna()], [slower, faster, untold], close)
    said = table.assign(verdict=verdict)
    by = {"series": "verdict", "panel": "sampling", "ends": SPEED_UPS, "note": "{draft}"}
    rows = marks(said, "speed_up", table["draft"].map(str).map(order.index), **by)
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
    """Speed-up over plain decoding of what a plan chose, of the planned draft, and of the setting
    that was the best fixed one in hindsight: a row per pair and domain, a panel per sampling.

    table    as of `measure.regret.summarise_regret`
    """
    check(table, "pair sampling domain choice", SPEED_UPS)
    named = table.assign(name=table["pair"] + ": " + table["domain"])
    headline = "What a plan reaches on prompts it has not seen, beside the best fixed setting"
    return _speed_ups(named, "name", "choice", "counted and priced", headline)


def free_drafts(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of drafts without a network, beside a draft model's tree: a row
    per draft, in it a lane per domain; a panel per sampling.

    table    `draft`, `domain`, `sampling`, `speed_up`, `speed_up_low`, `speed_up_high`
    """
    check(table, "draft domain sampling", SPEED_UPS)
    headline = "What copied, recycled and remembered tokens bring by the clock"
    return _speed_ups(table, "draft", "domain", "measured", headline)


def _speed_ups(table: pd.DataFrame, row: str, lane: str, how: str, headline: str) -> go.Figure:
    """A row per value of one column, in it a lane per value of another; a panel per sampling."""
    by = {"series": lane, "panel": "sampling", "ends": SPEED_UPS}
    rows = marks(table, "speed_up", lanes(table, row, lane), **by)
    count, beside = table[[row, lane]].nunique()
    x = f"speed-up over plain decoding (dotted), {how}"
    chart = Chart(rows["panel"], wide=400, high=80 + count * (24 + 12 * beside), x=x)
    add_dots(chart, rows, lying=True)
    chart.hold_one("x", rows)
    chart.name_places("y", rows[row], longest=32)
    return chart.titled(headline, plain="x")


def verifiers(table: pd.DataFrame) -> go.Figure:
    """Tokens per round of each verification rule: a panel per sampling, a row per shape and rule
    and one for the bound, a dot per kind of siblings, that of the bound hollow.

    table    as of `summarise_rules`
    """
    ends = "tokens_per_round_low tokens_per_round tokens_per_round_high"
    check(table, "sampling shape rule siblings", ends)
    bound = table["rule"] == "bound"
    table = table.assign(bound=bound, first=table["shape"].map(names_of(table["shape"]).index))
    table = table.sort_values(["first", "bound"], kind="stable")
    named = table.assign(
        name=table["shape"] + ": " + table["rule"].replace(RULE_NAMES),
        series=table["siblings"] + np.where(table["bound"], ", bound", ""),
    )
    by = {"panel": "sampling", "series": "series", "ends": ends}
    by["note"] = "{siblings} siblings, {prompts} prompts"
    rows = marks(named, "tokens_per_round", lanes(named, "name", "siblings", 0.8), **by)
    kinds = {kind: Look(colour) for kind, colour in zip(KINDS, STRANGERS, strict=False)}
    hollow = {
        f"{kind}, bound": Look(one.colour, symbol="diamond-open") for kind, one in kinds.items()
    }
    high = 90 + 40 * rows["name"].nunique()
    chart = Chart(rows["panel"], wide=330, high=high, x="tokens per round", gap=0.03)
    add_dots(chart, rows, kinds | hollow, lying=True, size=8)
    chart.name_places("y", rows["name"], longest=30)
    for shapes in range(1, named["first"].nunique()):
        edge = named[named["first"] < shapes]["name"].nunique()
        chart.figure.add_hline(y=edge - 0.5, line=THIN, layer="below")
    chart.axis("x", range=span_of(rows[["x", "low", "high"]], 0.06, 0.06), showline=True)
    return chart.titled("Tokens per round by verification rule, beside the bound of each draft")


def versus(table: pd.DataFrame) -> go.Figure:
    """How many times faster each of our methods is than each baseline, over all domains: a panel
    per sampler, a row per method, a dot per baseline.

    table    as `make bench` writes it, of one edition
    """
    ends = "ratio_low ratio ratio_high"
    columns = "method baseline temperature top_k domain runtime baseline_runtime machine"
    check(table, "", f"{columns} {ends}")
    named = _named(table[(table["domain"] == "all") & ~table["method"].str.startswith("hf_")])
    by = {"series": "baseline", "panel": "sampling", "ends": ends, "text": "ratio"}
    place = lanes(named, "name", "baseline", 0.8)
    rows = marks(named, "ratio", place, once="sampling name baseline", **by)
    methods, baselines = rows[["name", "baseline"]].nunique()
    look = {"wide": 450, "high": 74 + 19 * (baselines + 1) * methods}
    chart = Chart(rows["panel"], **look, x="times as fast as the baseline, measured", y="method")
    add_dots(chart, rows, lying=True, size=8)
    chart.name_places("y", rows["name"])
    values = rows[["x", "low", "high"]]
    span = 0.85 * min(1.0, float(values.min().min())), 1.5 * max(1.0, float(values.max().max()))
    ticks = {"tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
    chart.axis("x", **ticks, type="log", range=list(map(math.log10, span)), showline=True)
    machines = ", ".join(sorted(set(table["machine"])))
    headline = f"Measured speed against each baseline, all domains ({machines})"
    return chart.titled(headline, plain="x")


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Methods, baselines and samplers in words; a method in several runtimes says which, a baseline
    of Hugging Face in which number format it was fastest.
    """
    several = table.groupby("method")["runtime"].transform("nunique") > 1
    called = table["method"].replace(NAMES)
    sampling = list(map(sampling_of, table["temperature"], table["top_k"].replace(0, math.nan)))
    name = called.where(~several, called + ", " + table["runtime"])
    dtype = ", " + table["baseline_runtime"].str.extract("^Hugging Face (.+)", expand=False)
    baseline = table["baseline"].replace(NAMES) + dtype.fillna("")
    return table.assign(name=name, sampling=sampling, baseline=baseline)


def swi_by_drafters(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of drafters: a panel per price list, a row per set, in it a lane per domain
    (ours) and per data set of the paper.

    table    `data` (domain, or the paper's data set), `prices`, `method`, `drafters`, and `ours`,
             `ours_low`, `ours_high` or `paper`, NaN where there is none
    """
    keys, values = "data prices method drafters", "ours_low ours ours_high paper"
    check(table, "", f"{keys} {values}")
    table = table[table["method"] != "autoregressive"]
    check(table, keys, values)
    rows = _swi_marks(table)
    sets, named = names_of(rows["set"]), names_of(rows["series"])
    high = 80 + 15 * (len(named) + 1.6) * len(sets)
    x, y = "SWI, counted (plain decoding is 1, dotted)", "drafters, and how they are used"
    lists = [f"prices: {name}" for name in names_of(table["prices"])]
    chart = Chart(lists, wide=260, high=high, x=x, y=y)
    theirs = [name for name in named if name.startswith("paper, ")]
    styles = looks(name for name in named if name not in theirs)
    add_dots(chart, rows, styles | dict(zip(theirs, PAPERS, strict=False)), lying=True, size=8)
    span = span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.08, 0.28)
    chart.axis("x", range=span, showline=True)
    chart.name_places("y", sets, longest=20)
    for edge in range(1, len(sets)):
        chart.figure.add_hline(y=edge - 0.5, line=THIN, layer="below")
    said = "Counted SWI of each set of drafters, by price list; the paper's, hollow, is counted too"
    return chart.titled(said, plain="x")


def _swi_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Our mark and the paper's of each row; known sets of drafters come first, in their order."""
    order = {name: number for number, name in enumerate(DRAFTERS)}
    table = table.assign(
        rank=[order.get(name, len(order)) for name in table["drafters"]],
        set=table["drafters"].replace(theme.MODEL_NAMES, regex=True) + ", " + table["method"],
        list="prices: " + table["prices"].map(str),
        theirs="paper, " + table["data"].map(str),
    )
    ends = "ours_low ours ours_high"
    ours = marks(table, "ours", 0, series="data", panel="list", ends=ends, text="ours")
    paper = marks(table, "paper", 0, series="theirs", panel="list", text="paper")
    rows = pd.concat([part.dropna(subset=["x"]) for part in (ours, paper)], ignore_index=True)
    series = names_of(rows["series"])
    rows = rows.sort_values("rank", kind="stable")
    return rows.assign(y=lanes(rows, "set", "series", order=series))
