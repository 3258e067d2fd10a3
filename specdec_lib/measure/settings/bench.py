"""Which drafts `specdec bench` and `specdec plan` choose from: a grid of settings per method. The
bench tunes over all of them, a plan tries some of each; `specdec compare` names a handful.

Drafts of a middle model or an n-gram table are there where the ladder has one.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import Relay
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.names import (
    AUTOREGRESSIVE,
    TOKEN_BY_TOKEN,
    cascade_name,
    chain_name,
    copies_name,
    tree_name,
)
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

OURS = (
    "n-gram",
    "chain",
    "tree",
    "staged chain",
    "staged",
    "cascade",
    "comb",
    "copies first",
)
CHAINS = ((1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (6, 0.1), (8, 0.3))  # length and floor
STAGED_CHAINS = (2, 3, 4, 6)  # lengths
ONE_LAYER = ((2, 2), (3, 3), (4, 4), (6, 4), (8, 4), (8, 6), (12, 6), (16, 6))
TREES = {  # budget and depth; the middle model is right more often and costs twice as much
    "draft": ONE_LAYER,
    "middle": ((3, 3), (4, 4), (6, 5), (8, 6)),
    "reading": ONE_LAYER,
}
FLOORS = {"draft": (0.0, 0.05, 0.15), "middle": (0.0, 0.15), "reading": (0.0, 0.05, 0.15)}
COPIES = ((2, 1), (4, 1), (8, 1), (16, 1), (4, 2), (8, 2))  # length, and equal tokens before it
NGRAM_TREES = (2, 4, 8)  # budgets
NGRAMS_AND_COPIES = ((2, 4), (4, 4), (4, 8))  # budget, and length of the copies
BESIDE_STAGED = (3, 8)  # lengths of copies
FIRST_COPIES = ((4, 2), (4, 3), (8, 2), (8, 3))  # length, and equal tokens before it
COPIES_AFTER = (2, 4)  # lengths behind a tree
COPIES_BESIDE = (8,)  # lengths beside a tree
ABOVE_MAX_GRAM = (  # K matrices of one model and Max-Gram
    ((1, 4), (0, 4)),
    ((1, 8), (0, 4)),
    ((2, 4), (0, 4)),
    ((1, 0), (0, 4)),
    ((2, 0), (0, 8)),
    ((3, 4), (0, 4)),
    ((1, 12), (0, 8)),
)
OF_THREE = (  # of both models and Max-Gram
    ((1, 1, 4), (0, 1, 4), (0, 0, 4)),
    ((1, 0, 4), (0, 1, 4), (0, 0, 4)),
    ((2, 0, 8), (0, 2, 4), (0, 0, 4)),
)
COMB = 3  # children per node

Grid = dict[str, Draft]
Trees = Mapping[str, TreeDraft]


def bench_settings(
    ladder: Ladder, sampler: Sampler, method: str, built_on: Sequence[str] = ()
) -> list[Setting]:
    """The grid of one method; that of "autoregressive" is one setting.

    built_on    names of trees that those of `ON_TREES` are built on; without any, all are

    Raises ValueError for another method.
    """
    if method not in (AUTOREGRESSIVE, *OURS):
        known = ", ".join((AUTOREGRESSIVE, *OURS))
        raise ValueError(f"our methods are {known}, got {method!r}")
    drafts = LadderDrafts(ladder, sampler)
    if method in ON_TREES:
        every = _trees(drafts)
        grid = GRIDS_ON_TREES[method](drafts, {name: every[name] for name in built_on or every})
    else:
        grid = GRIDS[method](drafts)
    return [Setting(name, draft, sampler, method=method) for name, draft in grid.items()]


def _ngrams(drafts: LadderDrafts) -> Grid:
    """No network but the target: copies of the text so far, the n-gram table, both in one tree."""
    found: Grid = {copies_name(length, least): copies(length, least) for length, least in COPIES}
    if drafts.ladder.katz is None:
        return found
    trees = {size: drafts.scout(size, 4, obeyed="target") for size in NGRAM_TREES}
    found |= {f"n-gram tree of {size}": tree for size, tree in trees.items()}
    for size, length in NGRAMS_AND_COPIES:
        both = MergedDraft((copies(length, 2), trees[size]))
        found[f"n-gram tree of {size} and Max-Gram, {length} tokens"] = both
    return found


def _chains(drafts: LadderDrafts) -> Grid:
    return {
        chain_name(model, length, floor): drafts.chain(length, model=model, floor=floor)
        for model in drafts.models
        for length, floor in CHAINS
    }


def _trees(drafts: LadderDrafts) -> dict[str, TreeDraft]:
    return {
        tree_name(model, budget, depth, floor): drafts.tree(budget, depth, model=model, floor=floor)
        for model in drafts.models
        for (budget, depth), floor in product(TREES[model], FLOORS[model])
    }


def _scouts(drafts: LadderDrafts) -> Grid:
    found: Grid = {"Max-Gram scout": copies(4, 2)}
    if drafts.ladder.katz is None:
        return found
    found |= {f"n-gram scout of {size}": drafts.scout(size, 5) for size in (1, 2, 4)}
    both = MergedDraft((found["Max-Gram scout"], found["n-gram scout of 2"]))
    return found | {"n-gram scout of 2 and copies": both}


def _staged_chains(drafts: LadderDrafts) -> Grid:
    """The paper's second stage taken literally: a chain that a model decodes speculatively; one
    that reads its target goes level by level, so that no scout can save it a pass.
    """
    return {
        f"{chain_name(model, length)}; {name}": drafts.staged_chain(length, scout, model=model)
        for model in drafts.models
        if model != "reading"
        for length in STAGED_CHAINS
        for name, scout in _scouts(drafts).items()
    }


def _cascades(drafts: LadderDrafts, *, width: int = 1) -> Grid:
    """Models review what Max-Gram guesses, or what a smaller model over it does."""
    stacks: list[tuple[tuple[str, ...], Sequence]] = [
        ((model,), ABOVE_MAX_GRAM) for model in drafts.models
    ]
    if "middle" in drafts.models:
        below = [model for model in drafts.models if model != "middle"]
        stacks += [(("middle", model), OF_THREE) for model in below]
    return {
        cascade_name(models, matrix, width): drafts.cascade(models, matrix, width=width)
        for models, matrices in stacks
        for matrix in matrices
    }


def _combs(drafts: LadderDrafts) -> Grid:
    return _cascades(drafts, width=COMB)


def _staged(drafts: LadderDrafts, trees: Trees) -> Grid:
    """Trees fed by a scout, alone and beside a chain of copies."""
    found: Grid = {}
    fed = _fed_trees(drafts, trees).items()
    for (tree_label, tree), (name, scout) in product(fed, _scouts(drafts).items()):
        label = f"tree of {tree_label}; {name}"
        alone = StagedTree(tree, scout, guided=1)
        found[label] = alone
        for length in BESIDE_STAGED:
            beside = MergedDraft((copies(length, 2), alone))
            found[f"{label}; beside Max-Gram, {length} tokens"] = beside
    return found


def _fed_trees(drafts: LadderDrafts, trees: Trees) -> dict[str, TreeDraft]:
    """The same trees, but of the plain draft where they are of one that goes level by level, which
    no scout can save a pass.
    """
    found = {}
    for name, tree in trees.items():
        if tree.by_level:
            assert tree.budget is not None  # as all trees of a grid have
            plain = tree_name("draft", tree.budget, tree.depth, tree.floor)
            found[plain] = drafts.tree(tree.budget, tree.depth, floor=tree.floor)
        else:
            found[name] = tree
    return found


def _copies_first(drafts: LadderDrafts, trees: Trees) -> Grid:
    """Copies first, and a tree where there are none; a tree, then copies; or both side by side."""
    found: Grid = {}
    for (name, tree), size in product(trees.items(), FIRST_COPIES):
        found[f"{copies_name(*size)}, else tree of {name}"] = FirstDraft((copies(*size), tree), 2)
    for (name, tree), length in product(trees.items(), COPIES_AFTER):
        relay = Relay((tree, copies(length)), (1, tree.depth + length - 1))
        found[f"tree of {name}, then {length} tokens of Max-Gram"] = relay
    for (name, tree), length in product(trees.items(), COPIES_BESIDE):
        beside = MergedDraft((copies(length, 2), tree))
        found[f"tree of {name}, beside Max-Gram, {length} tokens"] = beside
    return found


GRIDS: dict[str, Callable[[LadderDrafts], Mapping[str, Draft]]] = {
    AUTOREGRESSIVE: lambda drafts: {TOKEN_BY_TOKEN: NoDraft()},
    "n-gram": _ngrams,
    "chain": _chains,
    "tree": _trees,
    "staged chain": _staged_chains,
    "cascade": _cascades,
    "comb": _combs,
}
GRIDS_ON_TREES = {"staged": _staged, "copies first": _copies_first}
ON_TREES = tuple(GRIDS_ON_TREES)  # built on the best trees
