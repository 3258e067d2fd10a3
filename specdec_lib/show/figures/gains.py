"""Figures of what a cascade gains, as bars: on the clock, by the parts left out, against rivals."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.bars import add_bars
from specdec_lib.show.figures.forms.chart import PLAIN, Chart, open_chart, words_beside
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.labels import short
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
from specdec_lib.show.figures.theme import INK, PAPERS, SOURCES, Look, escape, looks

PANELS = ("SWI: yield ÷ price", "tokens per round", "price of a round", "acceptance rate")
RIVALS = {"": Look(SOURCES["context"]), "this one": Look(SOURCES["draft"], full=True)}
HATCHES = {"target": "", "middle": "/", "draft": "."}


def walltime(table: pd.DataFrame) -> go.Figure:
    """Speed against autoregressive decoding: a bar per method and domain, tokens per second in it,
    the paper's ratios as hollow diamonds.

    table    a row per bar: `domain`, `method`, `ours`, `ours_low`, `ours_high`, `paper` (tokens per
             second), and `ratio`, `ratio_low`, `ratio_high`, `paper_ratio` (to autoregressive
             decoding on the same machine); NaN where there is none
    """
    columns = ("ours", "ours_low", "ours_high", "paper", "paper_ratio")
    check(table, ("domain", "method", *columns, "ratio"), once=("domain", "method"))
    ends = ("ratio_low", "ratio_high")
    domains, methods = names_of(table["domain"]), names_of(table["method"])
    place = pd.Series(lanes(table["method"], table["domain"], room=0.84), table.index)
    lane = 0.84 / len(domains)
    notes = [
        f"{row.ours:.4g} tokens per second ({row.ours_low:.4g} to {row.ours_high:.4g})"
        for row in table.itertuples()
    ]
    said = {"place": place - 0.1 * lane, "note": notes, "inside": shorts(table["ours"])}
    ours = table.assign(**said, text=shorts(table["ratio"]))
    ours = marks(ours, x="place", y="ratio", series="domain", ends=ends).dropna(subset=["ratio"])
    theirs = table.assign(place=place + 0.33 * lane, who="paper", text=shorts(table["paper_ratio"]))
    theirs = marks(theirs, x="place", y="paper_ratio", series="who").dropna(subset=["paper_ratio"])
    chart = open_chart(
        size=(900, 404),
        x="how it is decoded",
        y="speed ÷ autoregressive decoding's (in the bars: tokens per second)",
    )
    styles = {name: replace(look, hatch="") for name, look in looks(domains).items()}
    add_bars(chart, ours, styles, width=0.62 * lane)
    add_dots(chart, theirs, {"paper": PAPERS[0]}, size=10)
    chart.figure.update_traces(insidetextanchor="start", selector={"type": "bar"})
    chart.figure.add_hline(y=1, **PLAIN)
    chart.name_places("x", methods, longest=18)
    highest = max(float(ends_of(ours, "y").max()), float(theirs["y"].max() if len(theirs) else 0))
    chart.update_axes("y", {"range": [0, 1.12 * highest]})
    return chart.titled(
        "Speed on the clock as a ratio to autoregressive decoding on the same machine"
    )


def cascade_ablation(table: pd.DataFrame) -> go.Figure:
    """The change that each part left out makes, in percent of the full cascade: a panel per domain,
    a bar per part; the paper's hollow.

    table    a row per bar: `domain`, `variant`, `change_percent`, `low`, `high` (negative is
             slower), `paper` (percent, or NaN); the variant "full" is the line at 0
    """
    columns = ("domain", "variant", "change_percent", "low", "high", "paper")
    check(table, columns, once=("domain", "variant"))
    domains = names_of(table["domain"])
    table = table[table["variant"] != "full"]
    check(table, columns)
    variants = names_of(table["variant"])
    columns = 2 if len(domains) == 4 else min(3, len(domains))
    down = -(-len(domains) // columns)
    size = (min(900, 170 + 245 * columns), 30 + down * (70 + 46 * len(variants)))
    chart = open_chart(
        domains, size=size, x="change against full, in %", y="what is left out", columns=columns
    )
    place = pd.Series(lanes(table["variant"]), table.index)
    ours = marks(
        table.assign(place=place - 0.1),
        x="change_percent",
        y="place",
        series="domain",
        panel="domain",
        ends=("low", "high"),
        value="change_percent",
    )
    ours = ours.assign(series="ours", look=ours["series"]).dropna(subset=["x"])
    theirs = table.dropna(subset=["paper"]).assign(place=place + 0.3, who="paper")
    add_bars(chart, ours, looks([*domains, "ours"]), lying=True, width=0.46)
    chart.figure.update_traces(showlegend=False)
    if len(theirs):
        shown = marks(theirs, x="paper", y="place", series="who", panel="domain")
        add_dots(chart, shown, {"paper": PAPERS[0]}, lying=True)
        _write_changes(chart, shown, "\u2002")
    _write_changes(chart, ours, "")
    everything = table[["change_percent", "low", "high", "paper"]].astype(float)
    least, most = min(0.0, float(everything.min().min())), max(0.0, float(everything.max().max()))
    room = 0.34 * ((most - least) or 1.0)
    chart.figure.add_vline(x=0, line={"width": 1.5, "color": INK})
    chart.update_axes("x", {"range": [least - room, most + room]})
    chart.name_places("y", variants, longest=18)
    return chart.titled(
        "What leaving a part out changes, against the full cascade (left of 0: slower)"
    )


def _write_changes(chart: Chart, rows: pd.DataFrame, space: str) -> None:
    """Each change in words, at the end of its interval that is farther from 0."""
    for panel, own in groups(rows, "panel"):
        for left, some in own.groupby(own["x"] < 0):
            far = some.get("low" if left else "high", some["x"]).fillna(some["x"])
            words = [
                f"{space}\u2002{short(change, signed=True)}\u2002{space}" for change in some["x"]
            ]
            trace = go.Scatter(x=list(far), y=list(some["y"]), mode="text", text=words)
            trace.textposition = "middle left" if left else "middle right"
            trace.update(textfont={"size": 11}, showlegend=False, hoverinfo="skip")
            chart.add(trace, panel)


def rivals(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """A lying bar per setting, the first one's darker, in four panels: SWI with its interval,
    tokens and price per round, acceptance rate.

    table    a row per setting, as of `replay.Replays.beside`: `setting` (its name), `swi`, `low`,
             `high`, `tokens_per_round`, `acceptance_rate` (NaN where nothing was tried), and per
             model `<model>_passes` and `<model>_price` per round, a target pass's price being 1
    """
    columns = ("setting", "swi", "low", "high", "tokens_per_round", "acceptance_rate")
    check(table, (*columns, "target_passes", "target_price"), once=("setting",))
    check_interval(table, "swi", ("low", "high"))
    names = [str(name) for name in table["setting"]]
    chart = open_chart(PANELS, size=(900, 66 + 44 * len(names)), x="", y="", gap=0.055)
    plain = _rival_marks(table, ("swi", "tokens_per_round", "acceptance_rate"))
    add_bars(chart, plain, RIVALS, lying=True)
    prices = _price_marks(table)
    styles = {
        model: Look(look.colour, hatch=HATCHES.get(model, "x"))
        for model, look in looks(names_of(prices["series"])).items()
    }
    add_bars(chart, prices, styles, lying=True)
    sums = prices.groupby("y", sort=False)["x"].sum().reset_index()
    sums = sums.assign(text=shorts(sums["x"]))
    words_beside(chart, sums, lying=True, panel=PANELS[2], name="")
    most = dict.fromkeys(PANELS, 1.0) | {PANELS[2]: float(sums["x"].max())}
    for panel, own in groups(plain, "panel"):
        if panel != PANELS[3]:
            most[panel] = float(ends_of(own, "x").max())
    for panel, end in most.items():
        chart.figure.update_xaxes(range=[0, 1.32 * end], nticks=4, **chart.panels[panel])
    chart.name_places("y", names, longest=22)
    chart.figure.add_vline(x=1, **PLAIN, **chart.panels[PANELS[0]])
    return chart.titled(title or "A setting of the cascade beside its rivals")


def _rival_marks(table: pd.DataFrame, quantities: Sequence[str]) -> pd.DataFrame:
    """A bar per setting and quantity; only SWI has an interval."""
    panels = dict(zip(quantities, (PANELS[0], PANELS[1], PANELS[3]), strict=True))
    parts = [
        pd.DataFrame(
            {
                "panel": panel,
                "series": "",
                "x": table[name].astype(float),
                "y": range(len(table)),
                "low": table["low"] if name == "swi" else float("nan"),
                "high": table["high"] if name == "swi" else float("nan"),
                "text": shorts(table[name]),
                "look": ["this one", *[""] * (len(table) - 1)],
            }
        )
        for name, panel in panels.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _price_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A piece per setting and model: what its passes of a round cost, one after the other."""
    models = [name.removesuffix("_price") for name in table if name.endswith("_price")]
    parts, base = [], pd.Series(0.0, table.index)
    for model in models:
        price, count = table[f"{model}_price"].astype(float), table[f"{model}_passes"]
        notes = [f"{number:.2f} passes per round" for number in count]
        piece = {"panel": PANELS[2], "series": escape(model), "x": price, "base": base}
        parts.append(pd.DataFrame(piece | {"y": range(len(table)), "note": notes}))
        base = base + price
    return pd.concat(parts, ignore_index=True)
