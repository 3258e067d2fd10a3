"""A tree of guesses grown from one model, level by level, or best-first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from torch import Tensor

from specdec_lib.core.chance import Chance, best, likeliest
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import ROOT, MatchTable, Shape, TokenTree, leading
from specdec_lib.drafts.trees.slots import SlotWidths, best_slots, slots_of

SIBLINGS = ("ranked", "top", "iid", "distinct")


class Child(NamedTuple):
    """A guess before it is planted: its score against its parent's, the law it was drawn from, and
    who guessed it.
    """

    token: int
    factor: float
    row: Tensor | None
    source: str


Ask = Callable[[TokenTree, Mapping[int, int]], Mapping[int, Sequence[Child]]]
"""Up to so many children for each of these nodes; a node that is left out is not known yet and
stays a leaf.
"""


@dataclass(frozen=True)
class TreeDraft:
    """A tree grown from one model, level by level: each pass scores all nodes that are to have
    children.

    widths      children per node at depth 0, 1, …; give this, `shape` or `budget`
    shape       any fixed shape, such as `theory.best_tree` of measured rates
    budget      guesses in all, filled best-first by score
    depth       deepest guess of a tree with a budget
    floor       no guess scores below it, in [0, 1]
    siblings    "ranked": the likeliest under the shared noise (for `look_up`); "top": the likeliest
                without noise; "iid": independent draws; "distinct": draws without replacement. The
                last two carry rows and are for `reject`; "top" serves both rules.
    match       turns ranks into scores; but at temperature 0 for "ranked", and always for "top", a
                score is the product of probabilities

    At temperature 0, for "top", and where `match` looks at gaps, a budget adapts to the context;
    else scores follow from ranks alone and the shape is the same everywhere.
    A model whose context is full guesses nothing more, and siblings end where the warped law has no
    more tokens.
    Raises ValueError if the shape is not given in exactly one way or a value is out of range.
    Source: Spector and Ré 2023, section 3.1; best-first by path probability as in Wang et al. 2024
    (OPT-Tree).
    """

    model: LanguageModel
    widths: tuple[int, ...] | None = None
    budget: int | None = None
    depth: int = 8
    floor: float = 0.0
    siblings: str = "ranked"
    match: MatchTable = MatchTable()
    shape: Shape | None = None

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.widths, self.shape, self.budget)) != 1:
            raise ValueError(
                f"give widths, a shape or a budget, and one of them only: got {self.widths},"
                f" {self.shape}, {self.budget}"
            )
        if self.shape is not None and not self.shape.guesses:
            raise ValueError(
                "a shape has at least 1 guess, got the root alone; to guess nothing use NoDraft"
            )
        if self.widths is not None and min(self.widths, default=0) < 1:
            raise ValueError(
                f"widths are at least 1 per depth, and of one depth or more, got {self.widths}"
            )
        if self.budget is not None and (self.budget < 1 or self.depth < 1):
            raise ValueError(
                f"a tree with a budget has at least 1 guess and depth 1, got budget={self.budget},"
                f" depth={self.depth}"
            )
        if not 0 <= self.floor <= 1:
            raise ValueError(f"the floor must lie in [0, 1], got {self.floor}")
        if self.siblings not in SIBLINGS:
            raise ValueError(f"siblings are one of {', '.join(SIBLINGS)}, got {self.siblings!r}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A tree of the given shape; at most one pass per depth."""
        tree = self._grown_whole(context, chance)
        return (
            self.grow(context, chance, partial(self._ask, context, chance))
            if tree is None
            else tree
        )

    def _grown_whole(self, context: Context, chance: Chance) -> TokenTree | None:
        """The same tree from a model that grows trees itself, which is faster; None from any other."""
        grow = getattr(
            self.model, "grow", None
        )  # a `TreeGrower`'s; asking the protocol costs as much as growing
        if grow is None or self.siblings != "ranked" or self.shape is not None:
            return None
        reach = self.reach(context)
        widths = self.widths[:reach] if self.widths is not None else (self.budget,) * reach
        return grow(
            context, chance, widths=widths, budget=self.budget, floor=self.floor, match=self.match
        )

    def grow(self, context: Context, chance: Chance, ask: Ask) -> TokenTree:
        """The tree that follows from the children that `ask` gives; it is asked level by level, for
        all nodes of a level that are to have some.

        Whatever `ask` leaves out is a leaf here, and all else is as it would be: what is asked of
        the shallowest level with a gap is what `propose` would ask of it.
        """
        tree, reach = TokenTree.rooted(context), self.reach(context)
        if self.widths is not None:
            return self._widen(tree, self.widths[:reach], ask)
        if self.shape is not None:
            return self._fill_slots(tree, slots_of(self.shape), reach, ask)
        drawn = self.siblings in ("iid", "distinct")
        ranked = self.siblings == "ranked" and chance.sampler.temperature > 0
        if drawn or (ranked and not self.match.edges):
            return self._fill_slots(
                tree, best_slots(self.match, self.budget, reach, self.floor), reach, ask
            )
        return self._fill(tree, reach, ask)

    def reach(self, context: Context) -> int:
        """How deep a tree may become after `context`."""
        readable = max(0, self.model.max_positions - len(context) + 1)
        return min(
            readable,
            len(self.widths)
            if self.widths is not None
            else self.shape.depth
            if self.shape is not None
            else self.depth,
        )

    def as_tree(self) -> "TreeDraft":
        """Itself; see `ChainDraft.as_tree`."""
        return self

    def _widen(self, tree: TokenTree, widths: Sequence[int], ask: Ask) -> TokenTree:
        frontier = [ROOT]
        for width in widths:
            if not frontier:
                break
            grown = self._plant(tree, ask(tree, dict.fromkeys(frontier, width)))
            tree, frontier = grown, list(range(len(tree), len(grown)))
        return tree

    def _fill(self, tree: TokenTree, depth: int, ask: Ask) -> TokenTree:
        """Level by level, the best guesses so far: a guess that falls out never comes back, because
        a child never scores above its parent.
        """
        for level in range(depth):
            full = tree.guesses == self.budget
            worst = min(tree.scores) if full else -1.0
            frontier = [
                node
                for node in range(len(tree))
                if tree.depths[node] == level and tree.scores[node] > worst
            ]
            if not frontier:
                break
            tree = self._plant(
                tree, ask(tree, dict.fromkeys(frontier, self.budget)), above=worst
            ).truncated(self.budget)
        return tree

    def _fill_slots(self, tree: TokenTree, shape: SlotWidths, depth: int, ask: Ask) -> TokenTree:
        """Slots that were chosen before any token is: no drawn token has to be dropped."""
        for level in range(min(depth, max(shape, default=-1) + 1)):
            widths = {
                node: shape[level].get(tree.slots(node), 0)
                for node in range(len(tree))
                if tree.depths[node] == level
            }
            widths = {node: width for node, width in widths.items() if width}
            if not widths:
                break
            tree = self._plant(tree, ask(tree, widths))
        return tree

    def _ask(
        self, context: Context, chance: Chance, tree: TokenTree, widths: Mapping[int, int]
    ) -> dict[int, list[Child]]:
        """The children of these nodes after one pass over them; others are not read, unless they
        lie above.
        """
        part, number = tree.above(list(widths))
        rows = self.model.score(context, part)
        return {
            node: self.children(tree, node, rows[number[node]], chance, width)
            for node, width in widths.items()
        }

    def children(
        self, tree: TokenTree, node: int, logits: Tensor, chance: Chance, width: int
    ) -> list[Child]:
        """Up to `width` children of a node, given the model's logits after it."""
        if self.siblings in ("iid", "distinct"):
            return self._drawn(tree, node, logits, chance, width)
        if self.siblings == "ranked" and chance.sampler.temperature > 0:
            tokens, gaps = leading(
                *chance.rank(logits, tree.position(node) + 1, max(2, width)), width
            )
            factors = [self.match.rate(rank, gap) for rank, gap in enumerate(gaps)]
        elif chance.sampler.temperature == 0:
            tokens, factors = likeliest(logits, width)
        else:
            tokens, factors = best(chance.sampler.probs(logits), width)
        return [
            Child(token, factor, None, self.model.name)
            for token, factor in zip(tokens, factors, strict=True)
            if factor > 0
        ]

    def _drawn(
        self, tree: TokenTree, node: int, logits: Tensor, chance: Chance, width: int
    ) -> list[Child]:
        law = chance.sampler.probs(logits)
        slots, found = tree.slots(node), []
        for rank in range(width):
            token = chance.draw("sibling", law, tree.root_position, (*slots, rank))
            found.append(Child(token, self.match.rate(rank), law, self.model.name))
            if self.siblings == "distinct":
                law = law.clone()
                law[token] = 0.0
                if not law.sum() > 0:
                    break
                law = law / law.sum()
        return found

    def _plant(
        self, tree: TokenTree, children: Mapping[int, Sequence[Child]], *, above: float = -1.0
    ) -> TokenTree:
        """The tree with these children, but for those that score below the floor or not above
        `above`.
        """
        tokens, parents, scores, rows, sources = [], [], [], [], []
        for node, found in children.items():
            for child in found:
                score = tree.scores[node] * min(1.0, child.factor)
                if score >= self.floor and score > above:
                    tokens.append(child.token)
                    parents.append(node)
                    scores.append(score)
                    rows.append(child.row)
                    sources.append(child.source)
        return tree.grown(tokens, parents, source=sources, scores=scores, rows=rows)


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
            raise ValueError(
                f"a chain has at least 1 guess, got length={self.length}; to guess nothing use"
                " NoDraft"
            )
        self.as_tree()

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A chain of at most `length` guesses."""
        return self.as_tree().propose(context, chance)

    def as_tree(self) -> TreeDraft:
        """The tree of width 1 that it is."""
        return TreeDraft(
            self.model,
            widths=(1,) * self.length,
            floor=self.floor,
            siblings=self.siblings,
            match=self.match,
        )
