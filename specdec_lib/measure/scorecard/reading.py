"""The claims of both papers, which are data in claims.toml, with what was measured of each."""

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict

from specdec_lib.measure.bytes_moved import CASCADE, STAGED
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.scorecard.claims import NO_SIGN, Claim
from specdec_lib.measure.scorecard.evidence import Evidence
from specdec_lib.measure.scorecard.evidence_cascade import OF_CASCADE
from specdec_lib.measure.scorecard.evidence_raced import OF_RACE
from specdec_lib.measure.scorecard.evidence_staged import OF_STAGED
from specdec_lib.workload import Ladder
from specdec_lib.workload.published import number, price_list, published

CLAIMS = Path(__file__).with_name("claims.toml")
EVIDENCE: Mapping[str, Callable[..., Evidence]] = {**OF_STAGED, **OF_CASCADE, **OF_RACE}
NEUTRAL: Mapping[object, float | None] = {
    "bound": None,
    "no sign": NO_SIGN,
}  # in words, what `Claim.no_effect` may be
Values = Mapping[str, str | int | float]  # what stands in braces, by name


class Printed(BaseModel):
    """Where the papers' number stands; see the head of claims.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    table: str
    row: dict[str, str | int | float]
    column: str
    over: str | dict[str, str | int | float] | None = None
    change: bool = False


class Block(BaseModel):
    """One block of claims.toml; see its head."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    paper: str
    item: str
    claim: str
    unit: str
    reason: str
    by: str = "nothing"
    printed: Printed | None = None
    ours: dict[str, str] | None = None
    no_effect: float | Literal["bound", "no sign"] = 1
    where_printed: bool = False
    each: list[list[dict[str, str | int | float]]] = []


def read_claims(ladder: Ladder) -> list[Claim]:
    """Every table, figure and claim of both papers, in their order, beside what was measured."""
    return _read(ladder, EVIDENCE, RACED, _blocks())


def raced_claims(ladder: Ladder, machine: str, edition: str = "exact") -> list[Claim]:
    """Those whose evidence is a `raced_idea`, as a machine raced them with the target in an
    edition; ours is NaN where it did not race on such prompts.
    """
    own = {
        name: partial(evidence, machine=machine, edition=edition)
        for name, evidence in OF_RACE.items()
    }
    blocks = [one for one in _blocks() if one.ours and one.ours["evidence"] in OF_RACE]
    return _read(ladder, own, machine, blocks)


def _read(
    ladder: Ladder,
    evidence_by_name: Mapping[str, Callable[..., Evidence]],
    machine: str,
    blocks: Iterable[Block],
) -> list[Claim]:
    """The claims of these blocks, with what was measured of each."""
    texts = _written()["texts"]
    about = {**model_sizes(ladder), "raced": machine}
    found = []
    for block in blocks:
        for rows in product(*block.each):
            values = dict(chain.from_iterable(row.items() for row in rows))
            printed = _printed(block.printed, values)
            if block.where_printed and math.isnan(printed):
                continue
            evidence = _evidence(block, values, ladder, evidence_by_name)
            known = {**about, **values, **evidence.facts}
            found.append(_claim(block, known, texts, printed, evidence))
    return found


def _written() -> dict[str, Any]:
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))


def _blocks() -> list[Block]:
    return [Block.model_validate(one) for one in _written()["claims"]]


def model_sizes(ladder: Ladder) -> dict[str, str]:
    """The sizes of the ladder's models without embeddings, and of the papers' models, in words."""
    found = {}
    for name, one in ladder.card["models"].items():
        size = one["parameters"] / 1e6
        found[name] = f"{size:.0f} M" if size > 10 else f"{size:.1f} M"
    setup = [number("staged.text.setup", name) for name in STAGED.values()]
    prices = price_list("ms")
    found["staged_sizes"] = " : ".join(f"{size:.0f}" for size in setup) + " M"
    found["cascade_sizes"] = " : ".join(f"{prices[one]:,.0f}" for one in CASCADE.values()) + " M"
    return found


def _printed(place: Printed | None, values: Values) -> float:
    """The paper's number; NaN where it prints none."""
    if place is None:
        return math.nan
    table = published(place.table)
    row = _row(table, place.row, values)
    value = float(row[place.column.format_map(values)])
    if isinstance(place.over, str):
        value /= row[place.over.format_map(values)]
    elif place.over is not None:
        value /= _row(table, place.over, values)[place.column.format_map(values)]
    return 1 + value / 100 if place.change else value


def _row(table: pd.DataFrame, wanted: Values, values: Values) -> pd.Series:
    """The one row with these values, lists as "BASE + MaG" and nothing as ""."""
    for column, value in wanted.items():
        said = table[column].map(_in_words)
        table = table[said == _in_words(value).format_map(values)]
    if len(table) != 1:
        raise ValueError(f"a claim needs one printed row with {wanted}, found {len(table)}")
    return table.iloc[0]


def _in_words(value: object) -> str:
    if isinstance(value, list):
        return " + ".join(value)
    return "" if value is None or value != value else str(value)


def _evidence(
    block: Block,
    values: Values,
    ladder: Ladder,
    evidence_by_name: Mapping[str, Callable[..., Evidence]],
) -> Evidence:
    """What was measured; nothing where a combination says that nothing was."""
    if block.ours is None or values.get("by") == "nothing":
        return Evidence()
    given = {name: text.format_map(values) for name, text in block.ours.items()}
    return evidence_by_name[given.pop("evidence")](ladder, **given)


def _claim(
    block: Block, known: Values, texts: Mapping[str, str], printed: float, evidence: Evidence
) -> Claim:
    reason = _spelled(str(known.get("reason", block.reason)), texts)
    neutral = block.no_effect
    facts = {name: _spelled(value, texts) for name, value in known.items()}
    return Claim(
        paper=block.paper,
        item=block.item,
        claim=block.claim.format_map(known),
        unit=block.unit.format_map(known),
        reason=str(reason).format_map(facts),
        paper_value=printed,
        by=str(known.get("by", block.by)),
        ours=evidence.value,
        low=evidence.low,
        high=evidence.high,
        prompts=evidence.prompts,
        no_effect=NEUTRAL[neutral] if isinstance(neutral, str) else neutral,
        domain=str(known.get("domain", "")),
    )


def _spelled(value: str | int | float, texts: Mapping[str, str]) -> str | int | float:
    """A value with the texts whose names stand in it."""
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(f"{{{name}}}", text)
    return value
