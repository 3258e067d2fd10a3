"""The stacks of the embedded ladder's models that are compared, and the README table's drafts."""

from collections.abc import Sequence
from dataclasses import replace

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import SAMPLERS as TEXT_SAMPLERS
from specdec_lib.workload import Ladder

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))  # the staged paper's
CASCADE = ((2, 2, 10), (0, 2, 10), (0, 0, 10))  # the K matrix of the table's cascade


def scout(
    ladder: Ladder, sampler: Sampler, *, obeyed: str = "draft", budget: int = 16, depth: int = 6
) -> NgramDraft:
    """The n-gram table as a best-first guesser of what the draft (or another model) takes."""
    match = ladder.match("n-gram", sampler, obeyed=obeyed)
    heat = ladder.card["katz"]["temperature"]
    return NgramDraft(ladder.katz, budget=budget, depth=depth, match=match, counted_at=heat)


def draft_tree(ladder: Ladder, sampler: Sampler, *, budget: int = 16, depth: int = 8) -> TreeDraft:
    """The draft's best tree, by its probabilities or, where tokens are sampled, match rates."""
    return TreeDraft(ladder.draft, budget=budget, depth=depth, match=ladder.match("draft", sampler))


def staged(ladder: Ladder, sampler: Sampler, draft: TreeDraft | ChainDraft) -> dict[str, Draft]:
    """The same draft without a scout, and with each of three: a few n-gram guesses, many, and many
    beside what Max-Gram copies.
    """
    few, many = (scout(ladder, sampler, budget=budget) for budget in (8, 16))
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
    copies. The sizes are those of the fewest bytes per token on development prompts.
    """
    greedy = sampler.temperature == 0
    budget, depth, length, floor = (16, 5, 16, 0.0) if greedy else (12, 3, 4, 0.02)
    shallow = replace(draft_tree(ladder, sampler, budget=budget, depth=depth), floor=floor)
    few = MergedDraft((MaxGram(None, depth), scout(ladder, sampler, budget=6)))
    return MergedDraft((MaxGram(None, length), StagedTree(shallow, few, guided=2)))


def levels(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """Stacks of two to four levels on the middle model, level by level: its tree alone, fed by the
    draft's tree, and that one fed by what Max-Gram copies or by the n-gram table.
    """
    match = ladder.match("middle", sampler)
    tree = TreeDraft(ladder.middle, budget=16, depth=8, match=match)
    match = ladder.match("draft", sampler, obeyed="middle")
    inner = TreeDraft(ladder.draft, budget=8, depth=7, match=match)
    below = {"Max-Gram": MaxGram(None, 8), "n-gram": scout(ladder, sampler, budget=8)}
    fed = {f" ← {name}": StagedTree(inner, one, guided=2) for name, one in below.items()}
    return {"target ← middle": tree} | {
        f"target ← middle ← draft{name}": StagedTree(tree, one, guided=1)
        for name, one in {"": inner, **fed}.items()
    }


def staged_settings(ladder: Ladder, samplers: Sequence[Sampler] = SAMPLERS) -> list[Setting]:
    """The grid of the staged notebook: plain decoding, a chain of 5 and trees of 8 and 16 guesses,
    each called "shape, scout", a shallow tree beside copies, and `levels`, only greedily: they are
    slow.
    """
    found = []
    for sampler in samplers:
        shapes = {"chain of 5": ChainDraft(ladder.draft, 5, match=ladder.match("draft", sampler))}
        shapes |= {f"tree of {size}": draft_tree(ladder, sampler, budget=size) for size in (8, 16)}
        named = {"target": NoDraft(), "shallow tree and copies": copying(ladder, sampler)} | {
            f"{shape}, {name}": one
            for shape, draft in shapes.items()
            for name, one in staged(ladder, sampler, draft).items()
            if not (shape == "tree of 8" and name.startswith("n-gram, wide"))
        }
        if sampler.temperature == 0:
            named |= levels(ladder, sampler)
        found += [Setting(name, draft, sampler) for name, draft in named.items()]
    return found


def table_drafts(ladder: Ladder, sampler: Sampler = Sampler()) -> dict[str, Draft]:
    """The drafts of the README's table."""
    match, tree = ladder.match("draft", sampler), draft_tree(ladder, sampler, budget=16, depth=6)
    parts = (ladder.middle, ladder.draft, ladder.max_gram)
    return {
        "n-gram, tree of 16": scout(ladder, sampler, obeyed="target"),
        "Max-Gram, chain of 10": ladder.max_gram,
        "draft, chain of 4": ChainDraft(ladder.draft, 4, match=match),
        "draft, tree of 16": tree,
        "draft, tree of 32": draft_tree(ladder, sampler, budget=32),
        "staged, tree of 16": StagedTree(tree, scout(ladder, sampler), guided=4),
        "cascade, middle + draft + Max-Gram": from_matrix(parts, CASCADE),
    }


def table_settings(ladder: Ladder) -> list[Setting]:
    """The grid of the README's table."""
    return [
        Setting(name, draft, sampler)
        for sampler in TEXT_SAMPLERS
        for name, draft in table_drafts(ladder, sampler).items()
    ]
