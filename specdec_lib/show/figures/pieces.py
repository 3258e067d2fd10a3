"""Charts of lying bars, some in pieces: yields, ablations, rivals, and the time of a round."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import PLAIN, Chart
from specdec_lib.show.figures.forms import MEASURED, add_bars, add_dots, words_beside
from specdec_lib.show.figures.marks import check, check_among, ends_of, lanes, marks, span_of
from specdec_lib.show.figures.theme import (
    HATCHES,
    INK,
    METHODS,
    PAPERS,
    SOURCES,
    Look,
    looks,
    short,
)

GUESSED, OWN = "accepted guesses", "the target's own token"
YIELDS = {GUESSED: Look(SOURCES["draft"]), OWN: Look(SOURCES["target"], hatch="/"), "": Look(INK)}
SWI, PRICE = "SWI, counted: yield ÷ price", "round, in target passes"
RATE = "acceptance rate"
PANELS = {"swi": SWI, "tokens_per_round": "tokens per round", "": PRICE, "acceptance_rate": RATE}
RIVALS = {"": Look(SOURCES["context"]), "this one": Look(METHODS["cascade"], full=True)}
PRICE_HATCHES = {"target": "", "middle": "/", "one-layer draft": "."}
PARTS = {
    "verify": SOURCES["target"],
    "draft passes": SOURCES["draft"],
    "choice and noise": SOURCES["bigram"],
    "KV moves": SOURCES["prompt"],
    "tree": SOURCES["n-gram"],
    "n-gram": SOURCES["generation"],
    "host": SOURCES["context"],
}
PART_LOOKS = {
    part: Look(colour, hatch=hatch)
    for (part, colour), hatch in zip(PARTS.items(), HATCHES, strict=True)
}
CHANGES = {
    "SWI, counted": Look(SOURCES["middle"]),
    "speed, measured": Look(SOURCES["draft"], full=True),
}
NOTE = "{draft}: {milliseconds:.3g} ms, {share:.1%}, {who}"
WRITTEN = 0.07  # of the longest bar: a shorter piece has no room for its number


def yields(table: pd.DataFrame, *, bonus: bool = True) -> go.Figure:
    """Tokens per round: a lying bar per series of the token that the target adds to every round,
    hatched, unless `bonus` is False, and behind it the accepted guesses.

    table    as of `acceptance.tokens`
    """
    both = ("tokens_per_round", "accepted_per_round")
    ends = [f"{name}_low {name} {name}_high" for name in both]
    check(table, "series", f"rounds {ends[0]} {ends[1]}")
    value, end = (both[0], ends[0]) if bonus else (both[1], ends[1])
    whole = marks(table, value, range(len(table)), ends=end, text=value)
    guessed = marks(table, both[1], range(len(table)), note="over {rounds:,} rounds")
    words = "tokens per round" if bonus else "accepted guesses per round"
    chart, never = Chart(high=84 + 34 * len(table), x=words), int(bonus)
    own = whole["x"] - guessed["x"]
    if bonus:
        add_bars(chart, guessed.assign(x=own, series=OWN), YIELDS, lying=True)
    add_bars(chart, guessed.assign(base=own, series=GUESSED), YIELDS, lying=True)
    add_dots(chart, whole.assign(series=""), YIELDS, lying=True, size=5)
    chart.figure.add_vline(x=never, **PLAIN)
    chart.start_at_zero("x", whole, 1.15, least=1.0)
    chart.name_places("y", table["series"])
    return chart.titled(f"{words.capitalize()}; a draft that is never right gives {never} (dotted)")


def cascade_ablation(table: pd.DataFrame) -> go.Figure:
    """What leaving each part out changes, by SWI beside by the clock: a panel per domain, a bar per
    part and way; the paper's hollow.

    table    `domain`, `variant`, `by` ("SWI, counted", "speed, measured"), `change_percent` of the
             full cascade, `low`, `high`, `paper` (percent, or NaN)
    """
    ends = "low change_percent high"
    check(table, "domain variant by", f"{ends} paper")
    check_among("a way to a change", table["by"], CHANGES)
    domains, count = table["domain"].map(str).unique(), table["variant"].nunique()
    place = lanes(table, "variant", "by", 0.62, list(CHANGES))
    x, y = "change against full, in %", "what is left out"
    chart = Chart(domains, wide=350, high=85 + 56 * count, x=x, y=y)
    words = table[["change_percent", "paper"]].map(short, signed=True)
    ours = marks(table, "change_percent", place, series="by", panel="domain", ends=ends)
    add_bars(chart, ours.assign(text=words["change_percent"]), CHANGES, lying=True, width=0.27)
    theirs = marks(table, "paper", lanes(table, "variant") + 0.42, panel="domain")
    theirs = theirs.assign(series="paper", text=words["paper"]).dropna(subset=["x"])
    if len(theirs):
        add_dots(chart, theirs, {"paper": PAPERS[0]}, lying=True, by=MEASURED)
    everything = table[["change_percent", "low", "high", "paper"]].assign(full=0.0)
    chart.figure.add_vline(x=0, line={"width": 1.5, "color": INK})
    chart.axis("x", range=span_of(everything, 0.24, 0.22), tick0=0, dtick=100)
    chart.name_places("y", table["variant"], longest=18)
    said = "What leaving a part out changes, by SWI and by the clock (left of 0: slower)"
    return chart.titled(said)


def rivals(table: pd.DataFrame, *, title: str) -> go.Figure:
    """A lying bar per setting, the first one's darker, in four panels: SWI with its interval,
    tokens and price per round, acceptance rate.

    table    as of `Replays.beside`
    """
    values = "swi low high tokens_per_round acceptance_rate target_passes target_price"
    check(table, "setting", values + " texts")
    table = table.rename(columns={"texts": "prompts"})
    chart = Chart(PANELS.values(), wide=195, high=66 + 44 * len(table), columns=4, gap=0.055)
    plain, prices = _rival_marks(table), _price_marks(table)
    add_bars(chart, plain, RIVALS, lying=True)
    styles = {
        model: Look(look.colour, hatch=PRICE_HATCHES.get(model, "x"))
        for model, look in looks(prices["series"]).items()
    }
    add_bars(chart, prices, styles, lying=True)
    sums = prices.groupby("y", sort=False)["x"].sum().reset_index()
    sums = sums.assign(text=sums["x"].map(short), panel=PRICE, series="")
    words_beside(chart, sums, lying=True)
    for panel, own in pd.concat([plain, sums]).groupby("panel", sort=False):
        most = 1.0 if panel == RATE else float(ends_of(own, "x").max())
        chart.axis("x", panel, range=[0, 1.32 * most], nticks=4)
    chart.name_places("y", table["setting"], longest=22)
    chart.figure.add_vline(x=1, **PLAIN, **chart.panels[SWI])
    return chart.titled(title)


def _rival_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A bar per setting and quantity; only SWI has an interval."""
    table = table.assign(look=["this one", *[""] * (len(table) - 1)])
    found = []
    for column in filter(None, PANELS):
        ends = "low swi high" if column == "swi" else ""
        rows = marks(table, column, range(len(table)), ends=ends, text=column)
        found.append(rows.assign(panel=PANELS[column]))
    return pd.concat(found, ignore_index=True)


def _price_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A piece per setting and model: what its passes of a round cost, one after the other."""
    found, base = [], 0.0
    for model in (name.removesuffix("_price") for name in table if name.endswith("_price")):
        note = f"{{{model}_passes:.2f}} passes per round"
        rows = marks(table, f"{model}_price", range(len(table)), note=note)
        called = theme.MODEL_NAMES.get(model, model)
        found.append(rows.assign(panel=PRICE, series=called, base=base))
        base = base + rows["x"]
    return pd.concat(found, ignore_index=True)


def round_ledger(table: pd.DataFrame) -> go.Figure:
    """Where the milliseconds of a round go: a lying bar per draft, a piece per part, a panel per
    sampling; the share of the longer pieces in them. Hovering tells the model of a piece.

    table    `draft`, `sampling`, `part`, `model` ("" where it is no model's), `round_seconds`,
             `share` of the wall time
    """
    keys, values = "draft sampling part model", "round_seconds share"
    check(table, "", f"{keys} {values}")
    table = table.fillna({"model": ""})
    check(table, keys, values)
    check_among("a part of a round", table["part"], PARTS)
    rows = _round_marks(table)
    panels = table["sampling"].map(str)  # in the table's order, which is not that of the parts
    high, x = 74 + 46 * table["draft"].nunique(), "milliseconds of a round"
    chart = Chart(panels, wide=400, high=high, x=x, gap=0.04)
    add_bars(chart, rows, PART_LOOKS, lying=True, width=0.7)
    chart.axis("x", range=[0, 1.03 * float((rows["base"] + rows["x"]).max())])
    chart.name_places("y", table["draft"], longest=26)
    return chart.titled("Where the measured time of a round goes")


def _round_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A mark per piece of a bar: where it starts, its length, and its share if that has room."""
    order = table["part"].map(list(PARTS).index)
    models = table["model"].replace("", "no model")
    table = table.assign(place=lanes(table, "draft"), milliseconds=1e3 * table["round_seconds"])
    table = table.assign(who=models).iloc[order.argsort(kind="stable")]
    sums = table.groupby(["draft", "sampling"], sort=False)["milliseconds"]
    base, longest = sums.cumsum() - table["milliseconds"], float(sums.sum().max())
    room = table["milliseconds"] > WRITTEN * longest
    table = table.assign(base=base, inside=table["share"].map("{:.0%}".format).where(room, ""))
    by = {"series": "part", "panel": "sampling", "note": NOTE}
    return marks(table, "milliseconds", "place", **by)
