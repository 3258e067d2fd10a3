"""Trees and chains of guesses grown from one model, with at most one pass per level."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor

from specdec_lib.core.chance import Chance, PerToken, largest, unwarped
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.protocols import LanguageModel, Ranked, Scout, StateReader, TreeGrower
from specdec_lib.core.tree import Count, MatchTable, Shape, TokenTree, leading
from specdec_lib.drafts.trees.slots import (
    Child,
    ExpandNodes,
    SlotWidths,
    add_children,
    best_slots,
    check_limits,
    grow_best,
    slots_of,
)

Known = PerToken | Callable[[], Ranked]
"""The logits after a node, or a function that gives its ranked children."""
Share = Annotated[float, Within(0, 1)]
Siblings = Literal["ranked", "top", "iid", "distinct"]


@checked
@dataclass(frozen=True)
class TreeDraft:
    """A tree grown from one model level by level, in one pass per level.

    widths      children per node at depth 0, 1, …; give this, `shape` or `budget`
    shape       any fixed shape, such as `theory.best_tree` of measured rates
    budget      number of guesses, filled best-first by score
    depth       the deepest guess allowed; only with a budget
    floor       guesses with a score below it are dropped; a score belongs to the whole path
    deepen      guesses with a score below it get no children: a level of children costs a pass
    siblings    "ranked": the likeliest under the shared noise (for `look_up`); "top": the likeliest
                without noise (for both rules); "iid": independent draws; "distinct": draws without
                replacement. The last two carry rows and are for `reject`.
    match       turns ranks into scores; for "ranked" at temperature 0, and "top", probabilities do

    With a budget, scores from probabilities or gaps adapt the shape to the context. Raises
    ValueError unless one of widths, shape and budget is given, and for a budget, or widths without
    a floor, of more than 4,096 guesses. Source: Spector and Ré 2023, section 3.1; best-first as in
    Wang et al. 2024 (OPT-Tree).
    """

    model: LanguageModel
    widths: tuple[Count, ...] | None = None
    budget: Count | None = None
    depth: Count = 8
    floor: Share = 0.0
    siblings: Siblings = "ranked"
    match: MatchTable = MatchTable()
    shape: Shape | None = None
    deepen: Share = 0.0

    def __post_init__(self) -> None:
        check_limits(self.widths, self.budget, self.shape, self.floor)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        def expand(tree: TokenTree, widths: Mapping[int, int]) -> dict[int, list[Child]]:
            part, number = tree.above(list(widths))  # other nodes need not be read
            known = self.read(context, part, chance)
            return {
                node: self.children(tree, node, known[number[node]], chance, width)
                for node, width in widths.items()
            }

        grown = self.grown_by_model(context, chance)
        return self.grow(context, chance, expand) if grown is None else grown

    @functools.cached_property
    def _grower(self) -> TreeGrower | None:
        """The model, if it can choose this kind of children itself, which is faster."""
        ranked = self.siblings == "ranked"
        return self.model if ranked and isinstance(self.model, TreeGrower) else None

    @functools.cached_property
    def by_level(self) -> bool:
        """Whether the model reads every level of a tree in a pass of its own: see `StateReader`."""
        return isinstance(self.model, StateReader) and self.model.target is not None

    def read(self, context: Context, tree: TokenTree, chance: Chance) -> Sequence[Known]:
        """Read a tree in one pass: per node, what `children` needs to know."""
        ranked = None
        if self._grower is not None:
            most = self.budget or self._widest
            ranked = self._grower.rank(context, tree, chance, width=most, match=self.match)
        if ranked is None:
            return self.model.score(context, tree).unbind()
        return [functools.partial(ranked, node) for node in range(len(tree))]

    @property
    def _widest(self) -> int:
        """The most children of a node, of a tree without a budget."""
        if self.shape is not None:
            return max(self.shape.ranks) + 1
        return max(self.widths or (0,))

    def grown_by_model(
        self, context: Context, chance: Chance, scout: Scout | None = None
    ) -> TokenTree | None:
        """The whole tree, if the model can grow it in one call (`TreeGrower.grow`), else None."""
        if self._grower is None or self.shape is not None:
            return None
        reach = self.reach(context)
        most = self.budget or 0
        widths = (most,) * reach if self.widths is None else self.widths[:reach]
        return self._grower.grow(
            context,
            chance,
            widths=widths,
            budget=self.budget,
            floor=self.floor,
            deepen=self.deepen,
            match=self.match,
            scout=scout,
        )

    def grow(self, context: Context, chance: Chance, expand: ExpandNodes) -> TokenTree:
        """Build the tree level by level; a node without children from `expand` stays a leaf."""
        tree = TokenTree.rooted(context)
        reach = self.reach(context)
        drawn = self.siblings in ("iid", "distinct")
        ranked = self.siblings == "ranked" and chance.sampler.temperature > 0
        slots: SlotWidths = {}
        if self.shape is not None:
            slots = slots_of(self.shape)
        elif self.budget is not None:
            if not drawn and (not ranked or self.match.edges):
                return grow_best(
                    tree,
                    expand,
                    budget=self.budget,
                    depth=reach,
                    floor=self.floor,
                    deepen=self.deepen,
                )
            slots = best_slots(self.match, self.budget, reach, self.floor, self.deepen)
        # slots are chosen before any token is: no drawn token has to be dropped
        for level in range(reach):
            nodes = [
                node
                for node, its in enumerate(tree.depths)
                if its == level and tree.scores[node] >= self.deepen
            ]
            if self.widths is not None:
                widths = dict.fromkeys(nodes, self.widths[level])
            else:
                widths = {at: width for at in nodes if (width := slots.get(tree.slots(at), 0))}
            if not widths:
                break
            tree = add_children(tree, expand(tree, widths), self.floor)
        return tree

    def reach(self, context: Context) -> int:
        """The maximum depth of a tree after `context`, within the model's positions."""
        readable = max(0, self.model.max_positions - len(context) + 1)
        if self.widths is not None:
            return min(readable, len(self.widths))
        return min(readable, self.depth if self.shape is None else self.shape.depth)

    def children(
        self, tree: TokenTree, node: int, known: Known, chance: Chance, width: int
    ) -> list[Child]:
        """Up to `width` children of a node, the best first; drawn ones in the order of drawing."""
        if not isinstance(known, Tensor):
            every, scores = known()
            tokens = every[:width]
            factors = scores[:width]
        else:
            if self.siblings in ("iid", "distinct"):
                return self._drawn(tree, node, known, chance, width)
            tokens, factors = self._chosen(known, tree.position(node) + 1, chance, width)
        return [
            Child(token, factor, None, self.model.name)
            for token, factor in zip(tokens, factors, strict=True)
            if factor > 0
        ]

    def _chosen(self, logits: PerToken, position: int, chance: Chance, width: int) -> Ranked:
        """The tokens that are chosen for a position without being drawn, and their factors."""
        if self.siblings == "ranked" and chance.sampler.temperature > 0:
            tokens, gaps = leading(*chance.rank(logits, position, max(2, width)), width)
            return tokens, [self.match.rate(rank, gap) for rank, gap in enumerate(gaps)]
        if chance.sampler.temperature == 0:
            tokens, _ = chance.rank(logits, position, width)
            return tokens, unwarped(logits, tokens)
        return largest(chance.sampler.probs(logits).numpy(force=True), width)

    def _drawn(
        self, tree: TokenTree, node: int, logits: Tensor, chance: Chance, width: int
    ) -> list[Child]:
        probs = chance.sampler.probs(logits)
        slots = tree.slots(node)
        found = []
        for rank in range(width):
            token = chance.draw("sibling", probs, tree.root_position, (*slots, rank))
            found.append(Child(token, self.match.rate(rank), probs, self.model.name))
            if self.siblings == "distinct":
                probs = probs.clone()
                probs[token] = 0.0
                if not probs.sum() > 0:
                    break
                probs = probs / probs.sum()
        return found


@checked
@dataclass(frozen=True)
class ChainDraft:
    """A tree of width 1. Source: Leviathan et al. 2023, Algorithm 1; Chen et al. 2023."""

    model: LanguageModel
    length: Count = 4
    floor: Share = 0.0
    siblings: Siblings = "ranked"
    match: MatchTable = MatchTable()

    def __post_init__(self) -> None:
        _ = self.as_tree  # checks the other values

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        return self.as_tree.propose(context, chance)

    @functools.cached_property
    def as_tree(self) -> TreeDraft:
        return TreeDraft(
            self.model,
            (1,) * self.length,
            floor=self.floor,
            siblings=self.siblings,
            match=self.match,
        )
