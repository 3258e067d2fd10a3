"""A tree of guesses: many continuations of one context in one value."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool
from torch import Tensor

from specdec_lib.core.chance import Slots
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import unchecked
from specdec_lib.core.tree.shape import NO_PARENT, ROOT, check_parents, children_of, depths_of


@dataclass(frozen=True)
class TokenTree:
    """A tree of guesses rooted at a context's last token, which is node 0; `len(tree)` counts it.

    root_position    absolute position of the root: len(context) − 1
    parents          the number of each node's parent, which precedes it, and −1 for the root;
                     siblings stand in the order proposed: the best first, or as drawn
    sources          which drafter guessed it, "context" for the root
    scores           estimated probability that the path down to the node is accepted: 1 at the
                     root, never above the parent's
    rows             the distribution [vocab] that a node's token was drawn from, given its earlier
                     siblings; None for one that was not drawn (ranked, top, copied)
    """

    root_position: int
    tokens: tuple[int, ...]
    parents: tuple[int, ...] = (NO_PARENT,)
    sources: tuple[str, ...] = ("context",)
    scores: tuple[float, ...] = (1.0,)
    rows: tuple[Tensor | None, ...] = field(default=(None,), compare=False)

    def __post_init__(self) -> None:
        self._check_nodes(0)
        if self.root_position < 0:
            raise ValueError(f"root_position counts from 0, got {self.root_position}")

    def _check_nodes(self, first: int) -> None:
        lengths = [*map(len, (self.tokens, self.parents, self.sources, self.scores, self.rows))]
        if len(set(lengths)) != 1 or not self.tokens:
            raise ValueError(
                "a tree needs one token, parent, source, score and row per node, and a root;"
                f" got {lengths}"
            )
        check_parents(self.parents, first)
        for node in range(max(1, first), len(self.tokens)):
            above = self.scores[self.parents[node]]
            if not 0 <= self.scores[node] <= above:
                raise ValueError(
                    f"a score lies between 0 and the parent's {above}:"
                    f" node {node} has {self.scores[node]}"
                )
        if (least := min(self.tokens[first:], default=0)) < 0:
            raise ValueError(f"tokens are numbers from 0 on, got {least}")

    @classmethod
    def rooted(cls, context: Context) -> "TokenTree":
        """The tree of the context's last token alone, without guesses."""
        return cls(len(context) - 1, (context.tokens[-1],))

    @classmethod
    def of_paths(cls, context: Context, paths: Iterable[Sequence[int]]) -> "TokenTree":
        """The prefix tree of these token paths, to be scored by a model and not verified."""
        number: dict[tuple[int, ...], int] = {(): ROOT}
        for path in paths:
            for end in range(1, len(path) + 1):
                number.setdefault(tuple(path[:end]), len(number))
        _, *starts = number
        parents = [number[start[:-1]] for start in starts]
        tokens = [start[-1] for start in starts]
        return cls.rooted(context).grown(tokens, parents, source="", scores=[0.0] * len(starts))

    def grown(
        self,
        tokens: Sequence[int],
        parents: Sequence[int],
        *,
        source: str | Sequence[str],
        scores: Sequence[float],
        rows: Sequence[Tensor | None] | None = None,
    ) -> "TokenTree":
        """This tree with more nodes at its end.

        parents    numbers of nodes of this tree, or of earlier new ones
        source     one for all new nodes, or one for each
        scores     of the whole path, not relative to the parent's
        """
        sources = (source,) * len(tokens) if isinstance(source, str) else source
        new_rows = [None] * len(tokens) if rows is None else rows
        longer = unchecked(
            TokenTree,
            root_position=self.root_position,
            tokens=(*self.tokens, *tokens),
            parents=(*self.parents, *parents),
            sources=(*self.sources, *sources),
            scores=(*self.scores, *scores),
            rows=(*self.rows, *new_rows),
        )
        longer._check_nodes(len(self))  # the nodes so far were checked before
        return longer

    def grafted(self, node: int, guessed: "TokenTree") -> "TokenTree":
        """This tree with the guesses of another below `node`, their scores times its score."""
        number = [node, *range(len(self), len(self) + guessed.guesses)]
        return self.grown(
            guessed.tokens[1:],
            [number[parent] for parent in guessed.parents[1:]],
            source=guessed.sources[1:],
            scores=[self.scores[node] * score for score in guessed.scores[1:]],
            rows=guessed.rows[1:],
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def guesses(self) -> int:
        """The number of nodes without the root, which is what a budget counts."""
        return len(self.tokens) - 1

    @property
    def has_rows(self) -> bool:
        """Whether any token was drawn; if so, dropping by score or merging biases `reject`."""
        return any(row is not None for row in self.rows)

    @functools.cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        return children_of(self.parents)

    @functools.cached_property
    def depths(self) -> tuple[int, ...]:
        return depths_of(self.parents)

    def children(self, node: int) -> tuple[int, ...]:
        """The children of a node, in the order proposed."""
        return self._children[node]

    def child(self, node: int, token: int) -> int | None:
        """The first child that holds `token`, or None."""
        return next((child for child in self._children[node] if self.tokens[child] == token), None)

    def guessed(self, tokens: Sequence[int]) -> int:
        """How many of these tokens, the ones after the root, the tree guessed in a row."""
        node = ROOT
        for count, token in enumerate(tokens):
            below = self.child(node, token)
            if below is None:
                return count
            node = below
        return len(tokens)

    def position(self, node: int) -> int:
        return self.root_position + self.depths[node]

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from below the root down to `node`; empty for the root."""
        path = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return tuple(reversed(path))

    def path_tokens(self, node: int) -> tuple[int, ...]:
        return tuple(self.tokens[at] for at in self.path(node))

    def slots(self, node: int) -> Slots:
        """The child ranks that lead from the root to `node`."""
        return tuple(self._children[self.parents[at]].index(at) for at in self.path(node))

    def ancestry(self) -> Bool[Tensor, "nodes nodes"]:
        """The attention mask: [i, j] is true where node j is node i or one of its ancestors."""
        sees = torch.eye(len(self), dtype=torch.bool)
        for node, parent in enumerate(self.parents[1:], 1):
            sees[node] |= sees[parent]
        return sees

    def above(self, nodes: Sequence[int]) -> tuple["TokenTree", dict[int, int]]:
        """The tree of these nodes and their ancestors, and a map from old to new node numbers."""
        found = {ROOT}
        for node in nodes:
            while node not in found:
                found.add(node)
                node = self.parents[node]
        kept = sorted(found)
        return self._kept(kept), {node: new for new, node in enumerate(kept)}

    def cut(self, depth: int) -> "TokenTree":
        """This tree without the nodes below `depth`; rows are kept, and `reject` stays exact."""
        return self._kept([node for node, its in enumerate(self.depths) if its <= depth])

    def truncated(self, budget: int) -> "TokenTree":
        """The tree of the `budget` best-scored guesses; raises ValueError for a tree with rows."""
        self._refuse_rows("truncated")
        best = sorted(range(1, len(self)), key=lambda node: (-self.scores[node], node))[:budget]
        return self._kept([ROOT, *sorted(best)])

    def merged(self) -> "TokenTree":
        """Equal siblings made one: best score, first source; ValueError for a tree with rows."""
        self._refuse_rows("merged")
        place: dict[tuple[int, int], int] = {}
        moved = [ROOT]
        kept = [ROOT]
        scores = [self.scores[ROOT]]
        for node in range(1, len(self)):
            key = (moved[self.parents[node]], self.tokens[node])
            if key not in place:
                place[key] = len(kept)
                kept.append(node)
                scores.append(self.scores[node])
            moved.append(place[key])
            scores[place[key]] = max(scores[place[key]], self.scores[node])
        return self._picked(kept, moved, scores)

    def _refuse_rows(self, verb: str) -> None:
        if self.has_rows:
            raise ValueError(f"a tree with rows cannot be {verb}: it would be biased")

    def _kept(self, nodes: list[int]) -> "TokenTree":
        if len(nodes) == len(self):
            return self
        number = {node: new for new, node in enumerate(nodes)}
        return self._picked(nodes, number, [self.scores[node] for node in nodes])

    def _picked(
        self, nodes: list[int], number: Sequence[int] | Mapping[int, int], scores: list[float]
    ) -> "TokenTree":
        """The tree of these nodes, whose parents get the numbers given."""
        return TokenTree(
            self.root_position,
            tuple(self.tokens[node] for node in nodes),
            (NO_PARENT, *(number[self.parents[node]] for node in nodes[1:])),
            tuple(self.sources[node] for node in nodes),
            tuple(scores),
            tuple(self.rows[node] for node in nodes),
        )
