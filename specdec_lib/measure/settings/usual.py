"""The draft to begin with, where nothing was tuned: `specdec compare` tries it, and the guide shows
it inside `generate`.
"""

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import FirstDraft
from specdec_lib.drafts.planned import Planned, off_switch
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.workload import Ladder


def usual_tree(ladder: Ladder, sampler: Sampler) -> TreeDraft:
    """A best-first tree of 8 guesses, of the draft that reads its target, if the ladder has it."""
    drafts = LadderDrafts(ladder, sampler)
    model = "draft" if ladder.reading is None else "reading"
    return drafts.tree(8, 4, model=model)


def usual_draft(ladder: Ladder, sampler: Sampler, needed: float) -> Planned:
    """Copies of the text so far, else `usual_tree`, where these pay on the present text.

    needed    of that tree, as `measure.latency.needed` finds it on this machine
    """
    return off_switch(FirstDraft((copies(8, 2), usual_tree(ladder, sampler)), 2), needed)
