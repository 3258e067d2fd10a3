"""Figures of what a cascade gains, as bars: on the clock, by the parts left out, against rivals."""

from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, Chart, fold, open_chart
from specdec_lib.show.figures.forms import add_bars, add_dots, words_beside
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

SWI, PRICE = "SWI: yield ÷ price", "price of a round"
RATE = "acceptance rate"
PANELS = {"swi": SWI, "tokens_per_round": "tokens per round", "": PRICE, "acceptance_rate": RATE}
RIVALS = {"": Look(SOURCES["context"]), "this one": Look(SOURCES["draft"], full=True)}
HATCHES = {"target": "", "middle": "/", "draft": "."}
PAPER = {"paper": PAPERS[0]}


def walltime(table: pd.DataFrame) -> go.Figure:
    """Speed against autoregressive decoding: a bar per method and domain, tokens per second in it,
    the paper's ratios as hollow diamonds.

    table    `domain`, `method`, `ours`, `ours_low`, `ours_high`, `paper` (tokens per second), and
             `ratio`, `ratio_low`, `ratio_high`, `paper_ratio` (to autoregressive decoding on the
             same machine); NaN where there is none
    """
    ends = "ratio_low ratio ratio_high"
    check(table, "domain method", f"ours ours_low ours_high paper paper_ratio {ends}")
    domains = names_of(table["domain"])
    place, lane = lanes(table["method"], table["domain"], room=0.84), 0.84 / len(domains)
    notes = [
        f"{row.ours:.4g} tokens per second ({row.ours_low:.4g} to {row.ours_high:.4g})"
        for row in table.itertuples()
    ]
    said = table.assign(note=notes, inside=shorts(table["ours"]))
    ours = marks(said, place - 0.1 * lane, "ratio", series="domain", ends=ends, text="ratio")
    ours = ours.dropna(subset=["ratio"])
    theirs = marks(table, place + 0.33 * lane, "paper_ratio", text="paper_ratio")
    theirs = theirs.assign(series="paper").dropna(subset=["paper_ratio"])
    y = "speed ÷ autoregressive decoding's (in the bars: tokens per second)"
    chart = open_chart(size=(900, 404), x="how it is decoded", y=y)
    styles = {name: replace(look, hatch="") for name, look in looks(domains).items()}
    add_bars(chart, ours, styles, width=0.62 * lane)
    add_dots(chart, theirs, PAPER, size=10)
    chart.figure.update_traces(insidetextanchor="start", selector={"type": "bar"})
    chart.figure.add_hline(y=1, **PLAIN)
    chart.name_places("x", names_of(table["method"]), longest=18)
    chart.start_at_zero("y", ours, 1.12, least=float(theirs["y"].max() if len(theirs) else 0))
    return chart.titled(
        "Speed on the clock as a ratio to autoregressive decoding on the same machine"
    )


def cascade_ablation(table: pd.DataFrame) -> go.Figure:
    """The change that each part left out makes, in percent of the full cascade: a panel per domain,
    a bar per part; the paper's hollow.

    table    `domain`, `variant`, `change_percent`, `low`, `high` (negative is slower), `paper`
             (percent, or NaN); the variant "full" is the line at 0
    """
    ends = "low change_percent high"
    check(table, "domain variant", f"{ends} paper")
    domains = names_of(table["domain"])
    table = table[table["variant"] != "full"]
    check(table, "", "variant")
    variants, place = names_of(table["variant"]), lanes(table["variant"])
    across, down = fold(len(domains))
    size = (min(900, 170 + 245 * across), 30 + down * (70 + 46 * len(variants)))
    x, y = "change against full, in %", "what is left out"
    chart = open_chart(domains, size=size, x=x, y=y, columns=across)
    ours = marks(table, "change_percent", place - 0.1, panel="domain", ends=ends)
    ours = ours.assign(series="ours", look=ours["panel"]).dropna(subset=["x"])
    add_bars(chart, ours, looks([*domains, "ours"]), lying=True, width=0.46)
    chart.figure.update_traces(showlegend=False)
    theirs = marks(table, "paper", place + 0.3, panel="domain").dropna(subset=["paper"])
    add_dots(chart, theirs.assign(series="paper"), PAPER, lying=True)
    _write_changes(chart, theirs, "\u2002")
    _write_changes(chart, ours, "")
    everything = table[["change_percent", "low", "high", "paper"]].astype(float)
    least, most = min(0.0, float(everything.min().min())), max(0.0, float(everything.max().max()))
    room = 0.34 * ((most - least) or 1.0)
    chart.figure.add_vline(x=0, line={"width": 1.5, "color": INK})
    chart.figure.update_xaxes(range=[least - room, most + room])
    chart.name_places("y", variants, longest=18)
    return chart.titled("What leaving a part out changes (left of 0: slower)")


def _write_changes(chart: Chart, rows: pd.DataFrame, space: str) -> None:
    """Each change in words, at the end of its interval that is farther from 0."""
    for panel, own in groups(rows, "panel"):
        for left, some in own.groupby(own["x"] < 0):
            far = some.get("low" if left else "high", some["x"]).fillna(some["x"])
            changes = [short(change, signed=True) for change in some["x"]]
            words = [f"{space}\u2002{change}\u2002{space}" for change in changes]
            trace = go.Scatter(x=list(far), y=list(some["y"]), mode="text", text=words)
            trace.textposition = "middle left" if left else "middle right"
            trace.update(textfont={"size": 11}, showlegend=False, hoverinfo="skip")
            chart.add(trace, panel)


def rivals(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """A lying bar per setting, the first one's darker, in four panels: SWI with its interval,
    tokens and price per round, acceptance rate.

    table    as of `Replays.beside`: `setting` (its name), `swi`, `low`, `high`,
             `tokens_per_round`, `acceptance_rate` (NaN where nothing was tried), and per model
             `<model>_passes` and `<model>_price` per round, a target pass's price being 1
    """
    values = "swi low high tokens_per_round acceptance_rate target_passes target_price"
    check(table, "setting", values)
    check_interval(table, "low swi high")
    names, panels = [str(name) for name in table["setting"]], list(PANELS.values())
    chart = open_chart(panels, size=(900, 66 + 44 * len(names)), gap=0.055)
    plain, prices = _rival_marks(table), _price_marks(table)
    add_bars(chart, plain, RIVALS, lying=True)
    styles = {
        model: Look(look.colour, hatch=HATCHES.get(model, "x"))
        for model, look in looks(prices["series"]).items()
    }
    add_bars(chart, prices, styles, lying=True)
    sums = prices.groupby("y", sort=False)["x"].sum().reset_index()
    sums = sums.assign(text=shorts(sums["x"]), panel=PRICE)
    words_beside(chart, sums, lying=True, panel=PRICE, name="")
    for panel, own in groups(pd.concat([plain, sums]), "panel"):
        most = 1.0 if panel == RATE else float(ends_of(own, "x").max())
        chart.figure.update_xaxes(range=[0, 1.32 * most], nticks=4, **chart.panels[panel])
    chart.name_places("y", names, longest=22)
    chart.figure.add_vline(x=1, **PLAIN, **chart.panels[SWI])
    return chart.titled(title or "A setting of the cascade beside its rivals")


def _rival_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A bar per setting and quantity; only SWI has an interval."""
    table, places = table.assign(look=["this one", *[""] * (len(table) - 1)]), range(len(table))
    return pd.concat(
        [
            marks(
                table, column, places, ends="low swi high" if panel == SWI else "", text=column
            ).assign(panel=panel)
            for column, panel in PANELS.items()
            if column
        ],
        ignore_index=True,
    )


def _price_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A piece per setting and model: what its passes of a round cost, one after the other."""
    models = [name.removesuffix("_price") for name in table if name.endswith("_price")]
    parts, base = [], pd.Series(0.0, table.index)
    for model in models:
        price, count = table[f"{model}_price"].astype(float), table[f"{model}_passes"]
        piece = {"panel": PRICE, "series": escape(model), "x": price, "base": base}
        piece |= {"y": range(len(table)), "note": count.map("{:.2f} passes per round".format)}
        parts.append(pd.DataFrame(piece))
        base = base + price
    return pd.concat(parts, ignore_index=True)
