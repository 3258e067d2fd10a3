"""Anything that guesses how a context goes on: nothing, a chain, a tree."""

import functools
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from specdec_lib.chance import Chance, Sampler, Slots, best
from specdec_lib.context import Context
from specdec_lib.lm import LanguageModel
from specdec_lib.tree import ROOT, MatchTable, TokenTree

SIBLINGS = ("ranked", "top", "iid", "distinct")


@runtime_checkable
class Draft(Protocol):
    """A guesser."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Guess how `context` goes on: a tree rooted at its last token.

        A guess may be bad, it may not be dishonest: where rows are given, each is the law its token really was drawn from, given its
        earlier siblings.
        """
        ...


@dataclass(frozen=True)
class NoDraft:
    """Guesses nothing: with it, the loop is plain autoregressive decoding."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The root alone."""
        return TokenTree.rooted(context)


@dataclass(frozen=True)
class TreeDraft:
    """A tree grown from one model, level by level: each pass scores all nodes that are to have children.

    widths      children per node at depth 0, 1, …: a fixed shape; give this or `budget`
    budget      guesses in all, filled best-first by score
    depth       deepest guess of a tree with a budget
    floor       no guess scores below it, in [0, 1]
    siblings    "ranked": the likeliest under the shared noise (for `look_up`); "top": the likeliest without noise; "iid": independent draws;
                "distinct": draws without replacement. The last two carry rows and are for `reject`; "top" serves both rules.
    match       turns ranks into scores; but at temperature 0 for "ranked", and always for "top", a score is the product of probabilities

    At temperature 0, and for "top", a budget adapts to the context; else scores follow from ranks alone and the shape is the same everywhere.
    A model whose context is full guesses nothing more, and siblings end where the warped law has no more tokens.
    Raises ValueError if the shape is not given in exactly one way or a value is out of range.
    Source: Spector and Ré 2023, section 3.1; best-first by path probability as in Wang et al. 2024 (OPT-Tree).
    """

    model: LanguageModel
    widths: tuple[int, ...] | None = None
    budget: int | None = None
    depth: int = 8
    floor: float = 0.0
    siblings: str = "ranked"
    match: MatchTable = MatchTable()

    def __post_init__(self) -> None:
        if (self.widths is None) == (self.budget is None):
            raise ValueError(f"give widths or a budget, not both: got widths={self.widths}, budget={self.budget}")
        if self.widths is not None and min(self.widths, default=0) < 1:
            raise ValueError(f"widths are at least 1 per depth, and of one depth or more, got {self.widths}")
        if self.budget is not None and (self.budget < 1 or self.depth < 1):
            raise ValueError(f"a tree with a budget has at least 1 guess and depth 1, got budget={self.budget}, depth={self.depth}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"the floor must lie in [0, 1], got {self.floor}")
        if self.siblings not in SIBLINGS:
            raise ValueError(f"siblings are one of {', '.join(SIBLINGS)}, got {self.siblings!r}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A tree of the given shape; at most one pass per depth."""
        tree = TokenTree.rooted(context)
        readable = max(0, self.model.max_positions - len(context) + 1)
        if self.widths is not None:
            return self._widen(tree, context, chance, self.widths[:readable])
        if self.siblings in ("iid", "distinct") or (self.siblings == "ranked" and chance.sampler.temperature > 0):
            return self._fill_slots(tree, context, chance, min(self.depth, readable))
        return self._fill(tree, context, chance, min(self.depth, readable))

    def _widen(self, tree: TokenTree, context: Context, chance: Chance, widths: Sequence[int]) -> TokenTree:
        frontier = [ROOT]
        for width in widths:
            if not frontier:
                break
            logits = self._logits(context, tree, frontier)
            added = [guess for node in frontier for guess in self._guesses(tree, node, logits[node], chance, width)]
            frontier = list(range(len(tree), len(tree) + len(added)))
            tree = self._with(tree, added)
        return tree

    def _fill(self, tree: TokenTree, context: Context, chance: Chance, depth: int) -> TokenTree:
        """Level by level, the best guesses so far: a guess that falls out never comes back, because a child never scores above its parent."""
        for level in range(depth):
            full = tree.guesses == self.budget
            worst = min(tree.scores) if full else -1.0
            frontier = [node for node in range(len(tree)) if tree.depths[node] == level and tree.scores[node] > worst]
            if not frontier:
                break
            logits = self._logits(context, tree, frontier)
            added = [guess for node in frontier for guess in self._guesses(tree, node, logits[node], chance, self.budget) if guess.score > worst]
            tree = self._with(tree, added).truncated(self.budget)
        return tree

    def _fill_slots(self, tree: TokenTree, context: Context, chance: Chance, depth: int) -> TokenTree:
        """Where scores follow from ranks alone, the best slots are chosen first: no drawn token has to be dropped."""
        shape = best_slots(self.match, self.budget, depth, self.floor)
        for level in range(max(shape, default=-1) + 1):
            widths = {node: shape[level].get(tree.slots(node), 0) for node in range(len(tree)) if tree.depths[node] == level}
            frontier = [node for node, width in widths.items() if width]
            if not frontier:
                break
            logits = self._logits(context, tree, frontier)
            added = [guess for node in frontier for guess in self._guesses(tree, node, logits[node], chance, widths[node])]
            tree = self._with(tree, added)
        return tree

    def _logits(self, context: Context, tree: TokenTree, nodes: Sequence[int]) -> dict[int, Tensor]:
        """The model's logits after each of these nodes; others are not read, unless they lie above."""
        part, number = tree.above(nodes)
        rows = self.model.score(context, part)
        return {node: rows[number[node]] for node in nodes}

    def _guesses(self, tree: TokenTree, node: int, logits: Tensor, chance: Chance, width: int) -> list["Guess"]:
        """Up to `width` children for a node, none below the floor."""
        drawn = self._drawn if self.siblings in ("iid", "distinct") else self._chosen
        found = drawn(tree, node, logits, chance, width)
        guesses = [Guess(token, node, tree.scores[node] * min(1.0, factor), row) for token, factor, row in found]
        return [guess for guess in guesses if guess.score >= self.floor]

    def _chosen(self, tree: TokenTree, node: int, logits: Tensor, chance: Chance, width: int) -> list[tuple[int, float, None]]:
        if self.siblings == "ranked" and chance.sampler.temperature > 0:
            tokens, _ = chance.rank(logits, tree.position(node) + 1, width)
            return [(token, self.match.rate(rank), None) for rank, token in enumerate(tokens)]
        law = (Sampler(1.0) if chance.sampler.temperature == 0 else chance.sampler).probs(logits)
        return [(token, factor, None) for token, factor in zip(*best(law, width), strict=True) if factor > 0]

    def _drawn(self, tree: TokenTree, node: int, logits: Tensor, chance: Chance, width: int) -> list[tuple[int, float, Tensor]]:
        law = chance.sampler.probs(logits)
        slots, found = tree.slots(node), []
        for rank in range(width):
            token = chance.draw("sibling", law, tree.root_position, (*slots, rank))
            found.append((token, self.match.rate(rank), law))
            if self.siblings == "distinct":
                law = law.clone()
                law[token] = 0.0
                if not law.sum() > 0:
                    break
                law = law / law.sum()
        return found

    def _with(self, tree: TokenTree, added: list["Guess"]) -> TokenTree:
        tokens, parents, scores, rows = zip(*added, strict=True) if added else ((), (), (), ())
        return tree.grown(tokens, parents, source=self.model.name, scores=scores, rows=rows)


@dataclass(frozen=True)
class ChainDraft:
    """A chain: the tree of width 1, one pass per guess.

    length    guesses; the rest as for `TreeDraft`

    Raises ValueError if a value is out of range.
    Source: Leviathan et al. 2023, Algorithm 1; Chen et al. 2023.
    """

    model: LanguageModel
    length: int = 4
    floor: float = 0.0
    siblings: str = "ranked"
    match: MatchTable = MatchTable()

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a chain has at least 1 guess, got length={self.length}; to guess nothing use NoDraft")
        self._tree()

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A chain of at most `length` guesses."""
        return self._tree().propose(context, chance)

    def _tree(self) -> TreeDraft:
        return TreeDraft(self.model, widths=(1,) * self.length, floor=self.floor, siblings=self.siblings, match=self.match)


class Guess(NamedTuple):
    """A node that is about to be planted."""

    token: int
    parent: int
    score: float
    row: Tensor | None


@functools.lru_cache(maxsize=64)
def best_slots(match: MatchTable, budget: int, depth: int, floor: float = 0.0) -> dict[int, dict[Slots, int]]:
    """The best `budget` slots when a slot's score depends on ranks alone: per level, how many children the node at each place gets.

    Best-first, which is optimal because a later rank and a deeper slot never score higher.  A tie goes to the shallower, earlier slot.
    """
    shape: dict[int, dict[Slots, int]] = {}
    heap = [(-match.rate(0), 1, (0,), 1.0)] if depth > 0 else []
    for _ in range(budget):
        if not heap or -heap[0][0] < floor:
            break
        negative, level, slots, above = heapq.heappop(heap)
        *place, rank = slots
        shape.setdefault(level - 1, {})[tuple(place)] = rank + 1
        heapq.heappush(heap, (-above * match.rate(rank + 1), level, (*place, rank + 1), above))
        if level < depth:
            heapq.heappush(heap, (negative * match.rate(0), level + 1, (*slots, 0), -negative))
    return shape
