"""The draft to begin with, where nothing was tuned, beside its parts: `specdec measure defaults`
times them, and `specdec compare` tries the whole.
"""

from typing import NamedTuple

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import FirstDraft, NoDraft
from specdec_lib.drafts.paying import HOPED, FirstPaying
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

COPIED = copies(8, 2)
LEAST = 2  # fewer copies are passed over
DEFAULT = "copies, else a tree, where they pay"


class Size(NamedTuple):
    """A best-first tree's size, and what a round must yield.

    budget, depth    guesses and levels
    needed           tokens per round from which on it pays
    hoped            those that its model's match table foretells
    copying          tokens per round from which on `COPIED` pays
    """

    budget: int
    depth: int
    needed: float
    hoped: float
    copying: float


def usual_model(ladder: Ladder) -> str:
    """The model of the tree: the draft that reads its target, if the ladder has it."""
    return "draft" if ladder.reading is None else "reading"


def usual_draft(ladder: Ladder, sampler: Sampler, size: Size) -> FirstPaying:
    """Copies of the text so far, else a tree of this size, each where it pays on the present
    text.
    """
    tree = LadderDrafts(ladder, sampler).tree(size.budget, size.depth, model=usual_model(ladder))
    needed = size.copying, size.needed
    return FirstPaying((COPIED, tree), needed, (HOPED * size.copying, size.hoped), LEAST)


def usual_settings(ladder: Ladder, sampler: Sampler, size: Size) -> list[Setting]:
    """`usual_draft`, its parts alone and together without a switch, and plain decoding; and the
    tree of the plain draft, where another one is usual.
    """
    drafts = LadderDrafts(ladder, sampler)
    tree = drafts.tree(size.budget, size.depth, model=usual_model(ladder))
    named = {
        AUTOREGRESSIVE: NoDraft(),
        "copies": COPIED,
        "tree": tree,
        "copies, else a tree": FirstDraft((COPIED, tree), LEAST),
        DEFAULT: usual_draft(ladder, sampler, size),
    }
    if ladder.reading is not None:
        named["plain draft's tree"] = drafts.tree(size.budget, size.depth)
    return [Setting(name, draft, sampler, method=name) for name, draft in named.items()]
