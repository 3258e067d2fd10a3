"""The figure of the benchmark: every method against every baseline."""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.marks import check, lanes, marks, names_of, shorts
from specdec_lib.show.figures.theme import looks

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
    """
    ends = ("ratio_low", "ratio_high")
    keys = ("method", "baseline", "temperature", "top_k", "prompt_set", "runtime")
    check(table, (*keys, "ratio", *ends))
    table = table[table["prompt_set"] == prompt_set]
    check(table, (*keys, "ratio", *ends))
    named = _named(table[~table["method"].str.startswith(FOREIGN)])
    check(named, ("name",), once=("sampling", "name", "baseline"))
    named = named.assign(place=lanes(named["name"], named["baseline"], room=0.8))
    named = named.assign(text=shorts(named["ratio"]))
    rows = marks(
        named,
        x="ratio",
        y="place",
        series="baseline",
        panel="sampling",
        ends=ends,
        value="ratio",
    )
    panels, methods, styles = names_of(rows["panel"]), names_of(rows["name"]), looks(rows["series"])
    size = (180 + 390 * len(panels), 74 + LANE * (len(styles) + 1) * len(methods))
    chart = open_chart(panels, size=size, x="times as fast as the baseline", y="method")
    add_dots(chart, rows, styles, lying=True, size=8)
    chart.figure.add_vline(x=1, **PLAIN)
    chart.name_places("y", methods)
    span = 0.85 * min(1.0, float(rows["low"].min())), 1.5 * max(1.0, float(rows["high"].max()))
    ticks = {"tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
    look = {"type": "log", "range": list(map(math.log10, span)), "showline": True}
    chart.update_axes("x", ticks | look)
    return chart.titled(f"Speed against each baseline, with 95 % intervals ({prompt_set} prompts)")


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Methods, baselines and samplers in words; a method in several runtimes says which."""
    several = table.groupby("method")["runtime"].transform("nunique") > 1
    called = table["method"].replace(NAMES)
    sampling = [
        "greedy" if row.temperature == 0 else f"T = {row.temperature:g}, top-k {row.top_k:.0f}"
        for row in table.itertuples()
    ]
    return table.assign(
        name=called.where(~several, called + ", " + table["runtime"]),
        sampling=sampling,
        baseline=table["baseline"].replace(NAMES),
    )
