"""Which drafts notebook 03b compares (`specdec measure staged`): a chain and trees, each without a
scout and with three, so that one stage stands beside two; a shallow tree beside copies; and stacks
of up to four levels.
"""

from collections.abc import Sequence

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.setting import GREEDY, TOP_50, Setting
from specdec_lib.workload import Ladder

SAMPLERS = (GREEDY, TOP_50)  # the staged paper's


def staged_settings(ladder: Ladder, samplers: Sequence[Sampler] = SAMPLERS) -> list[Setting]:
    """All of them, a draft with its scout as "shape, scout"; `levels`, which are slow, greedily."""
    found = []
    for sampler in samplers:
        named = _shapes_and_scouts(ladder, sampler)
        if sampler.temperature == 0:
            named |= levels(ladder, sampler)
        found += [Setting(name, draft, sampler) for name, draft in named.items()]
    return found


def _shapes_and_scouts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """Three scouts: a few n-gram guesses, many, and many beside what Max-Gram copies."""
    drafts = LadderDrafts(ladder, sampler)
    chain = drafts.chain(5)
    small = drafts.tree(8)
    large = drafts.tree(16)
    few = drafts.scout(8)
    many = drafts.scout(16)
    both = MergedDraft((copies(8), many))
    return {
        "target": NoDraft(),
        "shallow tree and copies": _shallow_tree_and_copies(drafts),
        "chain of 5, none": chain,
        "chain of 5, n-gram": StagedTree(chain, few, guided=2),
        "chain of 5, n-gram, wide": StagedTree(chain, many, guided=4),
        "chain of 5, n-gram, wide, and Max-Gram": StagedTree(chain, both, guided=4),
        "tree of 8, none": small,
        "tree of 8, n-gram": StagedTree(small, few, guided=2),
        "tree of 16, none": large,
        "tree of 16, n-gram": StagedTree(large, few, guided=2),
        "tree of 16, n-gram, wide": StagedTree(large, many, guided=4),
        "tree of 16, n-gram, wide, and Max-Gram": StagedTree(large, both, guided=4),
    }


def _shallow_tree_and_copies(drafts: LadderDrafts) -> MergedDraft:
    """A shallower staged tree, and beside it in the same pass of the target a chain that Max-Gram
    copies. The sizes are those of the fewest bytes per token on development prompts.
    """
    if drafts.sampler.temperature == 0:
        tree = drafts.tree(16, 5)
        copied = copies(16)
    else:
        tree = drafts.tree(12, 3, floor=0.02)
        copied = copies(4)
    scout = MergedDraft((copies(tree.depth), drafts.scout(6)))
    return MergedDraft((copied, StagedTree(tree, scout, guided=2)))


def levels(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """Stacks of two to four levels on the middle model, level by level: its tree alone, fed by the
    draft's tree, and that one fed by what Max-Gram copies or by the n-gram table.
    """
    drafts = LadderDrafts(ladder, sampler)
    tree = drafts.tree(16, model="middle")
    inner = drafts.tree(8, 7, obeyed="middle")
    copied = StagedTree(inner, copies(8), guided=2)
    counted = StagedTree(inner, drafts.scout(8), guided=2)
    return {
        "target ← middle": tree,
        "target ← middle ← draft": StagedTree(tree, inner, guided=1),
        "target ← middle ← draft ← Max-Gram": StagedTree(tree, copied, guided=1),
        "target ← middle ← draft ← n-gram": StagedTree(tree, counted, guided=1),
    }
