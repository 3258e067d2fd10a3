"""Charts of lying dots with intervals: a row per name, from the top down."""

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.show.figures.chart import PLAIN, fold, open_chart
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.marks import Lanes, check, groups, marks, names_of
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, PAPERS, SOURCES, Look, looks

ROOM = 1.28  # of an axis with words right of its dots, against its highest value
VERDICTS = {
    "slower than plain decoding": Look(LOSS, symbol="x"),
    "too close to tell": Look(INK, symbol="circle-open"),
    "faster": Look(GAIN),
}
LANE, DOMAIN_LANE = 19, 15.0  # pixels from a baseline's or a domain's dot to the next
FOREIGN = "hf_"  # methods that are nothing but baselines begin so
NAMES = {
    "autoregressive": "plain decoding",
    "hf_generate": "transformers generate",
    "hf_assisted": "transformers assisted",
    "hf_prompt_lookup": "transformers prompt lookup",
}
TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)
DRAFTERS = (
    "middle",
    "draft",
    "Max-Gram",
    "middle + Max-Gram",
    "draft + Max-Gram",
    "middle + draft + Max-Gram",
)
THIN = {"width": 1, "color": "rgba(128,128,128,0.35)"}


def stages(table: pd.DataFrame) -> go.Figure:
    """A dot with an interval for what each stack of models reaches, a panel per metric; the stack
    of fewest levels on top.

    table    `levels` (models in the stack, the target among them), `stack` (its name), `metric`,
             `value`, `low`, `high`
    """
    keys, ends = "stack metric", "low value high"
    check(table, keys, f"levels {ends}")
    table = table.sort_values("levels", kind="stable")
    rows = marks(table, "value", Lanes("stack"), panel="metric", ends=ends, text="value")
    across, down = fold(rows["panel"].nunique())
    size = (min(900, 240 + 300 * across), 40 + down * (40 * rows["stack"].nunique() + 60))
    chart = open_chart(rows["panel"], size=size, columns=across)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])}, lying=True, size=10)
    for metric, own in groups(rows, "panel"):
        end = ROOM * (float(own["high"].fillna(own["x"]).max()) or 1.0)
        chart.figure.update_xaxes(range=[0, end], nticks=5, **chart.panels[metric])
    chart.name_places("y", rows["stack"], longest=36)
    return chart.titled("What each level of the stack adds")


def passes(table: pd.DataFrame) -> go.Figure:
    """Draft passes per round with and without a scout: a row of dots with intervals per draft, a
    dot per scout, a panel per sampling.

    table    `draft` (its name), `scout` ("none", "n-gram", …), `sampling`, `passes`, `low`, `high`
    """
    by = {"once": "draft scout sampling", "panel": "sampling", "text": "passes"}
    rows = marks(table, "passes", Lanes("draft", "scout"), ends="low passes high", **by)
    panels, drafts, scouts = rows[["panel", "draft", "scout"]].nunique().tolist()
    size = (220 + 320 * panels, 80 + drafts * (24 + 20 * scouts))
    chart = open_chart(rows["panel"], size=size, x="draft passes per round")
    add_dots(chart, rows, lying=True, size=10)
    chart.start_at_zero("x", rows, ROOM)
    chart.name_places("y", rows["draft"])
    return chart.titled("Passes of the draft in a round, by the scout that guesses before it")


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of every setting, that of the lowest mean on top: a dot with its
    interval, a panel per sampling; below 1 it does not pay.

    table    `draft`, `sampling`, `speed_up`, `speed_up_low`, `speed_up_high`
    """
    ends = "speed_up_low speed_up speed_up_high"
    check(table, "draft sampling", ends)
    means = table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable")
    order = names_of(means.index.to_series())
    low, high, (slower, close, faster) = table["speed_up_low"], table["speed_up_high"], VERDICTS
    said = table.assign(verdict=np.select([high < 1, low > 1], [slower, faster], close))
    by = {"series": "verdict", "panel": "sampling", "note": "{draft}"}
    place = table["draft"].map(str).map(order.index)
    rows = marks(said, "speed_up", place, ends=ends, **by)
    size = (240 + 320 * rows["panel"].nunique(), 74 + 24 * len(order))
    chart = open_chart(rows["panel"], size=size, x="speed-up over plain decoding", gap=0.04)
    add_dots(chart, rows, VERDICTS, lying=True)
    chart.figure.add_vline(x=1, **PLAIN)
    chart.start_at_zero("x", rows, 1.05)
    chart.name_places("y", order, longest=40)
    return chart.titled("Where speculation pays, and where it is slower than plain decoding")


def versus(table: pd.DataFrame, *, domain: str = "all") -> go.Figure:
    """How many times faster each of our methods is than each baseline: a panel per sampler, a row
    per method, a dot with its interval per baseline; equal factors are equally far apart.

    table     as `make bench` writes it, of one edition
    domain    of the prompts; "all" is all together
    """
    ends = "ratio_low ratio ratio_high"
    keys = f"method baseline temperature top_k domain runtime {ends}"
    check(table, "", keys)
    table = table[table["domain"] == domain]
    check(table, "", keys)
    named = _named(table[~table["method"].str.startswith(FOREIGN)])
    by = {"once": "sampling name baseline", "panel": "sampling", "text": "ratio"}
    rows = marks(named, "ratio", Lanes("name", "baseline", 0.8), ends=ends, **by)
    panels, methods, baselines = rows[["panel", "name", "baseline"]].nunique().tolist()
    size = (180 + 390 * panels, 74 + LANE * (baselines + 1) * methods)
    chart = open_chart(rows["panel"], size=size, x="times as fast as the baseline", y="method")
    add_dots(chart, rows, lying=True, size=8)
    chart.figure.add_vline(x=1, **PLAIN)
    chart.name_places("y", rows["name"])
    span = 0.85 * min(1.0, float(rows["low"].min())), 1.5 * max(1.0, float(rows["high"].max()))
    ticks = {"tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
    chart.figure.update_xaxes(ticks, type="log", range=list(map(math.log10, span)), showline=True)
    told = "all domains" if domain == "all" else f"{domain} prompts"
    return chart.titled(f"Speed against each baseline, with 95 % intervals ({told})")


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Methods, baselines and samplers in words; a method in several runtimes says which."""
    several = table.groupby("method")["runtime"].transform("nunique") > 1
    called = table["method"].replace(NAMES)
    sampling = list(map(sampling_of, table["temperature"], table["top_k"].replace(0, math.nan)))
    name = called.where(~several, called + ", " + table["runtime"])
    return table.assign(name=name, sampling=sampling, baseline=table["baseline"].replace(NAMES))


def swi_by_drafters(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of drafters: a panel per price list, a row per set, in it a lane per domain
    (ours) and per data set of the paper.

    table    `data` (domain, or the paper's data set), `prices`, `method`, `drafters`, and `ours`,
             `ours_low`, `ours_high` or `paper`, NaN where there is none; rows whose method is
             "autoregressive" are the line at 1
    """
    keys, values = "data prices method drafters", "ours_low ours ours_high paper"
    check(table, "", f"{keys} {values}")
    table = table[table["method"] != "autoregressive"]
    check(table, keys, values)
    rows = _swi_marks(table)
    sets, named = names_of(rows["set"]), names_of(rows["series"])
    lists = [f"prices: {name}" for name in names_of(table["prices"])]
    size = (min(900, 200 + 250 * len(lists)), 80 + DOMAIN_LANE * (len(named) + 1.6) * len(sets))
    x, y = "SWI (plain decoding is 1, dotted)", "drafters, and how they are used"
    chart = open_chart(lists, size=size, x=x, y=y)
    theirs = [name for name in named if name.startswith("paper, ")]
    styles = looks(name for name in named if name not in theirs)
    add_dots(chart, rows, styles | dict(zip(theirs, PAPERS, strict=False)), lying=True, size=8)
    chart.figure.add_vline(x=1, **PLAIN)
    values = rows[["x", "low", "high"]].astype(float)
    low, high = min(1.0, float(values.min().min())), max(1.0, float(values.max().max()))
    room = (high - low) or 1.0
    chart.figure.update_xaxes(range=[low - 0.08 * room, high + 0.28 * room], showline=True)
    chart.name_places("y", sets, longest=20)
    for edge in range(1, len(sets)):
        chart.figure.add_hline(y=edge - 0.5, line=THIN, layer="below")
    return chart.titled("SWI of each set of drafters, by price list; the paper's marks are hollow")


def _swi_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Our mark and the paper's of each row; known sets of drafters come first, in their order."""
    order = {name: number for number, name in enumerate(DRAFTERS)}
    table = table.assign(
        rank=[order.get(name, len(order)) for name in table["drafters"]],
        set=table["drafters"] + ", " + table["method"],
        list="prices: " + table["prices"].map(str),
        theirs="paper, " + table["data"].map(str),
    )
    ends = "ours_low ours ours_high"
    ours = marks(table, "ours", 0, series="data", panel="list", ends=ends, text="ours")
    paper = marks(table, "paper", 0, series="theirs", panel="list", text="paper")
    rows = pd.concat([part.dropna(subset=["x"]) for part in (ours, paper)], ignore_index=True)
    place = Lanes("set", "series", order=names_of(rows["series"]))
    rows = rows.sort_values("rank", kind="stable")
    return rows.assign(y=place.of(rows))
