"""Figures of staged decoding: draft passes, the paper's numbers beside ours, and the ablations."""

from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.bars import add_bars
from specdec_lib.show.figures.forms.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.marks import (
    check,
    check_interval,
    ends_of,
    groups,
    lanes,
    marks,
    names_of,
    shorts,
)
from specdec_lib.show.figures.theme import SOURCES, Look, looks

ENDS = ("low", "high")
ROOM = 1.28  # of an axis with words right of its dots, against its highest value


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A value with one stage and with two, a line with intervals per shape of tree and a panel per
    sampling, values beside the dots.

    table    a row per dot: `shape` ("chain", "tree"), `stages` (1, 2), `sampling`, `value`, `low`,
             `high`
    """
    check(
        table, ("shape", "stages", "sampling", "value", *ENDS), once=("shape", "stages", "sampling")
    )
    table = table.sort_values("stages", kind="stable")
    shapes = names_of(table["shape"].sort_values(kind="stable"))
    place = lanes(table["stages"], table["shape"], room=0.34, order=shapes)
    rows = marks(
        table.assign(place=place, text=shorts(table["value"])),
        x="place",
        y="value",
        series="shape",
        panel="sampling",
        ends=ENDS,
    )
    panels = names_of(rows["panel"])
    chart = open_chart(panels, size=(110 + 320 * len(panels), 354), x="", y=value_title)
    add_dots(chart, rows, looks(shapes), joined=2, size=11)
    counts = sorted(set(table["stages"]))
    chart.name_places("x", [f"{count} stage{'s' if count != 1 else ''}" for count in counts])
    chart.update_axes("y", {"range": [0, 1.1 * float(ends_of(rows, "y").max())]})
    return chart.titled("One stage against two, for a chain and for a tree")


def stages(table: pd.DataFrame) -> go.Figure:
    """A dot with an interval for what each stack of models reaches, a panel per metric; the stack
    of fewest levels on top.

    table    a row per dot: `levels` (models in the stack, the target among them), `stack` (its
             name), `metric`, `value`, `low`, `high`
    """
    check(table, ("levels", "stack", "metric", "value", *ENDS), once=("stack", "metric"))
    table = table.sort_values("levels", kind="stable")
    stacks, metrics = names_of(table["stack"]), names_of(table["metric"])
    place = lanes(table["stack"])
    rows = marks(
        table.assign(place=place, text=shorts(table["value"])),
        x="value",
        y="place",
        panel="metric",
        ends=ENDS,
        value="value",
    )
    columns = 2 if len(metrics) == 4 else min(3, len(metrics))
    down = -(-len(metrics) // columns)
    size = (min(900, 240 + 300 * columns), 40 + down * (40 * len(stacks) + 60))
    chart = open_chart(metrics, size=size, x="", y="", columns=columns)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])}, lying=True, size=10)
    for metric, own in groups(rows, "panel"):
        chart.figure.update_xaxes(range=[0, _end(own)], nticks=5, **chart.panels[metric])
    chart.name_places("y", stacks, longest=30)
    return chart.titled("What each level of the stack adds")


def passes(table: pd.DataFrame) -> go.Figure:
    """Draft passes per round with and without a scout: a row of dots with intervals per draft, a
    dot per scout, a panel per sampling.

    table    a row per dot: `draft` (its name), `scout` ("none", "n-gram", …), `sampling` or
             `temperature`, `passes`, `low`, `high`
    """
    by = "temperature" if "sampling" not in table and "temperature" in table else "sampling"
    check(table, ("draft", "scout", by, "passes", *ENDS), once=("draft", "scout", by))
    said = table[by].map("temperature {:g}".format) if by == "temperature" else table[by]
    place = lanes(table["draft"], table["scout"])
    rows = marks(
        table.assign(place=place, said=said, text=shorts(table["passes"])),
        x="passes",
        y="place",
        series="scout",
        panel="said",
        ends=ENDS,
        value="passes",
    )
    panels, drafts, styles = names_of(said), names_of(table["draft"]), looks(table["scout"])
    size = (220 + 320 * len(panels), 80 + len(drafts) * (24 + 20 * len(styles)))
    chart = open_chart(panels, size=size, x="draft passes per round", y="")
    add_dots(chart, rows, styles, lying=True, size=10)
    chart.update_axes("x", {"range": [0, _end(rows)]})
    chart.name_places("y", drafts)
    return chart.titled("Passes of the draft in a round, by the scout that guesses before it")


def _end(rows: pd.DataFrame) -> float:
    """Where an axis ends that starts at 0 and leaves room for the words right of the dots."""
    return ROOM * (float(ends_of(rows, "x").max()) or 1.0)


def paper_and_ours(
    table: pd.DataFrame, *, y_title: str, lower_is_better: bool = False
) -> go.Figure:
    """Two bars per method, the paper's and ours, with their values on them; a panel per sampling.

    A NaN leaves its bar out.

    table    a row per sampling and method: `sampling`, `method`, `paper`, `ours`, optionally
             `ours_low` and `ours_high` (an interval)
    """
    check(table, ("sampling", "method", "paper", "ours"), once=("sampling", "method"))
    rows = _beside(table)
    panels, methods = names_of(table["sampling"]), names_of(table["method"])
    width = min(900, max(420, 110 + 92 * len(methods) * len(panels)))
    better = "lower" if lower_is_better else "higher"
    chart = open_chart(panels, size=(width, 354), x="", y=f"{y_title} ({better} is better)")
    styles = looks(("paper", "ours"))
    styles = {"paper": styles["paper"], "ours": replace(styles["ours"], full=True, hatch="")}
    styles["paper"] = replace(styles["paper"], hatch="/")
    add_bars(chart, rows, styles, width=0.36)
    room = (width - 110) / len(panels) / len(methods) / 7.6  # characters to a method
    chart.name_places("x", methods, longest=max(6, int(room)))
    highest = float(ends_of(rows, "y").max())
    chart.update_axes("y", {"range": [0, 1.1 * (highest if highest > 0 else 1.0)]})
    return chart.titled("Ours beside the paper's, by method")


def _beside(table: pd.DataFrame) -> pd.DataFrame:
    """Two marks per method: the paper's, and ours with its interval if there is one."""
    place = pd.Series(lanes(table["method"]), table.index)
    both = []
    for who, aside in (("paper", -0.2), ("ours", 0.2)):
        own = table.assign(who=who, place=place + aside, text=shorts(table[who]), value=table[who])
        if {f"{who}_low", f"{who}_high"} <= set(table.columns):
            check_interval(table, who, (f"{who}_low", f"{who}_high"))
            own = own.assign(low=table[f"{who}_low"], high=table[f"{who}_high"])
        both.append(own)
    rows = pd.concat(both, ignore_index=True)
    ends = ENDS if set(ENDS) <= set(rows.columns) else ()
    return marks(rows, x="place", y="value", series="who", panel="sampling", ends=ends)


def relative_performance(table: pd.DataFrame) -> go.Figure:
    """Each prompt's relative performance per method, prompts sorted by that of "staged" (or else
    the last method); a panel per sampling.

    table    a row per sampling, prompt and method: `sampling`, `prompt`, `method`, `relative` (1 is
             plain decoding's)
    """
    keys = ("sampling", "prompt", "method")
    check(table, (*keys, "relative"), once=keys)
    ranked = pd.concat([_rank(own, sampling) for sampling, own in groups(table, "sampling")])
    rows = marks(
        ranked.assign(note=ranked["prompt"]),
        x="rank",
        y="relative",
        series="method",
        panel="sampling",
    )
    panels, most = names_of(rows["panel"]), int(rows["rank"].max())
    chart = open_chart(
        panels,
        size=(130 + 380 * len(panels), 354),
        x="rank of the prompt",
        y="performance ÷ plain decoding's (dotted)",
    )
    add_dots(chart, rows, looks(table["method"]), joined=1.2, size=8 if most <= 40 else 5)
    chart.figure.add_hline(y=1, **PLAIN)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, most) if most <= 10 * step)
    ticks = [1, *range(max(2, step), most + 1, step)]
    ends = [0.5 - 0.02 * most, 0.5 + 1.02 * most]
    chart.update_axes("x", {"tickvals": ticks, "range": ends})
    chart.update_axes("y", {"rangemode": "tozero"})
    return chart.titled("Performance on each prompt, against plain decoding")


def _rank(rows: pd.DataFrame, sampling: str) -> pd.DataFrame:
    """The rows of one panel with the rank of each prompt, from the leading method's lowest up."""
    methods, prompts = names_of(rows["method"]), rows["prompt"].nunique()
    if len(rows) != prompts * len(methods):
        raise ValueError(
            f"every prompt needs one row per method: {sampling!r} has {prompts} prompts times"
            f" {len(methods)} methods but {len(rows)} rows"
        )
    lead = rows[rows["method"] == ("staged" if "staged" in methods else methods[-1])]
    order = lead.sort_values("relative", kind="stable")["prompt"].tolist()
    ranks = rows["prompt"].map({prompt: rank for rank, prompt in enumerate(order, 1)})
    return rows.assign(rank=ranks).sort_values("rank", kind="stable")
