"""Figures of staged decoding: draft passes, the paper's numbers beside ours, and the ablations."""

from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, fold, open_chart
from specdec_lib.show.figures.forms import add_bars, add_dots
from specdec_lib.show.figures.marks import check, groups, lanes, marks, names_of
from specdec_lib.show.figures.theme import SOURCES, Look, looks

ENDS = "low value high"
ROOM = 1.28  # of an axis with words right of its dots, against its highest value


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A value with one stage and with two, a line with intervals per shape of tree and a panel per
    sampling, values beside the dots.

    table    `shape` ("chain", "tree"), `stages` (1, 2), `sampling`, `value`, `low`, `high`
    """
    check(table, "shape stages sampling", ENDS)
    table = table.sort_values("stages", kind="stable")
    shapes = sorted(names_of(table["shape"]))
    place = lanes(table["stages"], table["shape"], room=0.34, order=shapes)
    rows = marks(table, place, "value", series="shape", panel="sampling", ends=ENDS, text="value")
    panels = names_of(rows["panel"])
    chart = open_chart(panels, size=(110 + 320 * len(panels), 354), y=value_title)
    add_dots(chart, rows, looks(shapes), joined=2, size=11)
    counts = sorted(set(table["stages"]))
    chart.name_places("x", [f"{count} stage{'s' if count != 1 else ''}" for count in counts])
    chart.start_at_zero("y", rows, 1.1)
    return chart.titled("One stage against two, for a chain and for a tree")


def stages(table: pd.DataFrame) -> go.Figure:
    """A dot with an interval for what each stack of models reaches, a panel per metric; the stack
    of fewest levels on top.

    table    `levels` (models in the stack, the target among them), `stack` (its name), `metric`,
             `value`, `low`, `high`
    """
    check(table, "stack metric", f"levels {ENDS}")
    table = table.sort_values("levels", kind="stable")
    stacks, metrics = names_of(table["stack"]), names_of(table["metric"])
    rows = marks(table, "value", lanes(table["stack"]), panel="metric", ends=ENDS, text="value")
    across, down = fold(len(metrics))
    size = (min(900, 240 + 300 * across), 40 + down * (40 * len(stacks) + 60))
    chart = open_chart(metrics, size=size, columns=across)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])}, lying=True, size=10)
    for metric, own in groups(rows, "panel"):
        end = ROOM * (float(own["high"].fillna(own["x"]).max()) or 1.0)
        chart.figure.update_xaxes(range=[0, end], nticks=5, **chart.panels[metric])
    chart.name_places("y", stacks, longest=36)
    return chart.titled("What each level of the stack adds")


def passes(table: pd.DataFrame) -> go.Figure:
    """Draft passes per round with and without a scout: a row of dots with intervals per draft, a
    dot per scout, a panel per sampling.

    table    `draft` (its name), `scout` ("none", "n-gram", …), `sampling`, `passes`, `low`, `high`
    """
    ends = "low passes high"
    check(table, "draft scout sampling", ends)
    place, by = lanes(table["draft"], table["scout"]), {"series": "scout", "panel": "sampling"}
    rows = marks(table, "passes", place, ends=ends, text="passes", **by)
    panels, drafts = names_of(rows["panel"]), names_of(table["draft"])
    size = (220 + 320 * len(panels), 80 + len(drafts) * (24 + 20 * rows["series"].nunique()))
    chart = open_chart(panels, size=size, x="draft passes per round")
    add_dots(chart, rows, lying=True, size=10)
    chart.start_at_zero("x", rows, ROOM)
    chart.name_places("y", drafts)
    return chart.titled("Passes of the draft in a round, by the scout that guesses before it")


def paper_and_ours(
    table: pd.DataFrame, *, y_title: str, lower_is_better: bool = False
) -> go.Figure:
    """Two bars per method, the paper's and ours, with their values on them; a panel per sampling.

    table    `sampling`, `method`, `paper`, `ours` (NaN leaves a bar out), optionally `ours_low` and
             `ours_high` (an interval)
    """
    check(table, "sampling method", "paper ours")
    rows = _paper_marks(table)
    panels, methods = names_of(table["sampling"]), names_of(table["method"])
    width = min(900, max(420, 110 + 92 * len(methods) * len(panels)))
    better = "lower" if lower_is_better else "higher"
    chart = open_chart(panels, size=(width, 354), y=f"{y_title} ({better} is better)")
    paper, ours = looks(("paper", "ours")).values()
    styles = {"paper": replace(paper, hatch="/"), "ours": replace(ours, full=True, hatch="")}
    add_bars(chart, rows, styles, width=0.36)
    room = (width - 110) / len(panels) / len(methods) / 7.6  # characters to a method
    chart.name_places("x", methods, longest=max(6, int(room)))
    chart.start_at_zero("y", rows, 1.1)
    return chart.titled("Ours beside the paper's, by method")


def _paper_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Two marks per method: the paper's, and ours with its interval if there is one."""
    place, panel = lanes(table["method"]), {"panel": "sampling"}
    ends = "ours_low ours ours_high" if {"ours_low", "ours_high"} <= set(table) else ""
    paper = marks(table, place - 0.2, "paper", text="paper", **panel).assign(series="paper")
    ours = marks(table, place + 0.2, "ours", ends=ends, text="ours", **panel).assign(series="ours")
    return pd.concat([paper, ours], ignore_index=True)


def relative_performance(table: pd.DataFrame) -> go.Figure:
    """Each prompt's relative performance per method, prompts sorted by that of "staged" (or else
    the last method); a panel per sampling.

    table    `sampling`, `prompt`, `method`, `relative` (1 is plain decoding's)
    """
    check(table, "sampling prompt method", "relative")
    ranked = pd.concat([_rank(own, sampling) for sampling, own in groups(table, "sampling")])
    noted = ranked.assign(note=ranked["prompt"])
    rows = marks(noted, "rank", "relative", series="method", panel="sampling")
    panels, most = names_of(rows["panel"]), int(rows["rank"].max())
    size, y = (130 + 380 * len(panels), 354), "performance ÷ plain decoding's (dotted)"
    chart = open_chart(panels, size=size, x="rank of the prompt", y=y)
    add_dots(chart, rows, looks(table["method"]), joined=1.2, size=8 if most <= 40 else 5)
    chart.figure.add_hline(y=1, **PLAIN)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, most) if most <= 10 * step)
    ticks = [1, *range(max(2, step), most + 1, step)]
    chart.figure.update_xaxes(tickvals=ticks, range=[0.5 - 0.02 * most, 0.5 + 1.02 * most])
    chart.figure.update_yaxes(rangemode="tozero")
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
