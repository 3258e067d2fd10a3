"""Which methods `specdec measure ideas` races: each idea of both papers by itself, with one draft
model. A chain and a tree, without and with an n-gram scout, without and with copies; and
speculative decoding beside the cascades.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.cascade.matrix import Matrix
from specdec_lib.drafts.combined import FirstDraft, NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.settings.ladder_drafts import COPIES, LadderDrafts, copies
from specdec_lib.measure.settings.names import (
    AUTOREGRESSIVE,
    TOKEN_BY_TOKEN,
    cascade_name,
    chain_name,
    tree_name,
)
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Ladder

CHAIN = "chain"
TREE = "tree"
SPECULATIVE = "speculative decoding"
VERTICAL = "vertical cascade"
HORIZONTAL = "horizontal cascade"
BOTH = "vertical and horizontal"
COMB = "comb of both"
SCOUT = ", scout"  # behind the name of a shape: it is fed by one
COPIED = ", copies"  # … and stands behind copies
FACTORIAL = tuple(
    shape + scout + copied
    for shape, scout, copied in product((CHAIN, TREE), ("", SCOUT), ("", COPIED))
)
METHODS = (AUTOREGRESSIVE, *FACTORIAL, SPECULATIVE, VERTICAL, HORIZONTAL, BOTH, COMB)
# of each, 24 candidates: six shapes, least scores or none, and two scouts; six lengths and four
# floors; or four numbers of the model's own tokens, three of Max-Gram's and two of its ends
LENGTHS = (1, 2, 3, 4, 5, 8)
TREES = ((2, 2), (3, 3), (4, 3), (6, 4), (8, 5), (12, 6))  # budget and depth
SCOUTS = (2, 6)  # guesses of the n-gram table
CHAIN_FLOORS = (0.0, 0.1)  # it has no guess of a lower score
TREE_FLOORS = ((0.0, 0.0), (0.1, 0.3))  # of its guesses, and of those with children
SPECULATIVE_FLOORS = (0.0, 0.1, 0.3, 0.5)
OWN = (1, 2, 3, 5)  # tokens that the model contributes to a cascade
MORE = (2, 4, 8)  # tokens that Max-Gram adds behind them
LEAST = 2  # equal tokens before a copy, and copies that are worth a round
WIDTH = 3  # of a comb

Candidate = dict[str, Setting]
"""A setting for each of the methods that are tuned together."""


def idea_settings(ladder: Ladder, sampler: Sampler, model: str) -> dict[str, list[Candidate]]:
    """By group of methods the candidates among which the clock chooses: the four chains have one
    length and scout, the four trees one shape and scout, every other method is by itself.

    model    of the ladder, which drafts: "draft" or "middle"

    Raises ValueError for another one: no scout saves a pass of a draft that reads its target.
    """
    if model not in ("draft", "middle"):
        raise ValueError(f'the ideas are raced with the model "draft" or "middle", got {model!r}')
    drafts = LadderDrafts(ladder, sampler)
    plain: dict[str, tuple[str, Draft]] = {AUTOREGRESSIVE: (TOKEN_BY_TOKEN, NoDraft())}
    grids: dict[str, Iterable[dict[str, tuple[str, Draft]]]] = {
        AUTOREGRESSIVE: [plain],
        CHAIN: _chains(drafts, model),
        TREE: _trees(drafts, model),
        SPECULATIVE: (
            {SPECULATIVE: (chain_name(model, *size), _chain(drafts, model, *size))}
            for size in product(LENGTHS, SPECULATIVE_FLOORS)
        ),
        VERTICAL: _cascades(drafts, model, VERTICAL, lambda own, more: ((own, 0), (0, more))),
        HORIZONTAL: _cascades(drafts, model, HORIZONTAL, lambda own, more: ((own, more), (0, 0))),
        BOTH: _cascades(drafts, model, BOTH, lambda own, more: ((own, more), (0, 4))),
        COMB: _cascades(drafts, model, COMB, lambda own, more: ((own, more), (0, 4)), WIDTH),
    }
    return {
        group: [
            {method: Setting(*named, sampler, method=method) for method, named in one.items()}
            for one in grid
        ]
        for group, grid in grids.items()
    }


def chosen_settings(
    candidates: Mapping[str, list[Candidate]], chosen: Mapping[str, str]
) -> list[Setting]:
    """Of `idea_settings`, the one of each method in `chosen` that is called so, in its order."""
    every = {
        (method, one.name): one
        for grid in candidates.values()
        for candidate in grid
        for method, one in candidate.items()
    }
    return [every[method, name] for method, name in chosen.items()]


def _chain(drafts: LadderDrafts, model: str, length: int, floor: float = 0.0) -> ChainDraft:
    return drafts.chain(length, model=model, floor=floor)


def _chains(drafts: LadderDrafts, model: str) -> Iterator[dict[str, tuple[str, Draft]]]:
    for length, floor in product(LENGTHS, CHAIN_FLOORS):
        shape = _chain(drafts, model, length, floor)
        yield from _factors(drafts, model, CHAIN, chain_name(model, length, floor), shape, length)


def _trees(drafts: LadderDrafts, model: str) -> Iterator[dict[str, tuple[str, Draft]]]:
    for size, least in product(TREES, TREE_FLOORS):
        floor, deepen = least
        shape = drafts.tree(*size, model=model, floor=floor, deepen=deepen)
        name = tree_name(model, *size, *least)
        yield from _factors(drafts, model, TREE, name, shape, size[0])


def _factors(
    drafts: LadderDrafts,
    model: str,
    method: str,
    name: str,
    shape: ChainDraft | TreeDraft,
    budget: int,
) -> Iterator[dict[str, tuple[str, Draft]]]:
    """A shape alone and fed by a scout, and behind copies of as many tokens; per scout."""
    for guesses in SCOUTS:
        fed = StagedTree(shape, drafts.scout(guesses), guided=1)
        scouted = f"{name}; n-gram scout of {guesses}"
        first = f"copies of up to {budget}, else "
        yield {
            method: (name, shape),
            method + SCOUT: (scouted, fed),
            method + COPIED: (first + name, _behind_copies(shape, budget)),
            method + SCOUT + COPIED: (first + scouted, _behind_copies(fed, budget)),
        }


def _behind_copies(draft: Draft, length: int) -> FirstDraft:
    return FirstDraft((copies(length, LEAST), draft), LEAST)


def _cascades(
    drafts: LadderDrafts,
    model: str,
    method: str,
    matrix: Callable[[int, int], Matrix],
    width: int = 1,
) -> Iterator[dict[str, tuple[str, Draft]]]:
    """A model above Max-Gram, which copies alone, or goes on with bigrams as the paper's does."""
    ends = {"": COPIES, ", with bigrams": drafts.ladder.max_gram}
    for own, more, (said, last) in product(OWN, MORE, ends.items()):
        entries = matrix(own, more)
        name = cascade_name((model,), entries, width) + said
        yield {method: (name, drafts.cascade((model,), entries, last=last, width=width))}
