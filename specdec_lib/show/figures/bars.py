"""Charts of bars that stand: methods, lengths and distributions compared."""

from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import add_bars, add_dots
from specdec_lib.show.figures.marks import check, lanes, marks, names_of
from specdec_lib.show.figures.theme import GAIN, LOSS, PAPERS, Look, looks, short, visible

PAYS = {"faster": Look(GAIN, hatch="/"), "slower": Look(LOSS, hatch="x")}
LENGTH_LOOKS = PAYS | {f"{name}, chosen": replace(one, full=True) for name, one in PAYS.items()}


def distributions(table: pd.DataFrame) -> go.Figure:
    """The `probability` of the same `token`s, their texts, under several `distribution`s, side by
    side in the table's order, every other one in its full colour.
    """
    check(table, "", "token distribution probability")
    place = lanes(table, "token", "distribution", 0.8)
    rows = marks(table, place, "probability", series="distribution")
    values = [f"{value:.2f}".removeprefix("0") if value else "0" for value in rows["y"]]
    tokens, styles = names_of(table["token"]), looks(table["distribution"])
    styles = {
        name: replace(one, hatch="", full=place % 2 == 0)
        for place, (name, one) in enumerate(styles.items())
    }
    chart = Chart(wide=34 * len(rows), high=320, x="token", y="probability")
    add_bars(chart, rows.assign(text=values), styles, width=0.75 / len(styles))
    chart.name_places("x", [visible(token, 12) for token in tokens])
    chart.axis("x", tickangle=0 if len(tokens) <= 10 else -40, showline=False)
    chart.axis("y", range=[0, min(1.08, 1.15 * float(rows["y"].max()))])
    return chart.titled("Probability of each outcome under each distribution")


def chain_lengths(table: pd.DataFrame, *, length: int, title: str) -> go.Figure:
    """Predicted `speed_up` by a chain's `length` from 1, cross-hatched below plain decoding, with
    its `tokens_per_round`; the chosen `length` is in full colour.
    """
    check(table, "length", "speed_up tokens_per_round")
    note = "{tokens_per_round:.2f} tokens per round"
    rows = marks(table, "length", "speed_up", text="speed_up", note=note)
    verdict = pd.Series(np.where(rows["y"] > 1, "faster", "slower"), rows.index)
    rows = rows.assign(look=verdict + np.where(rows["x"] == length, ", chosen", ""))
    chart = Chart(high=226, x="guesses per round", y="predicted ÷ plain decoding's speed (dotted)")
    add_bars(chart, rows, LENGTH_LOOKS, width=0.7)
    chart.axis("x", tickvals=list(table["length"]), showgrid=False)
    chart.start_at_zero("y", rows, 1.2, least=1.0)
    return chart.titled(title, plain="y")


def paper_and_ours(
    table: pd.DataFrame,
    *,
    title: str,
    y_title: str,
    by: str,
    paper_by: str = "",
    lower_is_better: bool = False,
) -> go.Figure:
    """Two bars per `method`, the `paper`'s and `ours`, with their values on them; a panel per
    `sampling`. NaN leaves a bar out; ours may have an interval `ours_low` to `ours_high`.

    by, paper_by    how ours and the paper's were found, as of `found_by`; "" where it does not say
    """
    check(table, "sampling method", "paper ours")
    place, methods = lanes(table, "method"), names_of(table["method"])
    interval = "ours_low ours ours_high" if {"ours_low", "ours_high"} <= set(table) else ""
    better = "lower" if lower_is_better else "higher"
    wide, y = 92 * len(methods), f"{y_title} ({better} is better)"
    chart, drawn = Chart(table["sampling"].map(str), wide=wide, y=y), []
    for name, aside, ends, way in ("paper", -0.2, "", paper_by), ("ours", 0.2, interval, by):
        rows = marks(table, place + aside, name, text=name, ends=ends, panel="sampling")
        look = replace(looks([name])[name], full=name == "ours")
        add_bars(chart, rows.assign(series=name), {name: look}, width=0.36, by=way)
        drawn.append(rows)
    chart.name_places("x", methods, longest=12)
    chart.start_at_zero("y", pd.concat(drawn), 1.1)
    return chart.titled(title)


def walltime(table: pd.DataFrame) -> go.Figure:
    """Speed against autoregressive decoding, `ratio`: a bar per `method` and `domain`, in it `ours`
    in tokens per second, the paper's ratios, `paper_ratio` or NaN, as hollow diamonds; the legend
    says which `paper_data` stands over which domain, the headline the one `sampling`.
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "domain method", f"ours paper_ratio paper_data sampling {ends}")
    styles = {name: replace(one, hatch="") for name, one in looks(table["domain"]).items()}
    place, lane = lanes(table, "method", "domain", 0.84), 0.84 / len(styles)
    by = {"series": "domain", "text": "ratio", "note": "{ours:.4g} tokens per second"}
    ours = marks(table, place - 0.1 * lane, "ratio", ends=ends, **by)
    theirs = marks(table, place + 0.33 * lane, "paper_ratio", text="paper_ratio")
    theirs = theirs[theirs["method"] != "autoregressive"]  # 1 by definition
    y = "speed ÷ autoregressive decoding's (in the bars: tokens per second)"
    chart = Chart(wide=780, high=404, x="how it is decoded", y=y)
    add_bars(chart, ours.assign(inside=ours["ours"].map(short)), styles, width=0.62 * lane)
    over = theirs.drop_duplicates("domain")
    over = ", ".join(f"{row.paper_data} over {row.domain}" for row in over.itertuples())
    paper = f"paper: {over}" if over else "paper"
    add_dots(chart, theirs.assign(series=paper), {paper: PAPERS[0]}, size=10)
    chart.figure.update_traces(textposition="bottom center", selector={"name": paper})
    chart.figure.update_traces(insidetextanchor="start", selector={"type": "bar"})
    chart.name_places("x", table["method"], longest=18)
    chart.start_at_zero("y", ours, 1.12, least=float(theirs["y"].max()))
    how = " and ".join(names_of(table["sampling"]))
    said = "Measured speed ÷ autoregressive decoding's, ours and the paper's"
    return chart.titled(f"{said} each on its own machine, {how}", plain="y")
