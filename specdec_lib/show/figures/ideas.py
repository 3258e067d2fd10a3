"""What each idea is worth by the clock: the way from plain decoding to all ideas together, every
idea beside its lack, and where a claim changes its sign on other machines.
"""

import math
from collections.abc import Mapping
from itertools import product

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, Chart, check, lanes, marks, named_rows, span_of
from specdec_lib.show.figures.forms import TWO_SIDED, add_bars, add_dots
from specdec_lib.show.figures.headings import name_rows, under_headings
from specdec_lib.show.figures.theme import (
    DARK,
    EDITIONS,
    GAIN,
    INK,
    LOSS,
    NO_EDITION,
    Look,
    escape,
    family_looks,
    names_of,
)

MEASURED = "prices of a measured machine"
MODELLED = "prices modelled from a data sheet"
MACHINES = {MEASURED: Look(DARK, symbol="star"), MODELLED: Look(DARK, symbol="circle-open")}
FURTHEST = 0.25  # of a gain from 1, in the colours of a map
FAMILY_LOOKS = family_looks({**EDITIONS, "": NO_EDITION})
HEIGHTS = (0.005, 0.01, 0.03, 0.1, 0.3)
IDEAS = {  # in the words of a heading
    "tree": "a tree instead of a chain",
    "second stage": "a scout as the second stage",
    "copies": "copies of the text, with or without a scout",
    "cascade": "a cascade instead of one draft",
    "cascade beside copies": "a vertical cascade beside copies",
    "setting": "no idea: a chain at two tuned settings",
}
APART = 0.7  # bars between the editions of a waterfall
NEAR_PERCENT = 5  # of the clock
GUESSING = {
    "methods that guess": Look(GAIN, symbol="circle-open"),
    "plain decoding": Look(LOSS, symbol="x"),
}


def waterfall(table: pd.DataFrame) -> go.Figure:
    """Milliseconds per token from plain decoding down, idea by idea: a lying bar per step, with an
    interval, its value, and in brackets how many times as fast as plain decoding in float32 it is;
    the target in float32 above, in int8 below; a panel per sampler and kind of prompts.

    table    a row per bar, in order: `panel`, `edition` ("float32" or "int8"), `step`,
             `ms_per_token` with its 95 % interval `low` to `high`, `speed_up`, and `machine`
    """
    check(table, "panel edition step", "low ms_per_token high speed_up")
    editions = names_of(table["edition"])
    steps = names_of(table["step"])
    down = len(steps) + APART
    first = table["edition"].map(editions.index) * down
    by = {"series": "edition", "panel": "panel", "ends": "low ms_per_token high"}
    rows = marks(table, "ms_per_token", first + table["step"].map(steps.index), **by)
    times = table["speed_up"].map("{:.1f}×".format)
    rows["text"] = table["ms_per_token"].map("{:.1f} ms".format) + " (" + times + ")"
    x = "milliseconds per token"
    chart = Chart(rows["panel"], wide=215, high=60 + 24 * down * len(editions), columns=4, x=x)
    add_bars(chart, rows, EDITIONS, lying=True, width=0.72).start_at_zero("x", 1.9)
    places = [number * down + step for number in range(len(editions)) for step in range(len(steps))]
    last = places[-1] + 0.6
    chart.axis("y", tickvals=places, ticktext=steps * len(editions), range=[last, -0.6])
    chart.axis("y", showgrid=False, showline=True).axis("x", nticks=4)
    brackets = "in brackets: the speed ÷ plain decoding's in float32"
    return chart.titled(f"Milliseconds per token, idea by idea ({brackets})")


def idea_ratios(
    table: pd.DataFrame,
    *,
    x: str | Mapping[str, str] = "speed ÷ that of the other",
    title: str = "What each idea adds by the clock",
) -> go.Figure:
    """What each idea adds: a row per pair of methods that differ by it alone, a lying dot per kind
    of prompts, with a 95 % interval; a panel per edition and sampler, or per way of measuring.

    table    a row per dot: `panel` (its dots have the look of the edition that it names), `idea`,
             `pair`, `family` (of prompts; hollow for published ones), `ratio` (of speeds) with
             `ratio_low` to `ratio_high`, `prompts`, and `machine`
    x        the title of the axis, or by a word in the panel's name the title of its axis
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "panel pair family", f"{ends} idea prompts")
    table = table.assign(first=table["idea"].map(names_of(table["idea"]).index))
    table = table.sort_values("first", kind="stable").replace({"idea": IDEAS})
    place, names = under_headings(table, "idea", "pair")
    aside = lanes(table, "pair", "family", 0.5)
    place = place + aside - aside.round()
    if table["idea"].nunique() == 1:  # which the headline names
        place, names = place - 1, names[1:]
    by = {"series": "family", "panel": "panel", "ends": ends, "note": "{idea}, {prompts} prompts"}
    rows = marks(table, "ratio", place, **by)
    high = 60 + 30 * len(names)
    across = rows["panel"].nunique()
    across = across if across <= 4 else 3
    axes = {"": x} if isinstance(x, str) else x
    chart = Chart(rows["panel"], wide=960 / across, high=high, columns=across, gap=0.02)
    for panel, (word, words) in product(chart.panels, axes.items()):
        if word in panel:
            chart.axis("x", panel, title=words)
    look = rows["panel"].map(_edition_of) + ", " + rows["family"]
    add_dots(chart, rows.assign(look=look), FAMILY_LOOKS, lying=True, size=8)
    name_rows(chart, names)
    chart.axis("x", range=span_of(rows[["x", "low", "high"]], 0.06, 0.06), nticks=5)
    return chart.titled(title, plain="x")


def _edition_of(panel: str) -> str:
    """The edition that a panel's name tells of, or ""."""
    return next((edition for edition in EDITIONS if edition in panel), "")


def clock_errors(table: pd.DataFrame) -> go.Figure:
    """How far predicted speeds lie off the clock's, in percent: a row per edition and sampler under
    its core, a lying dot per method; shaded is what lies within `NEAR_PERCENT` of the clock. The
    headline has the median of all, without their signs, and the largest.

    table    a row per dot: `core`, `place` (an edition and sampler), `method`, `series` ("plain
             decoding" or "methods that guess") and `error` (speed predicted ÷ clocked − 1)
    """
    check(table, "core place method", "series error")
    place, names = under_headings(table, "core", "place")
    table = table.assign(percent=100 * table["error"])
    rows = marks(table, "percent", place, series="series", note="{method}")
    x = f"speed predicted ÷ clocked − 1, in percent (shaded: within {NEAR_PERCENT})"
    chart = Chart(wide=760, high=60 + 26 * len(names), x=x)
    add_dots(chart, rows, GUESSING, lying=True, size=8)
    name_rows(chart, names)
    shade = {"fillcolor": INK, "opacity": 0.13, "line_width": 0, "layer": "below"}
    chart.figure.add_vrect(-NEAR_PERCENT, NEAR_PERCENT, **shade).add_vline(0, **PLAIN)
    furthest = 1.08 * rows["x"].abs().max()
    chart.axis("x", range=[-furthest, furthest])
    off = table["error"].abs()
    said = f"median error {off.median():.1%}, largest {off.max():.1%}"
    return chart.titled(f"{len(table)} speeds, predicted from passes: {said}")


def claim_maps(table: pd.DataFrame, points: pd.DataFrame, *, about: str) -> go.Figure:
    """Where a claim changes its sign: the gain of an idea over what a pass of 16 rows and a pass of
    the draft cost, as shades, with a line where it gains nothing; machines as marks.

    table     as `price_map.claim_gains` gives it: `claim`, `sixteen`, `draft` and `gain`
    points    machines: `claim`, `name`, `kind` (MEASURED or MODELLED), `sixteen`, `draft`, `gain`
    about     what the rounds were counted on, for the headline
    """
    check(table, "claim sixteen draft", "gain")
    check(points, "claim name", "kind sixteen draft gain")
    claims = names_of(table["claim"])
    x = "a pass over 16 rows ÷ over one"
    y = "draft's pass ÷ target's"
    chart = Chart(claims, wide=255, high=250, columns=min(4, len(claims)), x=x, y=y, gap=0.02)
    for number, claim in enumerate(claims):
        own = table[table["claim"] == claim]
        grid = own.pivot(index="draft", columns="sixteen", values="gain")
        _add_map(chart, claim, grid, scale=number == 0)
    spots = marks(points, "sixteen", "draft", series="kind", panel="claim")
    add_dots(chart, spots, MACHINES, size=12, lying=True)
    words = {"showarrow": False, "xanchor": "left", "xshift": 9, "borderpad": 1}
    words |= {"font": {"size": 11, "color": DARK}, "bgcolor": "rgba(255,255,255,0.7)"}
    for spot in named_rows(spots):
        said = f"{escape(spot.name)}: {spot.gain:.2f}"
        place = {"x": spot.sixteen, "y": math.log10(spot.draft)} | chart.panels[spot.claim]
        chart.figure.add_annotation(text=said, **place, **words)
    chart.axis("x", range=[table["sixteen"].min() - 0.05, table["sixteen"].max()])
    ends = (table["draft"].min(), table["draft"].max())
    chart.count_in_factors("y", HEIGHTS, ends)
    return chart.titled(f"Where each idea pays, predicted: {about}")


def _add_map(chart: Chart, claim: str, grid: pd.DataFrame, *, scale: bool) -> None:
    """Add the shades of one claim, and the line where its gain is 1."""
    place = {"x": list(grid.columns), "y": list(grid.index), "z": grid.to_numpy(dtype=float)}
    levels = {"start": 1 - FURTHEST, "end": 1 + FURTHEST, "size": 0.025}
    bar = {"title": {"text": "gain", "side": "top"}, "thickness": 14, "tickformat": ".2f"}
    look = {"zmin": 1 - FURTHEST, "zmax": 1 + FURTHEST, "colorscale": TWO_SIDED}
    look |= {"contours": levels, "line": {"width": 0}, "colorbar": bar, "showscale": scale}
    said = "16 rows %{x:.2f}, draft %{y:.3f}: %{z:.3f} times as fast<extra></extra>"
    chart.add(go.Contour(**place, **look, hovertemplate=said), claim)
    even = {"type": "constraint", "operation": "=", "value": 1.0, "showlabels": False}
    line = {"width": 2.5, "color": INK}
    quiet = {"showscale": False, "hoverinfo": "skip"}
    chart.add(go.Contour(**place, **quiet, contours=even, line=line, name="no gain"), claim)


def gains_by_method(gains: pd.Series, *, title: str) -> go.Figure:
    """The predicted speed of every method ÷ plain decoding's: a lying bar each.

    gains    by method
    """
    table = pd.DataFrame({"method": gains.index, "gain": gains.to_numpy()})
    table["look"] = ["faster" if gain >= 1 else "slower" for gain in table["gain"]]
    rows = marks(table, "gain", lanes(table, "method"), text="gain").assign(series="")
    rows["look"] = list(table["look"])
    chart = Chart(high=60 + 26 * len(table), x="predicted speed ÷ plain decoding's")
    looks = {"faster": Look(GAIN, full=True), "slower": Look(LOSS, full=True)}
    add_bars(chart, rows, looks, lying=True).name_places("y", rows["method"], longest=30)
    return chart.start_at_zero("x", 1.15).titled(title, plain="x")
