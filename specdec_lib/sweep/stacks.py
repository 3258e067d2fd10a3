"""The stacks of models that the staged notebook compares: chain or tree, one stage or two, and from one level to four."""

from specdec_lib.chance import Sampler
from specdec_lib.draft import ChainDraft, Draft, MergedDraft, NoDraft, TreeDraft
from specdec_lib.ngram import MaxGram, NgramDraft
from specdec_lib.staged import StagedTree
from specdec_lib.workload import Ladder


def scout(ladder: Ladder, sampler: Sampler, *, obeyed: str = "draft", budget: int = 16, depth: int = 6) -> NgramDraft:
    """The n-gram table as a guesser of what the draft (or another model) takes: best-first, by measured match rates where tokens are sampled."""
    match = ladder.match("n-gram", sampler, obeyed=obeyed)
    return NgramDraft(ladder.katz, budget=budget, depth=depth, match=match, counted_at=ladder.card["katz"]["temperature"])


def scouts(ladder: Ladder, sampler: Sampler, *, budget: int = 16, depth: int = 6) -> dict[str, Draft]:
    """The n-gram scout alone, and with what Max-Gram copies beside it."""
    table = scout(ladder, sampler, budget=budget, depth=depth)
    return {"n-gram": table, "Max-Gram and n-gram": MergedDraft((MaxGram(None, depth), table))}


def tree(ladder: Ladder, sampler: Sampler, *, budget: int = 16, depth: int = 8) -> TreeDraft:
    """The draft's best tree, by its probabilities at temperature 0 and by measured match rates where tokens are sampled."""
    return TreeDraft(ladder.draft, budget=budget, depth=depth, match=ladder.match("draft", sampler))


def ablation(ladder: Ladder, sampler: Sampler, *, length: int = 5, budget: int = 16, depth: int = 8) -> dict[str, Draft]:
    """{chain, tree} × {one stage, two stages}."""
    one = {"chain": ChainDraft(ladder.draft, length), "tree": tree(ladder, sampler, budget=budget, depth=depth)}
    return one | {f"{name}, staged": StagedTree(draft, scout(ladder, sampler)) for name, draft in one.items()}


def levels(ladder: Ladder, sampler: Sampler, *, budget: int = 16, depth: int = 8) -> dict[str, Draft]:
    """Stacks of one to four levels, the target counted."""
    lowest = tree(ladder, sampler, budget=budget, depth=depth)
    middle = TreeDraft(ladder.middle, budget=budget, depth=depth, match=ladder.match("middle", sampler))
    inner = TreeDraft(ladder.draft, budget=budget, depth=depth - 1, match=ladder.match("draft", sampler, obeyed="middle"))
    return {
        "target": NoDraft(),
        "target ← draft": lowest,
        "target ← draft ← n-gram": StagedTree(lowest, scout(ladder, sampler)),
        "target ← middle ← draft ← n-gram": StagedTree(middle, StagedTree(inner, scout(ladder, sampler))),
    }
