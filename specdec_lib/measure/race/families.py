"""What each method may be set to: grids for `tuned`, a few dozen drafts per sampler; without a
middle model or an n-gram table, what needs none.

Staged drafts and tails of copies are built on the trees that were best by the clock, so that their
grids stay small.
"""

from collections.abc import Mapping, Sequence
from itertools import product

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, OURS
from specdec_lib.measure.replay.recording import format_matrix
from specdec_lib.workload import Ladder

Drafts = Mapping[str, Draft]

PLAIN = "token by token"
TREES = ((2, 2), (3, 3), (4, 4), (6, 4), (8, 4), (8, 6), (12, 6), (16, 6))  # budget and depth
WISER = (
    (3, 3),
    (4, 4),
    (6, 5),
    (8, 6),
)  # of the middle model, which is right more often and costs twice as much
FLOORS = (0.0, 0.05, 0.15)
MATRICES = (
    ((1, 4), (0, 4)),
    ((1, 8), (0, 4)),
    ((2, 4), (0, 4)),
    ((1, 0), (0, 4)),
    ((2, 0), (0, 8)),
    ((3, 4), (0, 4)),
    ((1, 12), (0, 8)),
)
DEEPER = (
    ((1, 1, 4), (0, 1, 4), (0, 0, 4)),
    ((1, 0, 4), (0, 1, 4), (0, 0, 4)),
    ((2, 0, 8), (0, 2, 4), (0, 0, 4)),
)


def ngrams(ladder: Ladder, sampler: Sampler) -> Drafts:
    """No network but the target: copies from the text so far, the n-gram table, and both in one
    tree.
    """
    copies = {f"Max-Gram, {length} tokens": MaxGram(None, length) for length in (2, 4, 8, 16)}
    copies |= {
        f"Max-Gram, {length} tokens after 2 or more": MaxGram(None, length, least=2)
        for length in (4, 8)
    }
    if ladder.katz is None:
        return copies
    tables = {
        f"n-gram tree of {budget}": scout(ladder, sampler, "target", budget, 4)
        for budget in (2, 4, 8)
    }
    both = {
        f"n-gram tree of {budget} and Max-Gram, {length} tokens": MergedDraft(
            (MaxGram(None, length, least=2), scout(ladder, sampler, "target", budget, 4))
        )
        for budget, length in ((2, 4), (4, 4), (4, 8))
    }
    return copies | tables | both


def chains(ladder: Ladder, sampler: Sampler) -> Drafts:
    """Chains of the draft and of the middle model, some of which end early where the draft is
    unsure.
    """
    drafts = [
        (model, length, floor)
        for model in _guessers(ladder)
        for length, floor in ((1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (6, 0.1), (8, 0.3))
    ]
    return {
        f"{model}, {length} tokens{_above(floor)}": ChainDraft(
            getattr(ladder, model), length, floor=floor, match=ladder.match(model, sampler)
        )
        for model, length, floor in drafts
    }


def trees(
    ladder: Ladder,
    sampler: Sampler,
    *,
    shapes: Sequence[tuple[int, int]] = TREES,
    floors: Sequence[float] = FLOORS,
) -> dict[str, TreeDraft]:
    """Best-first trees of the draft, and fewer of the middle model."""
    settings = [("draft", *shape, floor) for shape, floor in product(shapes, floors)]
    settings += [
        ("middle", *shape, floor)
        for shape, floor in product(WISER, floors[::2])
        if ladder.middle is not None
    ]
    return {
        f"{model}, budget {budget}, depth {depth}{_above(floor)}": TreeDraft(
            getattr(ladder, model),
            budget=budget,
            depth=depth,
            floor=floor,
            match=ladder.match(model, sampler),
        )
        for model, budget, depth, floor in settings
    }


def staged(ladder: Ladder, sampler: Sampler, best: Mapping[str, TreeDraft]) -> Drafts:
    """Trees fed by a scout, alone and beside a chain of copies that the target verifies in the same
    pass.

    best    trees to build on, by name
    """
    copies = MaxGram(None, 4, least=2)
    scouts: dict[str, Draft] = {"Max-Gram scout": copies}
    if ladder.katz is not None:
        small, large = (scout(ladder, sampler, "draft", budget, 5) for budget in (4, 8))
        scouts = {
            "n-gram scout of 4": small,
            "n-gram scout of 8": large,
            "n-gram scout of 4 and copies": MergedDraft((copies, small)),
        }
    found: dict[str, Draft] = {}
    for (tree_name, tree), (name, guide) in product(best.items(), scouts.items()):
        alone = StagedTree(tree, guide, guided=1)
        found[f"tree of {tree_name}; {name}"] = alone
        for length in (3, 8):
            found[f"tree of {tree_name}; {name}; beside Max-Gram, {length} tokens"] = MergedDraft(
                (MaxGram(None, length, least=2), alone)
            )
    return found


def cascades(ladder: Ladder, sampler: Sampler, best: Mapping[str, TreeDraft]) -> Drafts:
    """K matrices over Max-Gram, as chains and combs; and the best trees with tails of copies, or
    with copies in their place where there are any.
    """
    copies = MaxGram(None, 4)
    found: dict[str, Draft] = {}
    for name, matrix, width in product(_guessers(ladder), MATRICES, (1, 3)):
        if name == "draft" or width == 1:
            options = {"width": width, "match": ladder.match(name, sampler)}
            found[f"{name}, Max-Gram: {format_matrix(matrix)}{_comb(width)}"] = from_matrix(
                (getattr(ladder, name), copies), matrix, **options
            )
    for matrix in DEEPER if ladder.middle is not None else ():
        found[f"middle, draft, Max-Gram: {format_matrix(matrix)}"] = from_matrix(
            (ladder.middle, ladder.draft, copies), matrix
        )
    for (tree_name, tree), length, least in product(best.items(), (4, 8), (2, 3)):
        found[f"Max-Gram, {length} tokens after {least} or more, else tree of {tree_name}"] = (
            FirstDraft((MaxGram(None, length, least=least), tree), 2)
        )
    for (tree_name, tree), length in product(best.items(), (2, 4)):
        found[f"tree of {tree_name}, then {length} tokens of Max-Gram"] = Relay(
            (tree, MaxGram(None, length)), (1, tree.depth + length - 1)
        )
    return found


def scout(ladder: Ladder, sampler: Sampler, obeyed: str, budget: int, depth: int) -> NgramDraft:
    """The n-gram table as a guesser of what another model takes."""
    match = ladder.match("n-gram", sampler, obeyed=obeyed)
    return NgramDraft(
        ladder.katz,
        budget=budget,
        depth=depth,
        match=match,
        counted_at=ladder.card["katz"]["temperature"],
    )


def _guessers(ladder: Ladder) -> Sequence[str]:
    return ("draft", "middle") if ladder.middle is not None else ("draft",)


def _above(floor: float) -> str:
    return f", floor {floor:g}" if floor else ""


def _comb(width: int) -> str:
    return f", combs of {width}" if width > 1 else ""


def drafts(
    ladder: Ladder, sampler: Sampler, method: str, best: Mapping[str, TreeDraft] | None = None
) -> Drafts:
    """The grid of one method by setting; "autoregressive" is a grid of one.

    best    trees that staged drafts and tails are built on; None is all

    Raises ValueError for a method that is not ours.
    """
    if method == AUTOREGRESSIVE:
        return {PLAIN: NoDraft()}
    if method not in OURS:
        raise ValueError(f"our methods are {AUTOREGRESSIVE}, {', '.join(OURS)}, got {method!r}")
    if method in ("staged", "cascade"):
        best = trees(ladder, sampler) if best is None else best
        return (
            staged(ladder, sampler, best) if method == "staged" else cascades(ladder, sampler, best)
        )
    return {"n-gram": ngrams, "chain": chains, "tree": trees}[method](ladder, sampler)
