"""The drafts that the table of results compares, greedily and at temperature 1."""

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep import stacks
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.workload import Ladder

TEMPERATURES = (0.0, 1.0)


def compared_drafts(ladder: Ladder, sampler: Sampler = Sampler()) -> dict[str, Draft]:
    """The drafts that the table compares, each with the match table of its models under this
    sampler; the n-gram tree where there is a table.
    """
    match = ladder.match("draft", sampler)
    ngrams = (
        {}
        if ladder.katz is None
        else {"n-gram, best tree of 16": stacks.scout(ladder, sampler, obeyed="target")}
    )
    return ngrams | {
        "Max-Gram, chain of 10": ladder.max_gram,
        "draft, chain of 4": ChainDraft(ladder.draft, 4, match=match),
        "draft, chain of 8": ChainDraft(ladder.draft, 8, match=match),
        "draft, tree 4·2·1·1": TreeDraft(ladder.draft, widths=(4, 2, 1, 1), match=match),
        "draft, best tree of 16": TreeDraft(ladder.draft, budget=16, match=match),
        "draft, best tree of 32": TreeDraft(ladder.draft, budget=32, match=match),
    }


def settings(ladder: Ladder) -> list[Setting]:
    """The table's grid; in a module of its own, for workers to find it."""
    return [
        Setting(name, draft, sampler)
        for sampler in map(Sampler, TEMPERATURES)
        for name, draft in compared_drafts(ladder, sampler).items()
    ]
