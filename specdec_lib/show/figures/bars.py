"""Charts of bars that stand, side by side, and of bars that lie, some in pieces."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import PLAIN, Chart, check, groups_of, lanes, marks
from specdec_lib.show.figures.forms import add_bars, add_dots, words_beside
from specdec_lib.show.figures.theme import DARK, GAIN, INK, LOSS, SOURCES, Look, looks, short

PAYS = {"faster": Look(GAIN, hatch="/"), "slower": Look(LOSS, hatch="x")}
LENGTH_LOOKS = PAYS | {f"{name}, chosen": replace(one, full=True) for name, one in PAYS.items()}
GUESSED = "accepted guesses"
OWN = "the target's own token"
YIELDS = {GUESSED: Look(SOURCES["draft"]), OWN: Look(SOURCES["target"]), "": Look(INK)}
PANELS = {"swi": "SWI", "tokens_per_round": "tokens per round"}
PANELS |= {"price": "round, in target passes", "acceptance_rate": "accepted ÷ tried"}
RIVALS = {"": Look(SOURCES["context"]), "this one": Look(theme.METHODS["cascade"], full=True)}
RIVALS_ROOM = 78  # characters of a headline right of the longest name, in a wide font
COLOURS = {"verify": "target", "draft passes": "draft", "choice and noise": "bigram"}
COLOURS |= {"KV moves": "prompt", "tree": theme.STRANGERS[6], "n-gram": "n-gram", "host": "context"}
PARTS = {name: Look(SOURCES.get(one, one)) for name, one in COLOURS.items()}  # of a round
SHARE = "share of the counts, before the discount"
WRITTEN = 0.07  # of the longest bar: a shorter piece has no room for its number


def distributions(table: pd.DataFrame, *, x_title: str = "token") -> go.Figure:
    """Probabilities of the same outcomes under several distributions: a bar per outcome and
    distribution, side by side in the table's order, and the last distribution as dots on the bars
    of the first, where they stand if both are one.

    table      a row per outcome and distribution: `token` (the outcome's text, white space shown),
               `distribution` (its name) and `probability` (0 to 1, written at the mark)
    x_title    what an outcome is
    """
    check(table, "", "token distribution probability")
    *names, dotted = theme.names_of(table["distribution"])
    bars = table[table["distribution"] != dotted]
    rows = marks(
        bars, lanes(bars, "token", "distribution", 0.8), "probability", series="distribution"
    )
    numbers = [f"{value:.2f}".removeprefix("0") if value else "0" for value in rows["y"]]
    rows["text"] = np.where(rows["series"] == names[0], "", numbers)
    tokens = theme.names_of(table["token"])
    styles = looks(names)
    for number, (name, one) in enumerate(styles.items()):
        styles[name] = replace(one, hatch="", full=number % 2 == 0)
    chart = Chart(wide=34 * len(rows), high=320, x=x_title, y="probability")
    add_bars(chart, rows, styles, width=0.75 / len(styles))
    first = rows[rows["series"] == names[0]].set_index("token")["x"]
    own = table[table["distribution"] == dotted]
    dots = marks(own, own["token"].map(first), "probability", series="distribution")
    dots["text"] = dots["y"].map("{:.2f}".format).str.removeprefix("0")
    add_dots(chart, dots, {dotted: Look(DARK, symbol="diamond")}, size=9)
    chart.start_at_zero("y", 1.15, top=1.08)
    chart.name_places("x", [theme.visible(token, 12) for token in tokens])
    chart.axis("x", tickangle=0 if len(tokens) <= 10 else -40, showline=False)
    return chart.titled("Probability of each outcome under each distribution")


def history_bars(table: pd.DataFrame, *, after: str) -> go.Figure:
    """What a Katz table says follows one history: a bar per word, coloured by the history that
    its probability comes from, with a hollow diamond at its share of the counts.

    table    a row per word: `word`, `probability` (0 to 1), `history` (the words after which it was
             counted) and `share` (of what was counted after the whole history, before the discount;
             NaN: never seen there)
    after    the whole history, for the headline
    """
    check(table, "word", "probability history share")
    place = lanes(table, "word")
    named = table.assign(history="history: " + table["history"])
    rows = marks(named, place, "probability", series="history", text="probability")
    chart = Chart(wide=max(460, 68 * len(rows)), high=320, x="next word", y="probability")
    add_bars(chart, rows, width=0.6)
    shares = marks(table, place, "share").assign(series=SHARE).dropna(subset=["share"])
    add_dots(chart, shares, {SHARE: Look(DARK, symbol="diamond-open")}, size=9)
    chart.name_places("x", table["word"]).start_at_zero("y", 1.12)
    return chart.titled(f"What follows “{after}”, and which history says so")


def film_strip(table: pd.DataFrame) -> go.Figure:
    """A few rounds of several methods on one time axis: a row per method, a bar per pass of a
    model, as long as the pass takes, with the tokens that a pass of the target gave in it.

    table    a row per pass, in order: `method`, `model`, `start` and `milliseconds`, `inside` (what
             stands in its bar), and `said` (behind a method's last bar; else "")
    """
    check(table, "method start", "model milliseconds inside said")
    rows = marks(table, "milliseconds", lanes(table, "method"), series="model")
    rows = rows.assign(base=rows["start"], text=rows["said"])
    high = 56 + 46 * rows["method"].nunique()
    chart = Chart(wide=860, high=high, x="milliseconds")
    styles = {name: replace(look, hatch="") for name, look in looks(rows["series"]).items()}
    add_bars(chart, rows, styles, lying=True, width=0.56)
    chart.name_places("y", rows["method"]).start_at_zero("x", 1.25).axis("x", showgrid=False)
    return chart.titled(
        "Three rounds of one answer, pass by pass (too few to rank methods); +n: tokens of a round"
    )


def chain_lengths(table: pd.DataFrame, *, length: int, title: str) -> go.Figure:
    """Predicted speed-up of a chain by its length: a bar per length, cross-hatched where it is
    slower than plain decoding (dotted), with its tokens per round when hovered over.

    table     a row per chain: `length` (guesses per round, from 1), `speed_up` (× plain decoding's
              speed) and `tokens_per_round`
    length    the chosen one, in its full colour

    Raises ValueError if the table lacks the chosen length.
    """
    check(table, "length", "speed_up tokens_per_round")
    if length not in set(table["length"]):
        raise ValueError(f"the chosen length is one of {sorted(table['length'])}, got {length}")
    note = "{tokens_per_round:.2f} tokens per round"
    rows = marks(table, "length", "speed_up", text="speed_up", note=note)
    rows["look"] = np.where(rows["y"] > 1, "faster", "slower")
    rows["look"] += np.where(rows["x"] == length, ", chosen", "")
    chart = Chart(high=226, x="guesses per round", y="predicted ÷ plain decoding's speed (dotted)")
    add_bars(chart, rows, LENGTH_LOOKS, width=0.7).start_at_zero("y", 1.2, least=1.0)
    return chart.axis("x", tickvals=list(rows["x"]), showgrid=False).titled(title, plain="y")


def paper_and_ours(
    table: pd.DataFrame,
    *,
    title: str,
    y_title: str,
    by: str,
    paper_by: str = "",
    lower_is_better: bool = False,
) -> go.Figure:
    """The paper's number beside ours: two bars per method, with their values on them, a panel per
    sampler.

    table              a row per sampler and method: `sampling`, `method`, `paper` and `ours` in the
                       unit of `y_title`; NaN leaves a bar out. Ours has an interval where there are
                       columns `ours_low` and `ours_high`
    by, paper_by       how ours and the paper's were found, for the legend: "measured", "counted",
                       "predicted" or ""
    lower_is_better    which way is better, for the axis
    """
    check(table, "sampling method", "paper ours")
    place = lanes(table, "method")
    methods = theme.names_of(table["method"])
    interval = "ours_low ours ours_high" if {"ours_low", "ours_high"} <= set(table) else ""
    y = f"{y_title} ({'lower' if lower_is_better else 'higher'} is better)"
    chart = Chart(table["sampling"].map(str), wide=92 * len(methods), y=y)
    for name, aside, ends, way in ("paper", -0.2, "", paper_by), ("ours", 0.2, interval, by):
        rows = marks(table, place + aside, name, text=name, ends=ends, panel="sampling")
        look = looks([name])[name]
        add_bars(chart, rows.assign(series=name), {name: look}, width=0.36, by=way)
    return chart.name_places("x", methods, longest=12).start_at_zero("y", 1.1).titled(title)


def yields(table: pd.DataFrame, *, bonus: bool = True) -> go.Figure:
    """Tokens per round in two pieces, from the left: the target's own token, which a draft that is
    never right has too (dotted), and the accepted guesses; a dot with an interval at the sum.

    table    a row per bar, from the top: `series` (its name), `rounds` (so many were counted),
             `accepted_per_round`, and `tokens_per_round` with its 95 % interval
             `tokens_per_round_low` to `tokens_per_round_high`
    bonus    whether the target's own token counts; without it bars begin at the accepted guesses,
             and the interval is `accepted_per_round_low` to `accepted_per_round_high`
    """
    value = "tokens_per_round" if bonus else "accepted_per_round"
    guesses = "accepted_per_round"
    ends = f"{value}_low {value} {value}_high"
    check(table, "series", f"rounds {guesses} {ends}")
    whole = marks(table, value, range(len(table)), ends=ends, text=value)
    guessed = marks(table, guesses, range(len(table)), note="over {rounds:,} rounds")
    words = "tokens per round" if bonus else "accepted guesses per round"
    chart = Chart(high=84 + 34 * len(table), x=words)
    own = whole["x"] - guessed["x"]
    if bonus:
        add_bars(chart, guessed.assign(x=own, series=OWN), YIELDS, lying=True)
    add_bars(chart, guessed.assign(base=own, series=GUESSED), YIELDS, lying=True)
    add_dots(chart, whole.assign(series=""), YIELDS, lying=True, size=5)
    chart.figure.add_vline(x=int(bonus), **PLAIN)
    chart.start_at_zero("x", 1.15, least=1.0).name_places("y", table["series"])
    never = f"a draft that is never right gives {int(bonus)} (dotted)"
    return chart.titled(f"{words.capitalize()}; {never}")


def rivals(table: pd.DataFrame, *, title: str) -> go.Figure:
    """A setting beside those it must beat, in four panels: SWI, tokens per round, the price of a
    round in pieces per model, and the acceptance rate; the first row in its full colour.

    table    a row per setting, as `Replays.beside` gives it: `setting` (its name), `swi` (× plain
             decoding; dotted at 1) with its 95 % interval `low` to `high`, `tokens_per_round`,
             `acceptance_rate` (0 to 1), `texts` (that were counted), and per model columns
             such as `target_passes` (per round) and `target_price` (of these, in target passes)
    """
    values = "swi low high tokens_per_round acceptance_rate target_passes target_price texts"
    check(table, "setting", values)
    table, rows = table.rename(columns={"texts": "prompts"}), range(len(table))
    chart = Chart(PANELS.values(), wide=195, high=66 + 44 * len(table), columns=4, gap=0.055)
    for column in ("swi", "tokens_per_round", "acceptance_rate"):
        ends = "low swi high" if column == "swi" else ""
        found = marks(table, column, rows, ends=ends, text=column).assign(panel=PANELS[column])
        found["look"] = ["this one", *[""] * (len(table) - 1)]
        add_bars(chart, found, RIVALS, lying=True)
    prices = table.filter(regex="_price$").rename(columns=lambda name: name.removesuffix("_price"))
    styles = looks(prices.rename(columns=theme.MODEL_NAMES))
    base = 0.0
    for model, called in zip(prices, styles, strict=True):
        note = f"{{{model}_passes:.2f}} passes per round"
        found = marks(table, prices[model], rows, note=note)
        found = found.assign(panel=PANELS["price"], series=called, base=base)
        look = Look(styles[called].colour, full=model == "draft")
        add_bars(chart, found[found["x"] > 0], {called: look}, lying=True)
        base = base + found["x"]
    sums = marks(table.assign(sum=base), "sum", rows, text="sum").assign(panel=PANELS["price"])
    words_beside(chart, sums, lying=True)
    for panel in PANELS.values():
        least = float(panel == PANELS["acceptance_rate"])
        chart.start_at_zero("x", 1.32, least=least, panel=panel).axis("x", panel, nticks=4)
    place: Any = chart.panels[PANELS["swi"]]
    chart.figure.add_vline(x=1, **PLAIN, **place)
    chart.name_places("y", table["setting"], longest=22)
    return chart.titled(title, room=RIVALS_ROOM)


def round_ledger(table: pd.DataFrame, *, noise: float) -> go.Figure:
    """Where the time of a token goes: a lying bar per draft, a piece per part of a round, in it its
    share where there is room; a panel per sampler.

    table    a row per draft, sampler, part and model: `draft`, `sampling`, `part` (one of PARTS),
             `model` ("" where no model works), `token_seconds` (mean seconds of a token that go to
             it; drawn as milliseconds) and `share` (of the round, 0 to 1)
    noise    the share by which passes differ that should not, for the headline
    """
    check(table, "draft sampling part model", "token_seconds share")
    panels = table["sampling"]
    drafts = table["draft"]
    table = table.assign(
        place=lanes(table, "draft"),
        milliseconds=1e3 * table["token_seconds"],
        who=table["model"].replace("", None).fillna("no model"),
    ).sort_values("part", key=lambda part: part.map(list(PARTS).index), kind="stable")
    sums = table.groupby(["draft", "sampling"], sort=False)["milliseconds"]
    longest = float(sums.sum().max())
    room = table["milliseconds"] > WRITTEN * longest
    table["inside"] = table["share"].map("{:.0%}".format).where(room, "")
    table["base"] = sums.cumsum() - table["milliseconds"]
    note = "{draft}: {milliseconds:.3g} ms, {share:.1%}, {who}"
    rows = marks(table, "milliseconds", "place", series="part", panel="sampling", note=note)
    high = 74 + 46 * drafts.nunique()
    x = "mean milliseconds per token"
    chart = Chart(panels, wide=400, high=high, x=x, gap=0.04)
    add_bars(chart, rows, PARTS, lying=True, width=0.7).name_places("y", drafts, longest=26)
    whole = rows.groupby(["panel", "y"], sort=False).agg(x=("milliseconds", "sum")).reset_index()
    for _, own in groups_of(whole.assign(series="", text=whole["x"].map(short)), "panel"):
        words_beside(chart, own, lying=True)
    chart.axis("x", range=[0, 1.12 * longest])
    said = f"passes over the same tree vary by up to {noise:.0%}"
    return chart.titled(f"Where the measured time of a token goes; {said}")
