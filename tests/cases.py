"""Drafts of every kind over small random models: what the tests of exactness go through."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from fakes import PROMPT, T1, distance, table_model

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.core.verify import reject
from specdec_lib.drafts.cascade import Relay, Reviewed, from_matrix
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.earlier import EarlierAnswers
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.paying import FirstPaying
from specdec_lib.drafts.planned import SITUATIONS, Planned
from specdec_lib.drafts.recycling import TokenRecycling
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.table import TableModel, joint_distribution

ODD = Shape((-1, 0, 1, 0))  # not numbered level by level
BY_GAP = MatchTable((0.6, 0.2), "by gap", (1.0,), ((0.4, 0.3), (0.9, 0.05)))
COPIES = MaxGram(None, 2)
SEEDS = {"target": 3, "draft": 4, "scout": 5, "last": 6, "big": 4, "middle": 5, "small": 6}
LENIENCES = (1.0, 2.0, 5.0)

Models = Callable[[str], TableModel]
Make = Callable[[Models], Draft]


def models(words: int, possible: int | None = None) -> Models:
    """Random models by name, of so many words of which so many are possible."""
    return functools.cache(
        lambda name: table_model(words, SEEDS[name], support=possible, name=name)
    )


@dataclass(frozen=True)
class Case:
    """A draft, and the size of its enumeration.

    possible    how many words are possible at T = 1; None for all
    length      tokens whose joint distribution is compared
    """

    make: Make
    words: int = 3
    possible: int | None = None
    length: int = 3

    def models(self, sampler: Sampler) -> Models:
        return models(self.words, self.possible if sampler == T1 else None)


def chain(length: int, name: str = "draft", **options: object) -> Make:
    return lambda model: ChainDraft(model(name), length, **options)


def tree(name: str = "draft", **options: object) -> Make:
    return lambda model: TreeDraft(model(name), **options)


ONE_STAGE = {
    "chain": Case(chain(2, siblings="iid"), 4),
    "with replacement": Case(tree(widths=(2, 1), siblings="iid"), 4, 3),
    "without replacement": Case(tree(widths=(2, 1), siblings="distinct"), 4, 3),
    "point mass": Case(tree(widths=(2, 1), siblings="top"), 4),
    "best slots with replacement": Case(tree(budget=3, depth=2, siblings="iid")),
    "best slots without replacement": Case(tree(budget=3, depth=2, siblings="distinct")),
    "without replacement, deeper where likely": Case(
        tree(widths=(2, 1), siblings="distinct", deepen=0.3), 4, 3
    ),
    "best-first point mass": Case(tree(budget=3, depth=2, siblings="top"), 4),
    "2×2 with replacement": Case(tree(widths=(2, 2), siblings="iid"), 3, 2),
    "2×2 without replacement": Case(tree(widths=(2, 2), siblings="distinct"), 4, 3),
    "fixed shape with replacement": Case(tree(shape=ODD, siblings="iid"), 3, 2),
    "fixed shape without replacement": Case(tree(shape=ODD, siblings="distinct"), 4, 3),
    "fixed shape point mass": Case(tree(shape=ODD, siblings="top"), 4),
    "a copy, else a chain": Case(
        lambda model: FirstDraft((COPIES, ChainDraft(model("draft"), 2, siblings="iid")))
    ),
}


def staged_chain(scout: Make, length: int = 2, name: str = "draft", siblings: str = "iid") -> Make:
    return lambda model: StagedChain(model(name), scout(model), length, siblings=siblings)


def staged_tree(siblings: str, **size: object) -> Make:
    scout = tree("scout", widths=(2, 1), siblings="top")
    return lambda model: StagedTree(tree(siblings=siblings, **size)(model), scout(model))


SCOUTS = {
    "chain": chain(1, "scout", siblings="iid"),
    "tree without replacement": tree("scout", widths=(2,), siblings="distinct"),
    "point mass": tree("scout", widths=(2,), siblings="top"),
    "staged chain": staged_chain(chain(1, "last", siblings="iid"), 1, "scout"),
}
STAGED = {f"staged chain, {name}": Case(staged_chain(one), 3, 2) for name, one in SCOUTS.items()}
STAGED |= {
    f"staged tree, {siblings}, {size}": Case(staged_tree(siblings, **size), 3, 2)
    for siblings in ("iid", "distinct", "top")
    for size in ({"widths": (2, 1)}, {"budget": 3, "depth": 2})
}


def cascades(model: Models, lenient: float, siblings: str) -> dict[str, Draft]:
    """One of each kind over three drafters, copies at the end."""
    big, middle, small = map(model, ("big", "middle", "small"))
    review = {"lenience": lenient, "siblings": siblings}
    drawn = ChainDraft(small, 1, siblings=siblings)
    vertical, copied = Reviewed(middle, drawn, **review), Relay((drawn, COPIES), (1, 2))
    return {
        "vertical": vertical,
        "vertical, all lenient": Reviewed(middle, copied, exempt_max_gram=False, **review),
        "horizontal": Relay((Reviewed(middle, NoDraft(), **review), drawn, COPIES), (1, 1, 1)),
        "mixed": from_matrix((middle, small, COPIES), ((1, 1, 1), (0, 1, 0), (0, 0, 1)), **review),
        "three levels": Reviewed(big, Relay((vertical, COPIES), (1, 1)), **review),
        "a comb": Relay((Reviewed(middle, drawn, width=2, **review), COPIES), (1, 1)),
    }


def cascade(kind: str, lenient: float, siblings: str) -> Make:
    return lambda model: cascades(model, lenient, siblings)[kind]


KINDS = tuple(cascades(models(3), 1.0, "iid"))
CASCADES = {
    f"{kind}, lenience {lenient:g}": Case(cascade(kind, lenient, "iid"), 3, 2, 2)
    for kind in KINDS
    for lenient in LENIENCES
}
REJECTED = ONE_STAGE | STAGED | CASCADES
# larger ones take minutes where every word is possible
COSTLY = ("staged chain, staged chain", "mixed", "a comb")
NESTED = STAGED | CASCADES
ONE_ROUND = {name: case for name, case in NESTED.items() if not name.startswith(COSTLY)}


def flat(*values: float) -> tuple[tuple[float, ...], ...]:
    """A row per value, the same in every situation."""
    return tuple((one,) * len(SITUATIONS) for one in values)


def planned(*parts: Draft, tokens=None, seconds=None, price=1.0) -> Planned:
    """Parts of which another is worth most in every other situation, while all goes as expected."""
    turns = range(len(parts))
    rows = tuple(tuple(1.1 + (at + one) % len(parts) for at in SITUATIONS) for one in turns)
    return Planned(parts, tokens or rows, seconds or flat(*[1.0] * len(parts)), price)


def alternating(model: Models) -> Planned:
    draft = model("draft")
    return planned(NoDraft(), COPIES, ChainDraft(draft, 2), TreeDraft(draft, widths=(2, 1)))


def flipping(model: Models, siblings: str, kind: type[Planned] = Planned) -> Planned:
    """Two drafts of which the one that fares worse for now stands back."""
    parts = tuple(ChainDraft(model(name), 1, siblings=siblings) for name in ("draft", "scout"))
    return kind(parts, flat(1.6, 1.55), flat(1.0, 1.0), 1.0, trust=0.5)


def switching(model: Models, siblings: str, kind: type[FirstPaying] = FirstPaying) -> FirstPaying:
    """A draft that is off after a guess that was rejected, and another one in its place."""
    parts = tuple(ChainDraft(model(name), 1, siblings=siblings) for name in ("draft", "scout"))
    return kind(parts, (1.05, 1.0), trust=0.05)


def paying(model: Models) -> FirstPaying:
    """Copies, else a drawn chain, each off for a while after guesses that were rejected; copies are
    watched while they are off.
    """
    drawn = ChainDraft(model("draft"), 1, siblings="iid")
    return FirstPaying((MaxGram(None, 2, least=1), drawn), (1.3, 1.05), trust=0.05)


RECYCLED = partial(TokenRecycling, 2, 2, siblings="top")
LEARNING: dict[str, Callable[[], Draft]] = {
    "recycled": lambda: TokenRecycling(3, 2, siblings="top"),
    "earlier answers": lambda: EarlierAnswers(2, 1),
    "both, beside copies": lambda: MergedDraft((COPIES, RECYCLED(), EarlierAnswers(2, 1))),
    "copies, else recycled": lambda: FirstDraft((MaxGram(None, 2, least=2), RECYCLED())),
}
WHOLE = {f"chain, {one}": Case(chain(1, siblings=one)) for one in ("iid", "distinct", "top")}
WHOLE |= {"staged chain": Case(staged_chain(SCOUTS["chain"]), 3, 2, 2)}
WHOLE |= {name: Case(lambda _, make=make: make(), length=2) for name, make in LEARNING.items()}
WHOLE |= {
    f"planned, {siblings}": Case(partial(flipping, siblings=siblings), words=2, length=4)
    for siblings in ("top", "iid")
}
WHOLE |= {
    f"off-switch, {siblings}": Case(partial(switching, siblings=siblings), words=2, length=4)
    for siblings in ("iid", "top")
}
WHOLE |= {"off-switches, copies first": Case(paying, words=2, length=4)}


def whole_deviation(case: Case, sampler: Sampler) -> tuple[float, set[str]]:
    """How far tokens lie from the target's distribution if all rounds are enumerated together, each
    time with a fresh draft that has decoded another prompt before; and who guessed.
    """
    model, guessed = case.models(sampler), set()
    target = model("target")

    def run(chance: Chance) -> tuple[int, ...]:
        draft = case.make(model)
        decode(target, draft, PROMPT[::-1], Chance(5, T1), max_new_tokens=9)
        made = decode(target, draft, PROMPT, chance, max_new_tokens=case.length, rule=reject)
        guessed.update(name for one in made.rounds for name in one.tree.sources[1:])
        return made.tokens

    wanted = joint_distribution(target, PROMPT, sampler, case.length)
    return distance(every_outcome(run, sampler), wanted), guessed


def merged(model: Models) -> Draft:
    """Copies, an n-gram tree and a model's tree in one, merged twice."""
    table = Katz.fit([np.random.default_rng(0).integers(3, size=300)], 3)
    ngrams = NgramDraft(table, budget=6, depth=3, match=BY_GAP, counted_at=1.5)
    by_gap = TreeDraft(model("draft"), budget=6, depth=3, match=BY_GAP)
    return MergedDraft((COPIES, MergedDraft((ngrams, by_gap))))


RANKED: dict[str, Make] = {  # siblings under the shared noise, for `look_up`
    "chain": chain(3),
    "tree": tree(widths=(2, 2)),
    "best tree": tree(budget=4, depth=3),
    "best tree by gap": tree(budget=4, depth=3, match=BY_GAP),
    "best tree that deepens where it is sure": tree(budget=4, depth=3, match=BY_GAP, deepen=0.5),
    "merged": merged,
    "copies, else a tree": lambda model: FirstDraft((COPIES, TreeDraft(model("draft"), budget=3))),
    "three staged trees": lambda model: functools.reduce(
        lambda scout, name: StagedTree(TreeDraft(model(name), budget=4, depth=3), scout),
        ("small", "middle", "draft"),
        COPIES,
    ),
    "three staged chains": staged_chain(
        staged_chain(chain(3, "last"), 3, "scout", "ranked"), 3, siblings="ranked"
    ),
    "a reviewed tree": lambda model: Reviewed(
        model("middle"), TreeDraft(model("small"), widths=(2, 2)), lenience=5.0, width=2
    ),
    "planned": alternating,
    "recycled, by noise": lambda _: TokenRecycling(3, 2),
} | {
    f"{kind}, lenience {lenient:g}": cascade(kind, lenient, "ranked")
    for kind in KINDS
    for lenient in LENIENCES
}
