"""The stacks of models that the staged notebook compares: chain or tree, with and without a scout,
and from one level to four.
"""

from collections.abc import Sequence
from dataclasses import replace

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.workload import Ladder

DEEPEST = "target ← middle ← draft ← n-gram"
SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))  # the paper's


def scout(
    ladder: Ladder, sampler: Sampler, *, obeyed: str = "draft", budget: int = 16, depth: int = 6
) -> NgramDraft:
    """The n-gram table as a guesser of what the draft (or another model) takes: best-first, by
    measured match rates where tokens are sampled.
    """
    match = ladder.match("n-gram", sampler, obeyed=obeyed)
    return NgramDraft(
        ladder.katz,
        budget=budget,
        depth=depth,
        match=match,
        counted_at=ladder.card["katz"]["temperature"],
    )


def staged(ladder: Ladder, sampler: Sampler, draft: TreeDraft | ChainDraft) -> dict[str, Draft]:
    """The same draft without a scout, and with each of three: a few n-gram guesses, many, and many
    with what Max-Gram copies beside them.

    Without an n-gram table, Max-Gram alone is the scout.
    """
    if ladder.katz is None:
        return {"none": draft, "Max-Gram": StagedTree(draft, MaxGram(None, 8), guided=2)}
    few, many = (scout(ladder, sampler, budget=budget, depth=6) for budget in (8, 16))
    return {
        "none": draft,
        "n-gram": StagedTree(draft, few, guided=2),
        "n-gram, wide": StagedTree(draft, many, guided=4),
        "n-gram, wide, and Max-Gram": StagedTree(
            draft, MergedDraft((MaxGram(None, 8), many)), guided=4
        ),
    }


def copying(ladder: Ladder, sampler: Sampler) -> MergedDraft:
    """A shallower staged tree, and beside it in the same pass of the target a chain that Max-Gram
    copies from the text so far.

    Both sizes move the fewest bytes per token of those tried on development prompts: greedy text
    repeats itself and is worth copying, sampled text is not, and there a guess below a score of .02
    costs more than it brings.
    """
    greedy = sampler.temperature == 0
    budget, depth, length, floor = (16, 5, 16, 0.0) if greedy else (12, 3, 4, 0.02)
    few = (
        MaxGram(None, depth)
        if ladder.katz is None
        else MergedDraft((MaxGram(None, depth), scout(ladder, sampler, budget=6)))
    )
    shallow = replace(tree(ladder, sampler, budget=budget, depth=depth), floor=floor)
    return MergedDraft((MaxGram(None, length), StagedTree(shallow, few, guided=2)))


def tree(ladder: Ladder, sampler: Sampler, *, budget: int = 16, depth: int = 8) -> TreeDraft:
    """The draft's best tree, by its probabilities at temperature 0 and by measured match rates
    where tokens are sampled.
    """
    return TreeDraft(ladder.draft, budget=budget, depth=depth, match=ladder.match("draft", sampler))


def levels(
    ladder: Ladder, sampler: Sampler, *, budget: int = 16, depth: int = 8
) -> dict[str, Draft]:
    """Stacks of one to four levels, the target counted."""
    lowest = tree(ladder, sampler, budget=budget, depth=depth)
    middle = TreeDraft(
        ladder.middle, budget=budget, depth=depth, match=ladder.match("middle", sampler)
    )
    inner = TreeDraft(
        ladder.draft,
        budget=8,
        depth=depth - 1,
        match=ladder.match("draft", sampler, obeyed="middle"),
    )
    return {
        "target": NoDraft(),
        "target ← draft": lowest,
        "target ← draft ← n-gram": StagedTree(lowest, scout(ladder, sampler, budget=8), guided=2),
        DEEPEST: StagedTree(
            middle, StagedTree(inner, scout(ladder, sampler, budget=8), guided=2), guided=1
        ),
    }


def settings(ladder: Ladder, samplers: Sequence[Sampler] = SAMPLERS) -> list[Setting]:
    """The grid of the staged notebook: plain decoding, a chain of 5 and trees of 8 and 16 guesses,
    each called "shape, scout", and two more stacks.

    The tree of 8 goes without the wider scouts, and the deepest stack is only tried greedily: both
    are slow, and say little more. A ladder of one's own models goes without what it lacks: n-gram
    scouts and the deepest stack.
    """
    found = []
    for sampler in samplers:
        named: dict[str, Draft] = {
            "target": NoDraft(),
            "shallow tree and copies": copying(ladder, sampler),
        }
        shapes: dict[str, TreeDraft | ChainDraft] = {
            "chain of 5": ChainDraft(ladder.draft, 5, match=ladder.match("draft", sampler))
        }
        shapes |= {f"tree of {budget}": tree(ladder, sampler, budget=budget) for budget in (8, 16)}
        named |= {
            f"{shape}, {name}": one
            for shape, draft in shapes.items()
            for name, one in staged(ladder, sampler, draft).items()
        }
        named = {
            name: draft
            for name, draft in named.items()
            if not name.startswith("tree of 8, n-gram, wide")
        }
        if sampler.temperature == 0 and ladder.katz is not None and ladder.middle is not None:
            named[DEEPEST] = levels(ladder, sampler)[DEEPEST]
        found += [Setting(name, draft, sampler) for name, draft in named.items()]
    return found
