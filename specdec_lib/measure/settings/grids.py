"""The settings of each method that race: `specdec bench` tunes over all of them, `specdec compare`
takes a handful. Those of a middle model or an n-gram table need a ladder that has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.cascade.matrix import format_matrix
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.contenders import AUTOREGRESSIVE, TOKEN_BY_TOKEN
from specdec_lib.measure.settings.staged import scout
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.workload import Ladder

Drafts = Mapping[str, Draft]
ON_TREES = ("staged", "copies first")  # built on the best trees
TREES = ((2, 2), (3, 3), (4, 4), (6, 4), (8, 4), (8, 6), (12, 6), (16, 6))  # budget and depth
# of the middle model, which is right more often and costs twice as much
WISER = ((3, 3), (4, 4), (6, 5), (8, 6))
FLOORS = (0.0, 0.05, 0.15)
CHAINS = ((1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (6, 0.1), (8, 0.3))  # length and floor
SIZES = ((1, 4, 4), (1, 8, 4), (2, 4, 4), (1, 0, 4), (2, 0, 8), (3, 4, 4), (1, 12, 8))
MATRICES = tuple(((to_target, copies), (0, reviewed)) for to_target, copies, reviewed in SIZES)
DEEPER = (
    ((1, 1, 4), (0, 1, 4), (0, 0, 4)),
    ((1, 0, 4), (0, 1, 4), (0, 0, 4)),
    ((2, 0, 8), (0, 2, 4), (0, 0, 4)),
)


def with_int8_drafts(ladder: Ladder) -> Ladder:
    """The same ladder with quicker drafts, in the int8 edition where the runtime knows it."""
    int8 = {
        name: FastModel(model.model, model.name, edition="int8")
        for name, model in _guessers(ladder).items()
        if isinstance(model, FastModel) and model.edition == "exact"
    }
    return replace(ladder, **int8)


def drafts(
    ladder: Ladder, sampler: Sampler, method: str, built_on: Sequence[str] = ()
) -> Mapping[str, Draft]:
    """The grid of one method by setting; "autoregressive" is a grid of one.

    built_on    names of trees that staged drafts and tails are built on; without any, all are

    Raises ValueError for another method.
    """
    if method == AUTOREGRESSIVE:
        return {TOKEN_BY_TOKEN: NoDraft()}
    if method not in MAKERS:
        known = ", ".join((AUTOREGRESSIVE, *MAKERS))
        raise ValueError(f"our methods are {known}, got {method!r}")
    if method not in ON_TREES:
        return MAKERS[method](ladder, sampler)
    every = trees(ladder, sampler)
    return MAKERS[method](ladder, sampler, {name: every[name] for name in built_on or every})


def trees(ladder: Ladder, sampler: Sampler) -> dict[str, TreeDraft]:
    """Best-first trees of the draft, and fewer of the middle model."""
    shapes = {"draft": product(TREES, FLOORS), "middle": product(WISER, FLOORS[::2])}
    found = {}
    for name, model in _guessers(ladder).items():
        match = ladder.match(name, sampler)
        for (budget, depth), floor in shapes[name]:
            tree = TreeDraft(model, budget=budget, depth=depth, floor=floor, match=match)
            found[f"{name}, budget {budget}, depth {depth}{_above(floor)}"] = tree
    return found


def _ngrams(ladder: Ladder, sampler: Sampler) -> Drafts:
    """No network but the target: copies of the text so far, the n-gram table, both in one tree."""
    found: dict[str, Draft] = {
        f"Max-Gram, {length} tokens{after}": MaxGram(None, length, least=least)
        for lengths, after, least in (((2, 4, 8, 16), "", 1), ((4, 8), " after 2 or more", 2))
        for length in lengths
    }
    if ladder.katz is None:
        return found
    for size in (2, 4, 8):
        name = f"n-gram tree of {size}"
        found[name] = scout(ladder, sampler, obeyed="target", budget=size, depth=4)
    for size, length in ((2, 4), (4, 4), (4, 8)):
        both = (MaxGram(None, length, least=2), found[f"n-gram tree of {size}"])
        found[f"n-gram tree of {size} and Max-Gram, {length} tokens"] = MergedDraft(both)
    return found


def _chains(ladder: Ladder, sampler: Sampler) -> Drafts:
    return {
        f"{name}, {length} tokens{_above(floor)}": ChainDraft(
            model, length, floor=floor, match=ladder.match(name, sampler)
        )
        for name, model in _guessers(ladder).items()
        for length, floor in CHAINS
    }


def _staged(ladder: Ladder, sampler: Sampler, best: Mapping[str, TreeDraft]) -> Drafts:
    """Trees fed by a scout, alone and beside a chain of copies."""
    found: dict[str, Draft] = {}
    for (tree_name, tree), (name, guide) in product(best.items(), _scouts(ladder, sampler).items()):
        label, alone = f"tree of {tree_name}; {name}", StagedTree(tree, guide, guided=1)
        found[label] = alone
        for length in (3, 8):
            beside = MergedDraft((MaxGram(None, length, least=2), alone))
            found[f"{label}; beside Max-Gram, {length} tokens"] = beside
    return found


def _scouts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    copies = MaxGram(None, 4, least=2)
    if ladder.katz is None:
        return {"Max-Gram scout": copies}
    one, two, four = (scout(ladder, sampler, budget=size, depth=5) for size in (1, 2, 4))
    return {
        "Max-Gram scout": copies,
        "n-gram scout of 1": one,
        "n-gram scout of 2": two,
        "n-gram scout of 4": four,
        "n-gram scout of 2 and copies": MergedDraft((copies, two)),
    }


def _staged_chains(ladder: Ladder, sampler: Sampler) -> Drafts:
    """The paper's second stage taken literally: a chain that a model decodes speculatively."""
    models, guides, found = _guessers(ladder), _scouts(ladder, sampler), {}
    for (name, model), length, guide in product(models.items(), (2, 3, 4, 6), guides):
        chain = StagedChain(model, guides[guide], length, match=ladder.match(name, sampler))
        found[f"{name}, {length} tokens; {guide}"] = chain
    return found


def _cascades(ladder: Ladder, sampler: Sampler, *, width: int = 1) -> Drafts:
    """K matrices whose models review what Max-Gram, or a smaller model over it, guesses."""
    stacks = [({name: model}, MATRICES) for name, model in _guessers(ladder).items()]
    if ladder.middle is not None:
        stacks.append(({"middle": ladder.middle, "draft": ladder.draft}, DEEPER))
    comb, copies = f", combs of {width}" if width > 1 else "", MaxGram(None, 4)
    found: dict[str, Draft] = {}
    for models, matrices in stacks:
        options = {"width": width, "match": ladder.match(next(iter(models)), sampler)}
        for matrix in matrices:
            name = f"{', '.join(models)}, Max-Gram: {format_matrix(matrix)}{comb}"
            found[name] = from_matrix((*models.values(), copies), matrix, **options)
    return found


def _copies_first(ladder: Ladder, sampler: Sampler, best: Mapping[str, TreeDraft]) -> Drafts:
    """Copies first, and one of the best trees where there are none; or a tree, then copies."""
    found: dict[str, Draft] = {}
    for (name, tree), length, least in product(best.items(), (4, 8), (2, 3)):
        first = FirstDraft((MaxGram(None, length, least=least), tree), 2)
        found[f"Max-Gram, {length} tokens after {least} or more, else tree of {name}"] = first
    for (name, tree), length in product(best.items(), (2, 4)):
        relay = Relay((tree, MaxGram(None, length)), (1, tree.depth + length - 1))
        found[f"tree of {name}, then {length} tokens of Max-Gram"] = relay
    return found


def _guessers(ladder: Ladder) -> dict[str, CachedModel | FastModel]:
    found = {"draft": ladder.draft, "middle": ladder.middle}
    return {name: model for name, model in found.items() if model is not None}


def _above(floor: float) -> str:
    return f", floor {floor:g}" if floor else ""


MAKERS = {
    "n-gram": _ngrams,
    "chain": _chains,
    "tree": trees,
    "staged chain": _staged_chains,
    "staged": _staged,
    "cascade": _cascades,
    "comb": partial(_cascades, width=3),
    "copies first": _copies_first,
}
OURS = tuple(MAKERS)
