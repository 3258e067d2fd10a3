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

LEAST = 2  # fewer copies are passed over
# by their number at most, the tokens of a round in which copies guess: in greedy text, and in text
# drawn at temperature 1; counted in `data/text/kept-out`
COPIES = {3: (2.94, 1.61), 4: (3.38, 1.65), 6: (4.12, 1.69), 8: (4.63, 1.71)}
DEFAULT = "copies, else a tree, where they pay"


class Size(NamedTuple):
    """A best-first tree's size, the number of copies, and what a round must yield.

    budget, depth    guesses and levels of the tree
    needed           tokens per round from which on the tree pays
    hoped            those that its model's match table foretells
    length           of copies, at most
    copying          tokens per round from which on they pay
    """

    budget: int
    depth: int
    needed: float
    hoped: float
    length: int
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
    hoped = HOPED * size.copying, size.hoped
    return FirstPaying((copies(size.length, LEAST), tree), needed, hoped, LEAST)


def usual_settings(ladder: Ladder, sampler: Sampler, size: Size) -> list[Setting]:
    """`usual_draft`, its parts alone and together without a switch, and plain decoding; and the
    tree of the plain draft, where another one is usual.
    """
    drafts = LadderDrafts(ladder, sampler)
    tree = drafts.tree(size.budget, size.depth, model=usual_model(ladder))
    copied = copies(size.length, LEAST)
    named = {
        AUTOREGRESSIVE: NoDraft(),
        "copies": copied,
        "tree": tree,
        "copies, else a tree": FirstDraft((copied, tree), LEAST),
        DEFAULT: usual_draft(ladder, sampler, size),
    }
    if ladder.reading is not None:
        named["plain draft's tree"] = drafts.tree(size.budget, size.depth)
    return [Setting(name, draft, sampler, method=name) for name, draft in named.items()]
