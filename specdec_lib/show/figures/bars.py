"""Charts of bars: standing ones that compare methods, lengths and distributions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms import add_bars, add_dots
from specdec_lib.show.figures.labels import short
from specdec_lib.show.figures.marks import Lanes, check, marks, names_of
from specdec_lib.show.figures.theme import GAIN, LOSS, PAPERS, Look, looks, visible

LENGTH_LOOKS = {
    "faster": Look(GAIN),
    "slower": Look(LOSS, hatch="/"),
    "faster, chosen": Look(GAIN, full=True),
    "slower, chosen": Look(LOSS, hatch="/", full=True),
}


def distributions(table: pd.DataFrame) -> go.Figure:
    """Bars show the probabilities of the same tokens under several distributions, side by side.

    table    `token` (its text), `distribution`, `probability`, in the order in which they are shown
    """
    rows = marks(table, Lanes("token", "distribution", 0.8), "probability")
    values = [f"{value:.2f}".removeprefix("0") if value else "0" for value in rows["y"]]
    tokens, names = names_of(table["token"]), names_of(table["distribution"])
    styles = looks(names)
    styles[names[0]] = replace(styles[names[0]], full=True)
    size = (max(560, 120 + 34 * len(tokens) * len(names)), 320)
    chart = open_chart(size=size, x="token", y="probability")
    add_bars(chart, rows.assign(text=values), styles, width=0.75 / len(names))
    chart.name_places("x", [visible(token, 12) for token in tokens])
    chart.figure.update_xaxes(tickangle=0 if len(tokens) <= 10 else -40, showline=False)
    chart.figure.update_yaxes(range=[0, min(1.08, 1.15 * float(rows["y"].max()))])
    return chart.titled("Probability of each outcome under each distribution")


def chain_lengths(table: pd.DataFrame, *, length: int, title: str = "") -> go.Figure:
    """Speed-up over how many guesses a chain has, as bars, those below plain decoding hatched; the
    chosen length in full colour.

    table     `length` from 1, `speed_up`, `tokens_per_round`
    length    the chosen one
    """
    by = {"text": "speed_up", "once": "length"}
    rows = marks(table, "length", "speed_up", note="{tokens_per_round:.2f} tokens per round", **by)
    if length not in set(table["length"]):
        raise ValueError(f"the chosen length is one of {sorted(table['length'])}, got {length}")
    verdict = pd.Series(np.where(rows["y"] > 1, "faster", "slower"), rows.index)
    rows = rows.assign(look=verdict + np.where(rows["x"] == length, ", chosen", ""))
    y = "speed-up over plain decoding (dotted)"
    chart = open_chart(size=(780, 226), x="guesses per round", y=y)
    add_bars(chart, rows, LENGTH_LOOKS, width=0.7)
    chart.figure.add_hline(y=1, **PLAIN)
    chart.figure.update_xaxes(tickvals=list(table["length"]), showgrid=False)
    chart.start_at_zero("y", rows, 1.2, least=1.0)
    return chart.titled(title or "Speed-up of a chain, by its length")


def paper_and_ours(
    table: pd.DataFrame, *, y_title: str, lower_is_better: bool = False
) -> go.Figure:
    """Two bars per method, the paper's and ours, with their values on them; a panel per sampling.

    table    `sampling`, `method`, `paper`, `ours` (NaN leaves a bar out), optionally `ours_low` and
             `ours_high` (an interval)
    """
    check(table, "sampling method", "paper ours")
    rows, methods = _paper_marks(table), names_of(table["method"])
    panels = rows["panel"].nunique()
    width = min(900, max(420, 110 + 92 * len(methods) * panels))
    better = "lower" if lower_is_better else "higher"
    chart = open_chart(rows["panel"], size=(width, 354), y=f"{y_title} ({better} is better)")
    paper, ours = looks(("paper", "ours")).values()
    styles = {"paper": replace(paper, hatch="/"), "ours": replace(ours, full=True, hatch="")}
    add_bars(chart, rows, styles, width=0.36)
    room = (width - 110) / panels / len(methods) / 7.6  # characters to a method
    chart.name_places("x", methods, longest=max(6, int(room)))
    chart.start_at_zero("y", rows, 1.1)
    return chart.titled("Ours beside the paper's, by method")


def _paper_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Two marks per method: the paper's, and ours with its interval if there is one."""
    place, panel = Lanes("method").of(table), {"panel": "sampling"}
    ends = "ours_low ours ours_high" if {"ours_low", "ours_high"} <= set(table) else ""
    paper = marks(table, place - 0.2, "paper", text="paper", **panel).assign(series="paper")
    ours = marks(table, place + 0.2, "ours", ends=ends, text="ours", **panel).assign(series="ours")
    return pd.concat([paper, ours], ignore_index=True)


def walltime(table: pd.DataFrame) -> go.Figure:
    """Speed against autoregressive decoding: a bar per method and domain, tokens per second in it,
    the paper's ratios as hollow diamonds.

    table    `domain`, `method`, `ours`, `ours_low`, `ours_high`, `paper` (tokens per second), and
             `ratio`, `ratio_low`, `ratio_high`, `paper_ratio` (to autoregressive decoding on the
             same machine); NaN where there is none
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "domain method", f"ours ours_low ours_high paper paper_ratio {ends}")
    domains, place = names_of(table["domain"]), Lanes("method", "domain", 0.84).of(table)
    lane, note = (
        0.84 / len(domains),
        "{ours:.4g} tokens per second ({ours_low:.4g} to {ours_high:.4g})",
    )
    by = {"series": "domain", "ends": ends, "text": "ratio", "note": note}
    ours = marks(table, place - 0.1 * lane, "ratio", **by).dropna(subset=["ratio"])
    theirs = marks(table, place + 0.33 * lane, "paper_ratio", text="paper_ratio")
    theirs = theirs.assign(series="paper").dropna(subset=["paper_ratio"])
    y = "speed ÷ autoregressive decoding's (in the bars: tokens per second)"
    chart = open_chart(size=(900, 404), x="how it is decoded", y=y)
    styles = {name: replace(look, hatch="") for name, look in looks(domains).items()}
    add_bars(chart, ours.assign(inside=ours["ours"].map(short)), styles, width=0.62 * lane)
    add_dots(chart, theirs, {"paper": PAPERS[0]}, size=10)
    chart.figure.update_traces(insidetextanchor="start", selector={"type": "bar"})
    chart.figure.add_hline(y=1, **PLAIN)
    chart.name_places("x", table["method"], longest=18)
    chart.start_at_zero("y", ours, 1.12, least=float(theirs["y"].max() if len(theirs) else 0))
    return chart.titled(
        "Speed on the clock as a ratio to autoregressive decoding on the same machine"
    )
