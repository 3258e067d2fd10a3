"""Which drafts the explorers of notebooks 01 and 03 try: one guesser, of any size."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.workload import Ladder

GUESSERS = ("draft", "middle", "reading", "n-gram", "Max-Gram", "draft and Max-Gram")
NEEDS = {
    "middle": "middle",
    "reading": "reading",
    "n-gram": "katz",
    "draft, for the middle model": "middle",
}


class TreeSize(NamedTuple):
    """How large a tree is: a budget and a depth, or the children per node at each depth."""

    budget: int
    depth: int
    widths: tuple[int, ...] = ()


def guesser(
    ladder: Ladder, sampler: Sampler, name: str, size: TreeSize, obeyed: str = "target"
) -> Draft:
    """One of GUESSERS: a tree of a model or of the n-gram table, or a copied chain as deep as the
    tree would be, or the draft's tree merged with such a chain.
    """
    drafts = LadderDrafts(ladder, sampler)
    budget, depth, widths = size
    if name == "n-gram":
        table = drafts.scout(budget, depth, obeyed=obeyed)
        return replace(table, budget=None, widths=widths) if widths else table
    if name == "Max-Gram":
        return replace(ladder.max_gram, length=min(budget, depth))
    if name in ("draft", "middle", "reading"):
        if widths:
            return drafts.tree(None, widths=widths, model=name, obeyed=obeyed)
        return drafts.tree(budget, depth, model=name, obeyed=obeyed)
    tree = guesser(ladder, sampler, "draft", size)
    return MergedDraft((tree, copies(min(budget, depth))))


def offered_by(ladder: Ladder, names: Sequence[str]) -> list[str]:
    """The guessers or scouts for which the ladder has the parts."""
    return [name for name in names if getattr(ladder, NEEDS.get(name, "draft")) is not None]
