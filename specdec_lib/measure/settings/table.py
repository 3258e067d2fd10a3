"""Which drafts the table of tokens per round has (`specdec measure table`): some of each kind."""

from collections.abc import Sequence

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import MergedDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.setting import GREEDY, TOP_50, WARM, Setting
from specdec_lib.workload import Ladder

SAMPLERS = (GREEDY, WARM, TOP_50)  # those of the stored texts
CASCADE = ((2, 2, 10), (0, 2, 10), (0, 0, 10))  # K matrix of the middle model, draft and Max-Gram


def table_drafts(ladder: Ladder, sampler: Sampler = GREEDY) -> dict[str, Draft]:
    """The drafts by name; those that read the target where the ladder has them."""
    drafts = LadderDrafts(ladder, sampler)
    unmatched = LadderDrafts(ladder, sampler, matched=False)
    tree = drafts.tree(16, 6)
    cascade = unmatched.cascade(("middle", "draft"), CASCADE, last=ladder.max_gram)
    found: dict[str, Draft] = {
        "n-gram, tree of 16": drafts.scout(16, obeyed="target"),
        "Max-Gram, chain of 10": ladder.max_gram,
        "draft, chain of 4": drafts.chain(4),
        "draft, tree of 16": tree,
        "draft, tree of 32": drafts.tree(32),
        "staged, tree of 16": StagedTree(tree, drafts.scout(16), guided=4),
        "cascade, middle + draft + Max-Gram": cascade,
    }
    if ladder.reading is not None:
        reader = drafts.tree(16, 6, model="reading")
        found |= {
            "reading draft, chain of 4": drafts.chain(4, model="reading"),
            "reading draft, tree of 16": reader,
            "reading draft, tree of 16 beside Max-Gram": MergedDraft((copies(8, 2), reader)),
        }
    return found


def table_settings(ladder: Ladder, samplers: Sequence[Sampler] = SAMPLERS) -> list[Setting]:
    """The same under every sampler."""
    return [
        Setting(name, draft, sampler)
        for sampler in samplers
        for name, draft in table_drafts(ladder, sampler).items()
    ]
