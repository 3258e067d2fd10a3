"""What the race against Hugging Face's ways says, and ours beside it in one unit: times plain
decoding of the float32 target on the compiled runtime, on the same prompts.
"""

from itertools import product

import pandas as pd

from specdec_lib.measure.idea_tables import EMBEDDED, EXACT, FAMILIES, PUBLISHED
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import interval, named_interval, sampling_of, with_interval
from specdec_lib.measure.rivals import rivals_file
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, COPIED, SPECULATIVE, TREE, VERTICAL
from specdec_lib.measure.settings.names import ASSIST, GENERATE, LOOKUP, STATIC_CACHE

THEIRS = "Hugging Face"  # begins what `side_by_side` says of whose their rows are
SHOWN = (AUTOREGRESSIVE, SPECULATIVE, TREE, TREE + COPIED, VERTICAL)  # of the race of ideas
NAMES = {
    GENERATE: "transformers generate",
    ASSIST: "transformers assisted (one-layer draft)",
    LOOKUP: "transformers prompt lookup",
    AUTOREGRESSIVE: "plain decoding",
    TREE + COPIED: "tree behind copies",
}
FRONT = (  # what README shows of them, and whose
    (NAMES[GENERATE], THEIRS),
    (NAMES[TREE + COPIED], EXACT["exact"]),
    (NAMES[AUTOREGRESSIVE], "int8"),
    (NAMES[TREE + COPIED], "int8"),
)


def compare_rivals(table: pd.DataFrame) -> pd.DataFrame:
    """Per sampler and way: prompts, milliseconds per token, and speed ÷ plain decoding's on the
    same prompts, with a 95 % interval.
    """
    rows = []
    for _, group in table.groupby(["temperature", "top_k"], sort=False):
        sampling = _sampling(group)
        plain = group[group.method == AUTOREGRESSIVE].set_index("prompt")
        for (method, setting), own in group.groupby(["method", "setting"], sort=False):
            timed = own.set_index("prompt")
            base = plain.loc[timed.index]
            sides = [one[name] for one in (timed, base) for name in ("timed_tokens", "seconds")]
            ms = 1000 * timed.seconds.sum() / timed.timed_tokens.sum()
            about = {"sampling": sampling, "method": method, "setting": setting}
            about |= {"runtime": timed.runtime.iloc[0], "prompts": len(timed), "ms_per_token": ms}
            rows.append({**about, **named_interval("ratio", interval(*sides))})
    return pd.DataFrame(rows)


def stored_rivals(machine: str = RACED) -> pd.DataFrame:
    """The stored race of a machine, with a column `family`; raises ValueError if there is none."""
    places = {name: rivals_file(machine, published=name == PUBLISHED) for name in FAMILIES}
    found = [pd.read_csv(one).assign(family=name) for name, one in places.items() if one.is_file()]
    if not found:
        raise ValueError(
            f"no race against Hugging Face on {machine} is stored; `specdec measure rivals` runs"
            " one"
        )
    return pd.concat(found)


def side_by_side(ideas: pd.DataFrame, rivals: pd.DataFrame) -> pd.DataFrame:
    """Hugging Face's ways and ours in one unit: `family`, `sampling`, `name`, `whose` ("float32",
    "int8" or "Hugging Face" with its precision), `prompts`, `ms_per_token`, and `ratio` with
    `ratio_low` and `ratio_high`, the speed ÷ plain decoding's in float32 on the same prompts.
    """
    groups = rivals.groupby("family", sort=False)
    found = pd.concat(compare_rivals(own).assign(family=family) for family, own in groups)
    found = found[found.method != AUTOREGRESSIVE]
    static = found.setting == STATIC_CACHE
    found["name"] = found.method.map(NAMES).where(~static, f"{NAMES[GENERATE]}, static cache")
    parts = [found, _ours(ideas)]
    return pd.concat(parts, ignore_index=True).rename(columns={"runtime": "whose"})


def _ours(ideas: pd.DataFrame) -> pd.DataFrame:
    """The rows of `SHOWN` methods in both editions, against plain decoding in float32."""
    rows = []
    for (family, *_), group in ideas.groupby(["family", "temperature", "top_k"]):
        exact = group[group.edition == "exact"]
        plain = exact[exact.method == AUTOREGRESSIVE].set_index("prompt")
        for edition, method in product(dict.fromkeys(group.edition), SHOWN):
            own = group[(group.edition == edition) & (group.method == method)]
            timed = own.set_index("prompt")
            base = plain.loc[timed.index]
            sides = [one[name] for one in (timed, base) for name in ("tokens", "seconds")]
            about = {"family": family, "sampling": _sampling(group), "method": method}
            about |= {"name": NAMES.get(method, method), "runtime": EXACT.get(edition, edition)}
            ms = 1000 * timed.seconds.sum() / timed.tokens.sum()
            about |= {"prompts": len(timed), "ms_per_token": ms}
            rows.append({**about, **named_interval("ratio", interval(*sides))})
    return pd.DataFrame(rows)


def _sampling(group: pd.DataFrame) -> str:
    """The sampler of rows that have the same, in words."""
    return sampling_of(float(group.temperature.iloc[0]), float(group.top_k.iloc[0]))


def rivals_page(table: pd.DataFrame) -> str:
    """`side_by_side` as the page of results shows it: a line per way and target, a cell per kind of
    prompts and sampler.
    """
    panels = [
        (family, sampling)
        for family in (EMBEDDED, PUBLISHED)
        for sampling in dict.fromkeys(table.sampling)
    ]
    heads = [f"{family.split()[0]}, {sampling}" for family, sampling in panels]
    lines = [f"| way | number format | {' | '.join(heads)} |", "|---" * (2 + len(panels)) + "|"]
    for (name, whose), rows in table.groupby(["name", "whose"], sort=False):
        said = map(with_interval, rows.ratio, rows.ratio_low, rows.ratio_high)
        by = dict(zip(zip(rows.family, rows.sampling, strict=True), said, strict=True))
        cells = [by.get(panel, "–") for panel in panels]
        lines.append(f"| {name} | {whose} | {' | '.join(cells)} |")
    return "\n".join(lines)


def front_page(table: pd.DataFrame) -> str:
    """`side_by_side` as README shows it: the rows that `FRONT` names; then in a line what plain
    decoding takes, and the fastest of Hugging Face's ways by sampler.
    """
    rows = [
        table[(table.name == name) & table.whose.str.startswith(whose)] for name, whose in FRONT
    ]
    exact = table[(table.name == NAMES[AUTOREGRESSIVE]) & (table.whose == EXACT["exact"])]
    least, most = exact.ms_per_token.min(), exact.ms_per_token.max()
    theirs = table[table.whose.str.startswith(THEIRS)]
    fastest = theirs.loc[theirs.groupby("sampling", sort=False).ratio.idxmax()]
    shown = ["sampling", "ratio", "ratio_low", "ratio_high"]
    said = "; ".join(
        f"{name} ("
        + "; ".join(f"{sampling}: {with_interval(*ends)}" for sampling, *ends in own.to_numpy())
        + ")"
        for name, own in fastest.groupby("name", sort=False)[shown]
    )
    plain = f"Plain decoding in float32 takes {least:.1f} to {most:.1f} ms per token."
    return f"{rivals_page(pd.concat(rows))}\n\n{plain} Hugging Face's fastest: {said}."
