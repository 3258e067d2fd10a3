"""Charts of lying bars, some in pieces: yields, ablations, rivals, and the time of a round."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import PLAIN, Chart
from specdec_lib.show.figures.forms import add_bars, add_dots, words_beside
from specdec_lib.show.figures.marks import check, ends_of, lanes, marks, span_of
from specdec_lib.show.figures.theme import INK, PAPERS, SOURCES, Look, looks, short

GUESSED, OWN = "accepted guesses", "the target's own token"
YIELDS = {GUESSED: Look(SOURCES["draft"]), OWN: Look(SOURCES["target"]), "": Look(INK)}
SWI, PRICE = "SWI, counted: yield ÷ price", "round, in target passes"
RATE = "acceptance rate"
PANELS = {"swi": SWI, "tokens_per_round": "tokens per round", "": PRICE, "acceptance_rate": RATE}
RIVALS = {"": Look(SOURCES["context"]), "this one": Look(theme.METHODS["cascade"], full=True)}
PARTS = {
    "verify": SOURCES["target"],
    "draft passes": SOURCES["draft"],
    "choice and noise": SOURCES["bigram"],
    "KV moves": SOURCES["prompt"],
    "tree": theme.STRANGERS[6],
    "n-gram": SOURCES["n-gram"],
    "host": SOURCES["context"],
}  # of a round, and their colours
CHANGES = {
    "SWI, counted": Look(SOURCES["middle"]),
    "speed, measured": Look(SOURCES["draft"], full=True),
}
WRITTEN = 0.07  # of the longest bar: a shorter piece has no room for its number


def yields(table: pd.DataFrame, *, bonus: bool = True) -> go.Figure:
    """Tokens per round: a lying bar per `series` of the token that the target adds to every round,
    unless `bonus` is False, and behind it the accepted guesses; as of `acceptance.tokens`.
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
    """What leaving each part out, `variant`, changes, `change_percent` of the full cascade, by SWI
    beside by the clock, `by`: a panel per `domain`, a bar per part and way; the `paper`'s hollow.
    """
    ends = "low change_percent high"
    check(table, "domain variant by", f"{ends} paper")
    place, count = lanes(table, "variant", "by", 0.62, list(CHANGES)), table["variant"].nunique()
    x, y = "change against full, in %", "what is left out"
    chart = Chart(table["domain"], wide=350, high=85 + 56 * count, x=x, y=y)
    words = table[["change_percent", "paper"]].map(short, signed=True)
    ours = marks(table, "change_percent", place, series="by", panel="domain", ends=ends)
    add_bars(chart, ours.assign(text=words["change_percent"]), CHANGES, lying=True, width=0.27)
    theirs = marks(table, "paper", lanes(table, "variant") + 0.42, panel="domain")
    theirs = theirs.assign(series="paper", text=words["paper"])
    add_dots(chart, theirs, {"paper": PAPERS[0]}, lying=True, by="measured")
    everything = table[["change_percent", "low", "high", "paper"]].assign(full=0.0)
    chart.figure.add_vline(x=0, line={"width": 1.5, "color": INK})
    chart.axis("x", range=span_of(everything, 0.24, 0.22), tick0=0, dtick=100)
    chart.name_places("y", table["variant"], longest=18)
    said = "A cascade tuned on SWI: what leaving a part out changes (left of 0: worse)"
    return chart.titled(said)


def rivals(table: pd.DataFrame, *, title: str) -> go.Figure:
    """A lying bar per `setting`, the first one's darker, in four panels: SWI with its interval,
    tokens and price per round, acceptance rate; as of `Replays.beside`.
    """
    values = "swi low high tokens_per_round acceptance_rate target_passes target_price texts"
    check(table, "setting", values)
    table, rows = table.rename(columns={"texts": "prompts"}), range(len(table))
    table = table.assign(look=["this one", *[""] * (len(table) - 1)])
    chart = Chart(PANELS.values(), wide=195, high=66 + 44 * len(table), columns=4, gap=0.055)
    plain, base = [], 0.0
    for column in filter(None, PANELS):
        ends = "low swi high" if column == "swi" else ""
        found = marks(table, column, rows, ends=ends, text=column).assign(panel=PANELS[column])
        plain.append(found)
        add_bars(chart, found, RIVALS, lying=True)
    models = [name.removesuffix("_price") for name in table if name.endswith("_price")]
    hues = looks(theme.MODEL_NAMES.get(model, model) for model in models)
    for model in models:
        called, note = (
            theme.MODEL_NAMES.get(model, model),
            f"{{{model}_passes:.2f}} passes per round",
        )
        found = marks(table.drop(columns="look"), f"{model}_price", rows, note=note)
        found = found.assign(panel=PRICE, series=called, base=base)
        look = Look(hues[called].colour, full=model == "draft")
        add_bars(chart, found, {called: look}, lying=True)
        base = base + found["x"]
    sums = marks(table.assign(sum=base), "sum", rows, text="sum").assign(panel=PRICE)
    words_beside(chart, sums, lying=True)
    for panel, own in pd.concat([*plain, sums]).groupby("panel", sort=False):
        most = 1.0 if panel == RATE else float(ends_of(own, "x").max())
        chart.axis("x", panel, range=[0, 1.32 * most], nticks=4)
    chart.name_places("y", table["setting"], longest=22)
    chart.figure.add_vline(x=1, **PLAIN, **chart.panels[SWI])
    return chart.titled(title)


def round_ledger(table: pd.DataFrame, *, noise: float = 0.0) -> go.Figure:
    """Where the `round_seconds` of a round go: a lying bar per `draft`, a piece per `part`, in the
    longer ones its `share` of the wall time, a panel per `sampling`; hovering tells the `model`, if
    it is one's.

    noise    the share by which bars differ where they should not, for the headline
    """
    check(table, "draft sampling part model", "round_seconds share")
    table = table.assign(
        place=lanes(table, "draft"),
        milliseconds=1e3 * table["round_seconds"],
        who=table["model"].replace("", None).fillna("no model"),
        order=table["part"].map(list(PARTS).index),
    ).sort_values("order", kind="stable")
    sums = table.groupby(["draft", "sampling"], sort=False)["milliseconds"]
    longest = float(sums.sum().max())
    room = table["milliseconds"] > WRITTEN * longest
    table["inside"] = table["share"].map("{:.0%}".format).where(room, "")
    table["base"] = sums.cumsum() - table["milliseconds"]
    by = {"series": "part", "panel": "sampling"}
    note = "{draft}: {milliseconds:.3g} ms, {share:.1%}, {who}"
    rows = marks(table, "milliseconds", "place", **by, note=note)
    panels = table.sort_index()["sampling"]
    high, x = 74 + 46 * table["draft"].nunique(), "mean milliseconds of a round"
    chart = Chart(panels, wide=400, high=high, x=x, gap=0.04)
    add_bars(chart, rows, {part: Look(PARTS[part]) for part in PARTS}, lying=True, width=0.7)
    chart.axis("x", range=[0, 1.03 * longest])
    chart.name_places("y", table.sort_index()["draft"], longest=26)
    said = f"; verifying the same tree varies by up to {noise:.0%}" if noise else ""
    return chart.titled(f"Where the measured time of a round goes{said}")
