"""Speed against what a user would pick instead: every method against every baseline, with
intervals.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import headed, key, lying
from specdec_lib.show.figures.marks import check, check_once, groups, looks, panels, place
from specdec_lib.show.figures.theme import INK, escaped

COLUMNS = (
    "method",
    "baseline",
    "temperature",
    "top_k",
    "prompt_set",
    "runtime",
    "ratio",
    "ratio_low",
    "ratio_high",
)
LANE = 19  # pixels from a baseline's dot to the next
FOREIGN = "hf_"  # methods that are nothing but baselines begin so
NAMES = {
    "autoregressive": "plain decoding",
    "hf_generate": "transformers generate",
    "hf_assisted": "transformers assisted",
    "hf_prompt_lookup": "transformers prompt lookup",
}
TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)


def versus(table: pd.DataFrame, *, prompt_set: str = "not looping") -> go.Figure:
    """How many times faster each of our methods is than each baseline: a panel per sampler, a row
    per method, a dot with its interval per baseline.

    Equal factors are equally far apart.

    table         as `make bench` writes it
    prompt_set    "not looping" or "all"

    Raises ValueError if the table lacks a column or this set of prompts, has two rows for one dot,
    or an interval does not hold its ratio.
    """
    check(table, COLUMNS)
    shown_rows = table[
        (table["prompt_set"] == prompt_set) & ~table["method"].str.startswith(FOREIGN)
    ]
    check(shown_rows, COLUMNS)
    kinds = shown_rows.groupby("method")["runtime"].transform("nunique") > 1
    called = shown_rows["method"].replace(NAMES)
    names = called.where(~kinds, called + ", " + shown_rows["runtime"])
    sampling = [
        "greedy" if row.temperature == 0 else f"T = {row.temperature:g}, top-k {row.top_k:.0f}"
        for row in shown_rows.itertuples()
    ]
    rows = shown_rows.assign(
        name=names, sampling=sampling, baseline=shown_rows["baseline"].replace(NAMES)
    )
    check_once(rows, ("sampling", "name", "baseline"))
    methods, baselines = (
        [name for name, _ in groups(rows, column)] for column in ("name", "baseline")
    )
    styles = looks(baselines)
    samplers = list(groups(rows, "sampling"))
    step = len(baselines) + 1
    figure = panels(
        [name for name, _ in samplers],
        width=min(960, 180 + 390 * len(samplers)),
        height=150 + LANE * step * len(methods),
    )
    shown: set[str] = set()
    for number, (_, own) in enumerate(samplers):
        for lane, (name, dots) in enumerate(
            (name, own[own["baseline"] == name]) for name in baselines
        ):
            heights = [-(methods.index(method) * step + lane) for method in dots["name"]]
            for trace in lying(
                dots, "ratio", heights, styles[name].marker(8), styles[name], name=name
            ):
                key(figure, shown, trace, place(number, len(samplers)))
    ticks = [-(at * step + (len(baselines) - 1) / 2) for at in range(len(methods))]
    figure.update_yaxes(
        tickvals=ticks,
        ticktext=[escaped(name) for name in methods],
        range=[-step * len(methods) + 0.5, 1],
        showgrid=False,
    )
    figure.update_yaxes(title="method", col=1)
    figure.add_vline(x=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    ends = [
        math.log10(0.85 * min(1.0, float(rows["ratio_low"].min()))),
        math.log10(1.5 * max(1.0, float(rows["ratio_high"].max()))),
    ]
    ticks = {"tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
    figure.update_xaxes(
        title="times as fast as the baseline", type="log", range=ends, showline=True, **ticks
    )
    figure.update_layout(showlegend=True)
    return headed(
        figure, f"Speed against each baseline, with 95 % intervals over prompts ({prompt_set})"
    )
