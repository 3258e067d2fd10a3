"""Charts of lying dots with intervals: a row per name, from the top down."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure.ratios import sampling_of
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, check, lanes, marks, span_of
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, PAPERS, SOURCES, Look, looks, names_of

BETWEEN = {"line": {"width": 1, "color": "rgba(128,128,128,0.35)"}, "layer": "below"}  # rows
ROOM = 1.28  # of an axis with words right of its dots, against its highest value
PAYING = {"slower than plain decoding": Look(LOSS, symbol="x"), "faster": Look(GAIN)}
PAYING["too close to tell"] = Look(INK, symbol="circle-open")
PAYING["too few prompts to tell"] = Look(INK, symbol="diamond-open")
NAMES = {"autoregressive": "plain decoding", "hf_prompt_lookup": "transformers prompt lookup"}
NAMES |= {f"hf_{way}": f"transformers {way}" for way in ("generate", "assisted")}
TICKS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32]
DRAFTERS = ("middle", "draft", "Max-Gram")
DRAFTERS += tuple(f"{names} + Max-Gram" for names in ("middle", "draft", "middle + draft"))
RULE_NAMES = {"draw_once": "draw_once (naive)", "k_seq": "K-SEQ"}
SIBLINGS = ("ranked", "top", "iid", "distinct")
SPEED_UPS = "speed_up_low speed_up speed_up_high"


def stages(table: pd.DataFrame, *, sampling: str = "") -> go.Figure:
    """What each level of a stack of models adds: a lying dot per stack, with an interval and its
    value, the stack of fewest levels on top; a panel per metric.

    table       a row per dot: `stack` (its models' names), `levels` (how many), `metric` (the
                panel, with its unit) and `value` with its 95 % interval `low` to `high`
    sampling    the sampler's name, for the headline
    """
    check(table, "stack metric", "levels low value high")
    table = table.sort_values("levels", kind="stable")
    by = {"panel": "metric", "ends": "low value high", "text": "value"}
    rows = marks(table, "value", lanes(table, "stack"), **by)
    chart = Chart(rows["panel"], wide=360, high=40 * table["stack"].nunique() + 80, columns=2)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])}, lying=True, size=10)
    for metric in chart.panels:
        chart.start_at_zero("x", ROOM, panel=metric)
    chart.axis("x", nticks=5).name_places("y", rows["stack"], longest=36)
    return chart.titled(f"What each level of the stack adds, counted{sampling and f', {sampling}'}")


def passes(table: pd.DataFrame) -> go.Figure:
    """Passes of the draft model in a round: a row per draft, a lying dot per scout, with an
    interval and its value; a panel per sampler.

    table    a row per dot: `draft`, `scout` (what guesses before it; "none"), `sampling`, and
             `passes` (of the draft per round, counted) with its 95 % interval `low` to `high`
    """
    check(table, "draft scout sampling", "low passes high")
    by = {"series": "scout", "panel": "sampling", "text": "passes", "ends": "low passes high"}
    rows = marks(table, "passes", lanes(table, "draft", "scout"), **by)
    drafts, scouts = rows[["draft", "scout"]].nunique()
    high = 80 + drafts * (24 + 20 * scouts)
    chart = Chart(rows["panel"], wide=360, high=high, x="draft passes per round, counted")
    add_dots(chart, rows, lying=True, size=10).start_at_zero("x", ROOM)
    chart.name_places("y", rows["draft"])
    return chart.titled("Passes of the draft in a round, by the scout that guesses before it")


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Measured speed-up of every setting over plain decoding (dotted): a lying dot per setting with
    an interval, the lowest mean on top; its mark says whether the interval is above 1, below 1,
    around it, or missing. A panel per sampler.

    table    a row per setting and sampler: `draft` (the setting's name), `sampling`, and `speed_up`
             (× plain decoding's speed) with its 95 % interval `speed_up_low` to `speed_up_high`
             (NaN: too few prompts)
    """
    check(table, "draft sampling", SPEED_UPS)
    means = table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable")
    order = names_of(means.index)
    slower, faster, close, untold = PAYING
    low = table["speed_up_low"]
    high = table["speed_up_high"]
    verdict = np.select([high < 1, low > 1, low.isna()], [slower, faster, untold], close)
    by = {"series": "verdict", "panel": "sampling", "ends": SPEED_UPS, "note": "{draft}"}
    place = table["draft"].map(str).map(order.index)
    rows = marks(table.assign(verdict=verdict), "speed_up", place, **by)
    x = "measured speed-up over plain decoding"
    chart = Chart(rows["panel"], wide=380, high=74 + 24 * len(order), x=x, gap=0.04)
    add_dots(chart, rows, PAYING, lying=True).start_at_zero("x", 1.05)
    chart.name_places("y", order, longest=40)
    headline = "Where speculation pays by the clock, and where it is slower than plain decoding"
    if set(verdict) == {untold}:
        headline = "Measured speed-up of every setting: so few prompts settle no single one"
    return chart.titled(headline, plain="x")


def plans(table: pd.DataFrame) -> go.Figure:
    """What a plan reaches on prompts it has not seen: a row per pair and kind of text, a lying dot
    per choice, with an interval; a panel per sampler.

    table    as `regret.summarise_regret` gives it: `pair` (target and draft), `domain`, `sampling`,
             `choice` ("planned", the best fixed setting, …) and `speed_up` (over plain decoding
             (dotted), counted and priced) with its 95 % interval `speed_up_low` to `speed_up_high`
    """
    check(table, "pair sampling domain choice", SPEED_UPS)
    table = table.assign(name=table["pair"] + ": " + table["domain"])
    headline = "What a plan reaches on prompts it has not seen, beside the best fixed setting"
    return _speed_ups(table, "name", "choice", "counted and priced", headline)


def free_drafts(table: pd.DataFrame) -> go.Figure:
    """What drafts without a network bring, beside a draft model's tree: a row per draft, a lying
    dot per kind of text, with an interval; a panel per sampler.

    table    a row per dot: `draft`, `domain`, `sampling`, and `speed_up` (over plain decoding
             (dotted), measured) with its 95 % interval `speed_up_low` to `speed_up_high`
    """
    check(table, "draft domain sampling", SPEED_UPS)
    headline = "What copied, recycled and remembered tokens bring by the clock"
    return _speed_ups(table, "draft", "domain", "measured", headline)


def off_switches(table: pd.DataFrame) -> go.Figure:
    """What drafts that nobody tuned bring, with an off-switch and without: a row per kind of
    prompt, a lying dot per draft, with an interval; a panel per edition and sampler.

    table    a row per dot, as `summarise_defaults` gives it: `domain`, `draft`, `edition` (of the
             target), `sampling`, and `speed_up` (over plain decoding of the same edition (dotted),
             measured) with its 95 % interval `speed_up_low` to `speed_up_high`
    """
    check(table, "domain draft edition sampling", SPEED_UPS)
    table = table.assign(sampling=table["edition"] + ", " + table["sampling"])
    headline = "What a draft that nobody tuned brings, by the kind of prompt"
    return _speed_ups(table, "domain", "draft", "measured", headline)


def _speed_ups(table: pd.DataFrame, row: str, lane: str, how: str, headline: str) -> go.Figure:
    by = {"series": lane, "panel": "sampling", "ends": SPEED_UPS}
    rows = marks(table, "speed_up", lanes(table, row, lane), **by)
    count, beside = table[[row, lane]].nunique()
    x = f"speed-up over plain decoding (dotted), {how}"
    chart = Chart(rows["panel"], wide=400, high=80 + count * (24 + 12 * beside), x=x)
    least, most = span_of(rows[["x", "low", "high"]].assign(plain=1.0))
    add_dots(chart, rows, lying=True).axis("x", range=[0.9 * least, 1.05 * most])
    return chart.name_places("y", rows[row], longest=32).titled(headline, plain="x")


def verifiers(table: pd.DataFrame) -> go.Figure:
    """Tokens per round of each verification rule on the same samples: a row per shape of draft and
    rule, the bound last and hollow, a lying dot per kind of siblings, with an interval; a panel per
    sampler.

    table    as `summarise_rules` gives it: `sampling`, `shape` (of the draft), `rule` ("bound":
             what no rule can exceed), `siblings` ("ranked", "top", "iid" or "distinct"),
             `tokens_per_round` with its 95 % interval `tokens_per_round_low` to
             `tokens_per_round_high`, and `prompts` (that were counted)
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
    add_dots(chart, rows, styles, lying=True, size=8).name_places("y", rows["name"], longest=30)
    for edge in rows.groupby("first")["name"].nunique().cumsum()[:-1]:
        chart.figure.add_hline(y=edge - 0.5, **BETWEEN)
    chart.axis("x", range=span_of(rows[["x", "low", "high"]], 0.06, 0.06), showline=True)
    return chart.titled("Tokens per round by verification rule, beside the bound of each draft")


def versus(table: pd.DataFrame) -> go.Figure:
    """How many times faster each of our methods is than each baseline, over all kinds of text: a
    row per method, a lying dot per baseline, with an interval and its value; a panel per sampler.

    table    as `make bench` writes it, of one edition: a row per method, baseline and kind of text
             with `method`, `baseline`, `runtime`, `baseline_runtime`, `domain` (only "all" is
             drawn), `machine`, `prompts`, `temperature`, `top_k`, and `ratio` (speed ÷ the
             baseline's) with its 95 % interval `ratio_low` to `ratio_high`

    A method in several runtimes says which, a baseline on how many prompts, and one of Hugging Face
    in which number format it was fastest.
    """
    ends = "ratio_low ratio ratio_high"
    columns = "temperature top_k runtime baseline_runtime"
    check(table, "", f"method baseline domain machine prompts {columns} {ends}")
    ours = table[(table["domain"] == "all") & ~table["method"].str.startswith("hf_")]
    several = ours.groupby("method")["runtime"].transform("nunique") > 1
    called = ours["method"].replace(NAMES)
    dtype = ", " + ours["baseline_runtime"].str.extract("^Hugging Face (.+)", expand=False)
    counts = ours.groupby("baseline")["prompts"]
    least = counts.transform("min").astype(str)
    most = counts.transform("max").astype(str)
    prompts = " (" + least.where(least == most, least + " to " + most) + " prompts)"
    named = ours.assign(
        name=called.where(~several, called + ", " + ours["runtime"]),
        sampling=list(map(sampling_of, ours["temperature"], ours["top_k"])),
        baseline=ours["baseline"].replace(NAMES) + dtype.fillna("") + prompts,
    )
    check(named, "sampling name baseline", ends)
    by = {"series": "baseline", "panel": "sampling", "ends": ends, "text": "ratio"}
    rows = marks(named, "ratio", lanes(named, "name", "baseline", 0.8), **by)
    methods, baselines = rows[["name", "baseline"]].nunique()
    chart = Chart(
        rows["panel"],
        wide=450,
        high=74 + 19 * (baselines + 1) * methods,
        x="times as fast as the baseline, measured",
        y="method",
    )
    add_dots(chart, rows, lying=True, size=8).name_places("y", rows["name"])
    least, most = span_of(rows[["x", "low", "high"]].assign(plain=1.0))
    chart.count_in_factors("x", TICKS, (0.85 * least, 1.5 * most)).axis("x", showline=True)
    return chart.titled("Measured speed against each baseline, all domains", plain="x")


def swi_by_drafters(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of drafters: a row per set and method, in it a lying dot per kind of text,
    with an interval, and a hollow one per data set of the paper; plain decoding is dotted at 1. A
    panel per list of prices.

    table    a row per dot, ours and the paper's beside each other or apart: `data` (our kind of
             text, or the paper's data set), `prices` (the list's name), `method` ("autoregressive"
             is left out), `drafters`, `ours` with its 95 % interval `ours_low` to `ours_high`, and
             `paper`; NaN where a number is missing
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
    named = names_of(rows["series"])
    rows = rows.sort_values("rank", kind="stable")
    rows, sets = rows.assign(y=lanes(rows, "set", "series", order=named)), names_of(rows["set"])
    x = "SWI, counted (plain decoding is 1, dotted)"
    y = "drafters, and how they are used"
    high = 80 + 15 * (len(named) + 1.6) * len(sets)
    chart = Chart(table["list"], wide=260, high=high, x=x, y=y)
    theirs = [name for name in named if name.startswith("paper, ")]
    styles = looks(name for name in named if name not in theirs)
    add_dots(chart, rows, styles | dict(zip(theirs, PAPERS, strict=False)), lying=True, size=8)
    span = span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.08, 0.28)
    chart.axis("x", range=span, showline=True).name_places("y", sets, longest=20)
    for edge in range(1, len(sets)):
        chart.figure.add_hline(y=edge - 0.5, **BETWEEN)
    said = "Counted SWI of each set of drafters, by price list; the paper's, hollow, is counted too"
    return chart.titled(said, plain="x")
