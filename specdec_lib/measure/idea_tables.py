"""What the race of ideas says: paired ratios, as tables, as figures take them, and as pages
show them.
"""

from typing import cast

import pandas as pd

from specdec_lib.measure.ideas import WHERE, ideas_file
from specdec_lib.measure.price_map import CLAIMS, TARGET, Priced, place_of, raced_work
from specdec_lib.measure.race_table import MEASURED, RACED
from specdec_lib.measure.ratios import ALL, interval, named_interval, sampling_of, with_interval
from specdec_lib.measure.settings.ideas import (
    AUTOREGRESSIVE,
    BOTH,
    CHAIN,
    COMB,
    COPIED,
    HORIZONTAL,
    METHODS,
    SCOUT,
    SPECULATIVE,
    TREE,
    VERTICAL,
)

BANDS = {"below .1": (0.0, 0.1), ".1 to .3": (0.1, 0.3), "above .3": (0.3, 1.1)}  # repetition
EMBEDDED, PUBLISHED = FAMILIES = ("embedded prompts", "published prompts")
EXACT = {"exact": "float32"}
STEPS = {  # from plain decoding to all ideas together
    AUTOREGRESSIVE: "plain decoding",
    SPECULATIVE: "speculative decoding",
    TREE: "tree",
    TREE + SCOUT: "tree + scout",
    TREE + SCOUT + COPIED: "tree + scout + copies",
}
TOGETHER = "all together"
PAIRS = {  # a heading, and the pairs of methods below it
    "tree": [
        (TREE, CHAIN),
        (TREE, SPECULATIVE),
        (TREE + SCOUT, CHAIN + SCOUT),
        (TREE + COPIED, CHAIN + COPIED),
    ],
    "second stage": [
        (shape + SCOUT + copied, shape + copied)
        for shape in (CHAIN, TREE)
        for copied in ("", COPIED)
    ],
    "copies": [
        (shape + scout + COPIED, shape + scout) for shape in (CHAIN, TREE) for scout in ("", SCOUT)
    ],
    "cascade": [(one, SPECULATIVE) for one in (VERTICAL, HORIZONTAL, BOTH, COMB)],
    "cascade beside copies": [(VERTICAL, CHAIN + COPIED), (VERTICAL, TREE + COPIED)],
    "setting": [(CHAIN, SPECULATIVE)],  # two of one method, each tuned: no idea between them
    TOGETHER: [(one, AUTOREGRESSIVE) for one in METHODS[1:]],
}


WORTH = {  # what README says of both papers' ideas
    "staged: a tree of guesses, not a chain": (TREE, SPECULATIVE),
    "staged: an n-gram scout below a chain": (CHAIN + SCOUT, CHAIN),
    "staged: an n-gram scout below a tree": (TREE + SCOUT, TREE),
    "cascade: vertical, a draft reviews Max-Gram": (VERTICAL, SPECULATIVE),
    "cascade: horizontal, Max-Gram guesses last": (HORIZONTAL, SPECULATIVE),
    "the vertical cascade, beside copies before a chain": (VERTICAL, CHAIN + COPIED),
    "beyond both: a tree behind copies, not a tree alone": (TREE + COPIED, TREE),
}


def compare_ideas(table: pd.DataFrame) -> pd.DataFrame:
    """Speed of a method ÷ another's that lacks one idea, on the same prompts, with 95 % intervals:
    per edition and sampler, over all prompts, by domain and by how much of a text repeats itself.
    """
    rows = []
    for where, group in table.groupby(WHERE, sort=False):
        both = group.pivot(index="prompt", columns="method", values=["tokens", "seconds"])
        about = group[group.method == AUTOREGRESSIVE].set_index("prompt")
        parts = {ALL: about.index} | {
            domain: its.index for domain, its in about.groupby("domain", sort=False)
        }
        for band, (low, high) in BANDS.items():
            parts[f"repetition {band}"] = about.index[about.repetition.between(low, high, "left")]
        for part, names in parts.items():
            some = both.loc[names]
            for idea, pairs in PAIRS.items():
                for method, base in pairs:
                    own = (some["tokens", method], some["seconds", method])
                    ratio = interval(*own, some["tokens", base], some["seconds", base])
                    head = dict(zip(WHERE, where, strict=True))
                    head |= {"part": part, "prompts": len(some), "idea": idea}
                    rows.append(
                        {**head, "method": method, "base": base, **named_interval("ratio", ratio)}
                    )
    return pd.DataFrame(rows)


def claims_beside_clock(rows: pd.DataFrame, passes: pd.DataFrame) -> pd.DataFrame:
    """Per claim of `CLAIMS`: `ratio`, `ratio_low` and `ratio_high` by the clock, on all prompts,
    and `predicted`, the gain of the counted rounds at the machine's own prices.

    rows      of a race, of one edition and sampler
    passes    of the same machine, by `specdec measure passes`
    """
    [edition] = rows.edition.unique()
    [model] = rows.model.unique()
    [temperature] = rows.temperature.unique()
    priced = Priced.of(rows, passes)
    place = place_of(passes, edition, model, temperature)
    whole = compare_ideas(rows).query("part == @ALL").set_index(["method", "base"])
    clocked = whole[["ratio", "ratio_low", "ratio_high"]].loc[list(CLAIMS.values())]
    claims = pd.Index(CLAIMS, name="claim")
    predicted = [priced.gain(method, base, place) for method, base in CLAIMS.values()]
    return clocked.set_axis(claims).assign(predicted=predicted)


def raced_machines() -> list[str]:
    """The machines with a stored race of ideas, that of README first."""
    stem = ideas_file("*").stem
    others = {place.stem.removeprefix(stem[:-1]) for place in MEASURED.glob(f"{stem}-threads.csv")}
    others = {one for one in others if not one.startswith("published_")}
    return [RACED, *sorted(others - {RACED})]


def stored_ideas(machine: str = "") -> pd.DataFrame:
    """The stored race of a machine ("" for the README's, "here" for this one), with a column
    `family`: embedded or published prompts. Raises ValueError if there is none.
    """
    machine = machine or RACED
    places = {name: ideas_file(machine, published=name == PUBLISHED) for name in FAMILIES}
    found = {name: place for name, place in places.items() if place.is_file()}
    if not found:
        raise ValueError(
            f"no race of ideas on {machine} is stored in {MEASURED}; `specdec measure ideas` runs"
            " one"
        )
    return pd.concat([pd.read_csv(place).assign(family=name) for name, place in found.items()])


def idea_table(stored: pd.DataFrame) -> pd.DataFrame:
    """`compare_ideas` of each family of prompts, as `figures.idea_ratios` takes it: with `family`,
    `sampling`, `panel` and `pair` in words.
    """
    groups = stored.groupby("family", sort=False)
    tables = [compare_ideas(own).assign(family=family) for family, own in groups]
    found = _in_words(pd.concat(tables, ignore_index=True))
    pair = found.method + " ÷ " + found.base
    return found.assign(pair=pair, panel=found.edition + ", " + found.sampling)


def steps_table(stored: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds per token on the way from plain decoding to all ideas together, with 95 %
    intervals over prompts, and the speed ÷ that of plain decoding in float32 on the same prompts,
    as `figures.waterfall` takes it.
    """
    keys = ["temperature", "top_k", "family", "edition", "method"]
    rows = []
    for key, own in stored[stored.method.isin(STEPS)].groupby(keys, sort=False):
        ms, low, high = interval(1000 * own.seconds, own.tokens)
        ends = {"ms_per_token": ms, "low": low, "high": high, "prompts": len(own)}
        rows.append(dict(zip(keys, key, strict=True)) | ends)
    found = _in_words(pd.DataFrame(rows))
    order = list(STEPS)
    found = found.sort_values("method", key=lambda own: own.map(order.index), kind="stable")
    found = found.sort_values(["temperature", "family", "edition"], kind="stable")
    alone = found[(found.method == AUTOREGRESSIVE) & (found.edition == EXACT["exact"])]
    slowest = alone.set_index(["family", "sampling"]).ms_per_token.rename("slowest")
    speed_up = found.join(slowest, on=["family", "sampling"]).slowest / found.ms_per_token
    panel = found.family.str.split().str[0] + ", " + found.sampling
    return found.assign(panel=panel, step=found.method.map(STEPS), speed_up=speed_up)


def scouts_table(stored: pd.DataFrame) -> pd.DataFrame:
    """What a scout saves the raced draft model, and what that is worth: a row per edition, sampler
    and shape of the guesses, and in it, without and with the scout, the draft's `passes per round`
    and `rows per pass` (of each round's mean pass, rounded), counted over all prompts; and the
    speed with it ÷ without, in words with the interval, for each family of prompts.
    """
    ratios = idea_table(stored).query("part == @ALL").set_index(["edition", "sampling", "pair"])
    rows = {}
    for (edition, sampling), own in _in_words(stored).groupby(["edition", "sampling"], sort=False):
        for shape in (CHAIN, TREE):
            row: dict[tuple[str, str], object] = {}
            for name, method in (("without", shape), ("with", shape + SCOUT)):
                work = raced_work(own[own.method == method])
                drafted = [(size, n) for (who, size, _), n in work.passes.items() if who != TARGET]
                passes = sum(count for _, count in drafted)
                row["passes per round", name] = passes / work.rounds
                row["rows per pass", name] = sum(size * n for size, n in drafted) / passes
            both = ratios.loc[[(edition, sampling, f"{shape + SCOUT} ÷ {shape}")]]
            for one in both.to_dict("records"):
                said = with_interval(one["ratio"], one["ratio_low"], one["ratio_high"])
                row["speed with ÷ without", one["family"]] = said
            rows[edition, sampling, shape] = row
    found = pd.DataFrame.from_dict(rows, orient="index")
    found.index.names = ["number format", "sampling", "guesses"]
    return found.sort_index(axis=1, level=0, sort_remaining=False)


def ideas_page(stored: pd.DataFrame) -> str:
    """What each idea adds by the clock, as the page of results shows it: a line for each of
    `CLAIMS`, for a tree beside the chain that has no setting of its own, for the vertical cascade
    beside a tree behind copies, for two settings of one chain, and each kind of prompts, a cell
    per edition and sampler.
    """
    table = idea_table(stored)
    whole = table[(table.part == ALL) & (table.idea != TOGETHER)]
    panels = list(dict.fromkeys(whole.panel))
    pairs = [(TREE, CHAIN), *CLAIMS.values(), *PAIRS["cascade beside copies"], *PAIRS["setting"]]
    pairs = list(dict.fromkeys(pairs))
    order = [f"{method} ÷ {base}" for method, base in pairs]
    whole = whole[whole.pair.isin(order)]
    whole = whole.sort_values("pair", key=lambda own: own.map(order.index), kind="stable")
    lines = [
        f"| speed ÷ speed | prompts | {' | '.join(panels)} |",
        "|---" * (2 + len(panels)) + "|",
    ]
    for key, rows in whole.groupby(["pair", "family"], sort=False):
        pair, family = cast(tuple[str, str], key)
        by = rows.set_index("panel")
        cells = [_cell(by.loc[panel]) if panel in by.index else "–" for panel in panels]
        count = rows.prompts.max()
        lines.append(f"| {pair} | {count} {family.split()[0]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: pd.Series) -> str:
    """A ratio and its interval, bold where that excludes 1."""
    said = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    return f"**{said}**" if row.ratio_low > 1 or row.ratio_high < 1 else said


def worth_page(stored: pd.DataFrame) -> str:
    """What both papers' ideas are worth by the clock, as README shows it: a line for each of
    `WORTH`, on published prompts, a cell per edition and sampler.
    """
    table = idea_table(stored)
    whole = table[(table.part == ALL) & (table.family == PUBLISHED)]
    panels = list(dict.fromkeys(whole.panel))
    heads = [f"speed ÷ that of the other, on {whole.prompts.max()} published prompts", *panels]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for said, (method, base) in WORTH.items():
        by = whole[whole.pair == f"{method} ÷ {base}"].set_index("panel")
        cells = [_cell(by.loc[panel]) for panel in panels]
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Editions and samplers in words."""
    sampling = list(map(sampling_of, table.temperature, table.top_k))
    return table.assign(edition=table.edition.replace(EXACT), sampling=sampling)
