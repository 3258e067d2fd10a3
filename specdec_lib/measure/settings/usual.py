"""The draft to begin with, where nothing was tuned, beside its parts: `specdec measure defaults`
times them, and `specdec compare` tries the whole.
"""

from typing import NamedTuple

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import FirstDraft, NoDraft
from specdec_lib.drafts.paying import HOPED, FirstPaying
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

LEAST = 2  # fewer copies are passed over
# by their number at most, the tokens of a round in which copies guess: in greedy text, and in text
# drawn at temperature 1; counted in `data/text/kept-out`
COPIES = {3: (2.94, 1.61), 4: (3.38, 1.65), 6: (4.12, 1.69), 8: (4.63, 1.71)}
UNSWITCHED = "copies, else a tree"
DEFAULT = f"{UNSWITCHED}, where they pay"
TREES = {  # by model
    "draft": "plain draft's tree",
    "middle": "middle model's tree",
    "reading": "reading draft's tree",
}


class Size(NamedTuple):
    """A best-first tree's model and size, the number of copies, and what a round must yield.

    model            "draft", "middle" or "reading"
    budget, depth    guesses and levels of the tree, at most
    floor, deepen    the least scores of its guesses, and of those with children
    needed           tokens per round from which on the tree pays
    hoped            those that its model's match table foretells
    length           of copies, at most
    copying          tokens per round from which on they pay
    """

    model: str
    budget: int
    depth: int
    floor: float
    deepen: float
    needed: float
    hoped: float
    length: int
    copying: float


def tree_models(ladder: Ladder) -> list[str]:
    """The models that a tree is tried with: the draft that reads its target, if the ladder has it,
    else the plain one; and the middle model, which is right more often and takes longer.
    """
    first = "draft" if ladder.reading is None else "reading"
    return [first, "middle"] if ladder.middle is not None else [first]


def usual_draft(ladder: Ladder, sampler: Sampler, size: Size) -> FirstPaying:
    """Copies of the text so far, else a tree of this size, each where it pays on the present
    text.
    """
    tree = _tree(ladder, sampler, size, size.model)
    needed = size.copying, size.needed
    hoped = HOPED * size.copying, size.hoped
    return FirstPaying((copies(size.length, LEAST), tree), needed, hoped, LEAST)


def usual_settings(ladder: Ladder, sampler: Sampler, size: Size) -> list[Setting]:
    """`usual_draft`, its parts together without a switch, copies alone, and plain decoding; and
    trees of its size of every model of the ladder, its own among them.
    """
    models = LadderDrafts(ladder, sampler).models
    trees = {TREES[model]: _tree(ladder, sampler, size, model) for model in models}
    copied = copies(size.length, LEAST)
    named = {
        AUTOREGRESSIVE: NoDraft(),
        "copies": copied,
        **trees,
        UNSWITCHED: FirstDraft((copied, trees[TREES[size.model]]), LEAST),
        DEFAULT: usual_draft(ladder, sampler, size),
    }
    return [Setting(name, draft, sampler, method=name) for name, draft in named.items()]


def _tree(ladder: Ladder, sampler: Sampler, size: Size, model: str) -> TreeDraft:
    return LadderDrafts(ladder, sampler).tree(
        size.budget, size.depth, model=model, floor=size.floor, deepen=size.deepen
    )
