"""Charts of lying dots with intervals: a row per name, from the top down."""

from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure.ratios import ALL
from specdec_lib.show.figures.chart import Chart, check, groups_of, lanes, marks, span_of
from specdec_lib.show.figures.forms import add_bars, add_dots, words_beside
from specdec_lib.show.figures.headings import BETWEEN, name_rows, under_headings
from specdec_lib.show.figures.theme import (
    EDITIONS,
    GAIN,
    INK,
    LOSS,
    SOURCES,
    Look,
    looks,
    names_of,
    short,
)

BELOW = 0.3  # of the distance between two rows, from a dot to the ticks of what it is made of
ROOM = 1.28  # of an axis with words right of its dots, against its highest value
PAYING = {"slower than plain decoding": Look(LOSS, symbol="x"), "faster": Look(GAIN)}
PAYING["too close to tell"] = Look(INK, symbol="circle-open")
PAYING["too few prompts to tell"] = Look(INK, symbol="diamond-open")
MILLISECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CHOICES = {  # of a plan, in words that define them
    "the plan, fixed": "the plan: the fixed setting with the best forecast",
    "the planned draft": "the planned draft: chooses anew in each round",
    "the plan, which is the planned draft": "both: the planned draft had the best forecast",
}
PLANNED_PAIRS = {
    "SmolLM2-135M and its drafts": "SmolLM2-135M",
    "4 layers and 1": "4-layer target, 1-layer draft",
}
KIND_NAMES = {  # of Spec-Bench's and HumanEval's prompts
    "mt": "MT-Bench chat",
    "translation": "translation",
    "summarization": "summaries",
    "qa": "question answering",
    "math_reasoning": "math problems",
    "rag": "answers from retrieved text",
    "humaneval": "HumanEval code",
    ALL: "all kinds",
}
EDITION_NAMES = {"exact": "float32"}
RULE_NAMES = {
    "look_up": "look up",
    "draw_once": "draw once (naive)",
    "reject": "rejection sampling (reject)",
    "traverse": "traversal verification (traverse)",
    "k_seq": "K-SEQ",
    "bound": "the most that any rule can accept",
}
SIBLINGS = {
    "ranked": "guesses ranked under the shared noise",
    "top": "the likeliest guesses",
    "iid": "guesses drawn independently",
    "distinct": "guesses drawn without replacement (of a tree)",
}
YIELD = "tokens per round"  # the metric of a stack of which more is better
SPEED_UPS = "speed_up_low speed_up speed_up_high"


def stages(table: pd.DataFrame, *, sampling: str = "") -> go.Figure:
    """What each level of a stack of models adds: a row per stack, the one of fewest levels on top,
    and in it a bar per metric, with an interval and its value, each metric on a scale of its own;
    "–" where a stack has none.

    table       a row per bar: `stack` (its models' names), `levels` (how many), `metric` (with its
                unit) and `value` with its 95 % interval `low` to `high`
    sampling    the sampler's name, for the headline
    """
    check(table, "stack metric", "levels low value high")
    table = table.sort_values("levels", kind="stable")
    by = {"panel": "metric", "ends": "low value high", "text": "value"}
    rows = marks(table, "value", lanes(table, "stack"), **by)
    metrics = rows["panel"].nunique()
    high = 34 * table["stack"].nunique() + 70
    chart = Chart(rows["panel"], wide=230, high=high, columns=metrics, gap=0.025)
    chart.figure.update_annotations(font={"size": 12})
    add_bars(chart, rows, {"": Look(SOURCES["draft"])}, lying=True)
    every = table[["stack", "levels"]].drop_duplicates()
    for metric in chart.panels:
        better = "higher is better" if metric == YIELD else "lower is better"
        chart.start_at_zero("x", 1.42, panel=metric).axis("x", metric, title=better)
        without = every[~every["stack"].isin(table["stack"][table["metric"] == metric])]
        place = without["stack"].map(names_of(table["stack"]).index)
        none = marks(without, 0.0, place).assign(panel=metric, text="–")
        if len(none):
            words_beside(chart, none, lying=True)
    chart.axis("x", showticklabels=False, showgrid=False)
    chart.name_places("y", rows["stack"], longest=36)
    return chart.titled(
        f"What each setting yields and costs, counted{sampling and f', {sampling}'}"
    )


def free_drafts(table: pd.DataFrame) -> go.Figure:
    """What drafts without a network bring, beside a draft model's tree: a row per draft, the
    fastest on top, a lying dot over all kinds of text, with an interval and its value, and below it
    a tick per kind; a panel per sampler.

    table    a row per mark: `draft`, `domain` ("all" for the dot), `sampling`, and `speed_up` (over
             plain decoding (dotted), measured) with its 95 % interval `speed_up_low` to
             `speed_up_high`
    """
    check(table, "draft domain sampling", SPEED_UPS)
    whole = table["domain"] == ALL
    means = table[whole].groupby("draft")["speed_up"].mean().sort_values(ascending=False)
    order = names_of(means.index)
    place = table["draft"].map(str).map(order.index)
    by = {"series": "domain", "panel": "sampling"}
    dots = marks(table[whole], "speed_up", place[whole], ends=SPEED_UPS, **by)
    ticks = marks(table[~whole], "speed_up", place[~whole] + BELOW, **by)
    styles = {
        name: replace(look, symbol="line-ns-open") for name, look in looks(ticks["series"]).items()
    }
    high = 80 + 36 * len(order)
    x = "measured speed-up over plain decoding"
    chart = Chart(dots["panel"], wide=400, high=high, x=x)
    add_dots(chart, ticks, styles, lying=True, size=8)
    every = {"all kinds of text": Look(SOURCES["draft"])}
    add_dots(chart, dots.assign(series="all kinds of text"), every, lying=True, size=10)
    words = dots.assign(text=dots["x"].map(short))
    for _, own in groups_of(words, "panel"):
        words_beside(chart, own, lying=True)
    ends = pd.concat([dots[["x", "low", "high"]], ticks[["x"]]]).assign(plain=1.0)
    chart.axis("x", range=span_of(ends, 0.06, 0.16)).name_places("y", order, longest=32)
    return chart.titled("What copied, recycled and remembered tokens bring by the clock", plain="x")


def verifiers(table: pd.DataFrame) -> go.Figure:
    """Tokens per round of each verification rule ÷ those of `reject` on independent children, of
    the same prompts: under each kind of siblings a row per rule, last their bound, hollow; a lying
    dot per sampler, with an interval; a panel per shape of draft.

    table    as `summarise_rules` gives it: `sampling`, `shape` (of the draft), `rule` ("bound":
             what no rule can exceed), `siblings` ("ranked", "top", "iid" or "distinct"), `ratio`
             with its 95 % interval `ratio_low` to `ratio_high`, and `prompts` (that were counted)
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "sampling shape rule siblings", f"{ends} prompts")
    table = table[(table["rule"] != "reject") | (table["siblings"] != "iid")]  # 1 by definition
    bound = table["rule"] == "bound"
    table = table.assign(
        bound=bound,
        way=table["rule"] + table["siblings"],
        name=table["rule"].replace(RULE_NAMES),
        kind=table["siblings"].replace(SIBLINGS),
        look=table["sampling"] + np.where(bound, ", bound", ""),
    ).sort_values("bound", kind="stable")
    table = table.sort_values("kind", key=lambda own: own.map(names_of(own).index), kind="stable")
    place, words = under_headings(table, "kind", "name")
    order = names_of(table["sampling"])
    aside = lanes(table, "way", "sampling", 0.66, order)
    by = {"panel": "shape", "series": "sampling", "ends": ends, "note": "{prompts} prompts"}
    rows = marks(table, "ratio", place + aside - aside.round(), **by)
    styles = looks(order)
    for name in order:
        hollow = replace(styles[name], symbol=f"{styles[name].symbol}-open")
        styles[f"{name}, bound"] = hollow
    x = "tokens per round ÷ rejection sampling's (dotted)"
    chart = Chart(rows["panel"], wide=500, high=70 + 36 * len(words), x=x, gap=0.04)
    name_rows(add_dots(chart, rows, styles, lying=True, size=8), words)
    span = span_of(rows[["x", "low", "high"]].assign(reject=1.0), 0.06, 0.06)
    chart.axis("x", range=span, showline=True)
    headline = "Which rule accepts more than rejection sampling of independently drawn guesses"
    return chart.titled(headline, plain="x", room=84)


def passes(table: pd.DataFrame) -> go.Figure:
    """Passes of the draft model in a round: a row per draft, a lying dot per scout, with an
    interval and its value; a panel per sampler.

    table    a row per dot: `draft`, `scout` (what guesses before it; "none"), `sampling`, and
             `passes` (of the draft per round, counted) with its 95 % interval `low` to `high`
    """
    check(table, "draft scout sampling", "low passes high")
    by = {"series": "scout", "panel": "sampling", "text": "passes", "ends": "low passes high"}
    rows = marks(table, "passes", lanes(table, "draft", "scout", 0.8), **by)
    drafts, scouts = rows[["draft", "scout"]].nunique()
    high = 60 + drafts * (10 + 18 * scouts)
    chart = Chart(rows["panel"], wide=360, high=high, x="draft passes per round, counted")
    add_dots(chart, rows, lying=True, size=7).start_at_zero("x", ROOM)
    chart.name_places("y", rows["draft"])
    for edge in range(1, drafts):
        chart.figure.add_hline(y=edge - 0.5, **BETWEEN)
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
    chart = Chart(rows["panel"], wide=440, high=74 + 24 * len(order), x=x, gap=0.04)
    add_dots(chart, rows, PAYING, lying=True).start_at_zero("x", 1.05)
    chart.name_places("y", order, longest=40)
    headline = "Where speculation pays by the clock, and where it is slower than plain decoding"
    if set(verdict) == {untold}:
        headline = "Measured speed-up of every setting: so few prompts settle no single one"
    return chart.titled(headline, plain="x")


def plans(table: pd.DataFrame, *, about: str = "") -> go.Figure:
    """What a plan loses on prompts it has not seen against the best fixed setting in hindsight
    (dotted): a row per pair and kind of text, a lying dot per choice, with an interval where it has
    one; a panel per sampler.

    table    as `plan_regret.beside_best` gives it: `pair` (target and draft), `domain`, `sampling`,
             `choice`, and `ratio` (time per token ÷ the best setting's, counted and priced) with
             its 95 % interval `ratio_low` to `ratio_high` (NaN: none)
    about    what it was measured with, for the headline
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "pair sampling domain choice", ends)
    pairs = table["pair"].replace(PLANNED_PAIRS)
    table = table.assign(name=pairs + ": " + table["domain"])
    table = table.replace({"choice": CHOICES})
    order = names_of([*CHOICES.values(), *table["choice"]])
    place = lanes(table, "name", "choice", 0.6, order)
    by = {"series": "choice", "panel": "sampling", "ends": ends}
    rows = marks(table, "ratio", place, **by)
    x = "time per token ÷ the best fixed setting's (dotted)"
    chart = Chart(rows["panel"], wide=400, high=80 + 34 * rows["name"].nunique(), x=x)
    names = rows["name"]
    rows = rows.sort_values("series", key=lambda one: one.map(order.index), kind="stable")
    add_dots(chart, rows, looks(rows["series"]), lying=True, size=10)
    chart.axis("x", range=span_of(rows[["x", "low", "high"]].assign(best=1.0), 0.06, 0.06))
    chart.name_places("y", names, longest=32)
    where = about and f" ({about})"
    headline = f"What a plan loses on new prompts{where}"
    bare = "for the plan" if rows["low"].isna().any() else ""
    return chart.titled(headline, plain="x", bare=bare)


def off_switches(table: pd.DataFrame) -> go.Figure:
    """What an off-switch changes: the speed of a draft with it ÷ without it (dotted), on the same
    prompts: a row per kind of prompt, a lying dot with an interval; a panel per edition and
    sampler.

    table    a row per dot: `domain` (drawn in the words of `KIND_NAMES`), `edition` (of the
             target), `sampling`, and `speed_up` (of speeds, measured) with its 95 % interval
             `speed_up_low` to `speed_up_high`
    """
    check(table, "domain edition sampling", SPEED_UPS)
    panels = table["edition"].replace(EDITION_NAMES) + ", " + table["sampling"]
    table = table.replace({"domain": KIND_NAMES})
    table["edition"] = table["edition"].replace(EDITION_NAMES)
    by = {"panel": "panel", "series": "edition", "ends": SPEED_UPS}
    rows = marks(table.assign(panel=panels), "speed_up", lanes(table, "domain"), **by)
    across = rows["panel"].nunique()
    high = 80 + 26 * table["domain"].nunique()
    x = "speed with it ÷ without"
    chart = Chart(rows["panel"], wide=960 / across, high=high, columns=across, x=x, gap=0.02)
    add_dots(chart, rows, EDITIONS, lying=True)
    chart.axis("x", range=span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.06, 0.06))
    chart.name_places("y", rows["domain"], longest=32)
    headline = "What an off-switch changes for a draft that was not tuned, by the kind of prompt"
    return chart.titled(headline, plain="x")


def versus(table: pd.DataFrame) -> go.Figure:
    """Milliseconds per token of Hugging Face's ways and of ours, on a logarithmic axis: a row per
    way and target, the slowest on top, a lying dot with an interval and its value; a panel per kind
    of prompts and sampler.

    table    as `rival_tables.side_by_side` gives it: `family`, `sampling`, `name`, `whose` (number
             format or program), `prompts`, `ms_per_token`, and `ratio` (speed ÷ plain decoding's)
             with its 95 % interval `ratio_low` to `ratio_high`, which is drawn around the
             milliseconds
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "family sampling name whose", f"prompts ms_per_token {ends}")
    ours = table.groupby("name")["whose"].transform("nunique") > 1
    table = table.assign(
        row=table["name"] + np.where(ours, ", " + table["whose"], ""),
        panel=table["family"] + ", " + table["sampling"],
        least=table["ms_per_token"] * table["ratio"] / table["ratio_high"],
        most=table["ms_per_token"] * table["ratio"] / table["ratio_low"],
    )
    means = table.groupby("row", sort=False)["ms_per_token"].mean()
    order = names_of(means.sort_values(ascending=False, kind="stable").index)
    place = table["row"].map(order.index)
    by = {"series": "whose", "panel": "panel", "ends": "least ms_per_token most"}
    by["note"] = "{prompts} prompts"
    rows = marks(table, "ms_per_token", place, **by, text="ms_per_token")
    x = "milliseconds per token, measured, logarithmic"
    chart = Chart(rows["panel"], wide=470, high=60 + 25 * len(order), x=x, gap=0.03)
    add_dots(chart, rows, lying=True).name_places("y", order, longest=40)
    owners = table.drop_duplicates("row").set_index("row").loc[order, "whose"]
    for edge in np.flatnonzero(owners.to_numpy()[1:] != owners.to_numpy()[:-1]):
        chart.figure.add_hline(y=edge + 0.5, **BETWEEN)
    least, most = span_of(rows[["x", "low", "high"]])
    chart.count_in_factors("x", MILLISECONDS, (0.9 * least, 1.4 * most)).axis("x", showline=True)
    return chart.titled("Milliseconds per token: Hugging Face's ways, and ours")
