"""A tree of guesses straight from an n-gram table: no network at all."""

import functools
import heapq
import math
from dataclasses import dataclass

import torch

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import ROOT, MatchTable, TokenTree, leading
from specdec_lib.models.katz.model import Katz

CONSIDERED = (
    16  # ranked with the shared noise; the law beyond them is too flat to be worth a dense row
)
REMEMBERED = 50_000  # lookups


@dataclass(frozen=True)
class NgramDraft:
    """A tree whose nodes hold the likeliest continuations in an n-gram table.

    table         where the guesses come from
    widths        children per node at each depth, the root's first; give this or `budget`
    budget        guesses in all, filled best-first by score
    depth         deepest guess of a tree with a budget
    source        the name of its nodes
    match         turns ranks and gaps into scores where a token is sampled
    siblings      "ranked": the likeliest under the shared noise; "top": the likeliest without noise
    counted_at    temperature at which the table's text was sampled: its law is sharpened to be that
                  of temperature 1

    At temperature 0, and for "top", a node's score is the product of probabilities along its path.
    Else the likeliest continuations are ranked under the shared noise of their position, and
    `match` gives the score. Nodes have no rows: their tokens follow from the noise that the target
    looks at.
    Raises ValueError unless the shape is given in exactly one way and every value is in range.
    """

    table: Katz
    widths: tuple[int, ...] | None = None
    budget: int | None = None
    depth: int = 8
    source: str = "n-gram"
    match: MatchTable = MatchTable()
    siblings: str = "ranked"
    counted_at: float = 1.0

    def __post_init__(self) -> None:
        if (self.widths is None) == (self.budget is None):
            raise ValueError(
                f"give widths or a budget, not both: got widths={self.widths}, budget={self.budget}"
            )
        if self.widths is not None and not (
            self.widths and all(isinstance(width, int) and width >= 1 for width in self.widths)
        ):
            raise ValueError(
                "widths are whole numbers of at least 1, one per depth and at least one, got"
                f" {self.widths}"
            )
        if self.budget is not None and (self.budget < 1 or self.depth < 1):
            raise ValueError(
                f"a tree with a budget has at least 1 guess and depth 1, got budget={self.budget},"
                f" depth={self.depth}"
            )
        if self.siblings not in ("ranked", "top"):
            raise ValueError(
                f'the siblings of an n-gram draft are "ranked" or "top", got {self.siblings!r}'
            )
        if not 0 < self.counted_at < math.inf:
            raise ValueError(f"counted_at is a temperature above 0, got {self.counted_at}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Guess how `context` goes on; fewer guesses than asked for where the table's law has fewer
        tokens.
        """
        tree, window = TokenTree.rooted(context), context.tokens[-self.table.order :]
        return (
            self._fill(tree, window, chance)
            if self.widths is None
            else self._widen(tree, window, chance)
        )

    def _widen(self, tree: TokenTree, window: tuple[int, ...], chance: Chance) -> TokenTree:
        frontier = [ROOT]
        for width in self.widths:
            tokens, parents, scores = [], [], []
            for node in frontier:
                children, factors = self._children(
                    window + tree.path_tokens(node), width, chance, tree.position(node) + 1
                )
                tokens += children
                parents += [node] * len(children)
                scores += [tree.scores[node] * factor for factor in factors]
            frontier = list(range(len(tree), len(tree) + len(tokens)))
            tree = tree.grown(tokens, parents, source=self.source, scores=scores)
        return tree

    def _fill(self, tree: TokenTree, window: tuple[int, ...], chance: Chance) -> TokenTree:
        """Best-first: the best guess is planted and its own children wait in turn."""
        paths: list[tuple[int, ...]] = [()]
        parents: list[int] = [ROOT]
        scores = [1.0]
        waiting: list[tuple[float, int, int, tuple[int, ...]]] = []
        node = ROOT
        while True:
            if len(paths[node]) < self.depth:
                position = tree.root_position + len(paths[node]) + 1
                tokens, factors = self._children(
                    window + paths[node], self.budget, chance, position
                )
                for rank, (token, factor) in enumerate(zip(tokens, factors, strict=True)):
                    if factor > 0:
                        heapq.heappush(
                            waiting, (-scores[node] * factor, node, rank, (*paths[node], token))
                        )
            if not waiting or len(paths) > self.budget:
                return tree.grown(
                    [path[-1] for path in paths[1:]],
                    parents[1:],
                    source=self.source,
                    scores=scores[1:],
                )
            negative, parent, _, path = heapq.heappop(waiting)
            node = len(paths)
            paths.append(path)
            parents.append(parent)
            scores.append(-negative)

    def _children(
        self, tokens: tuple[int, ...], width: int, chance: Chance, position: int
    ) -> tuple[list[int], list[float]]:
        if chance.sampler.temperature > 0 and self.siblings == "ranked":
            ranked, gaps = self.rank(tokens, width, chance, position)
            return ranked, [self.match.rate(rank, gap) for rank, gap in enumerate(gaps)]
        considered, laws = self._law(tokens, width, Sampler(1.0) if self.counted_at != 1 else None)
        return considered[:width], (
            laws if self.counted_at == 1 else [math.exp(law) for law in laws]
        )[:width]

    def rank(
        self, tokens: tuple[int, ...], k: int, chance: Chance, position: int
    ) -> tuple[list[int], list[float]]:
        """The k best continuations of `tokens` for `position` under the shared noise, and their
        gaps as `MatchTable` has them.
        """
        considered, laws = self._law(
            tokens, k, chance.sampler if chance.sampler.temperature > 0 else Sampler(1.0)
        )
        return leading(
            *chance.rank_among(
                considered, laws, position, max(2, k), vocabulary=self.table.vocabulary
            ),
            k,
        )

    def _law(
        self, tokens: tuple[int, ...], width: int, sampler: Sampler | None
    ) -> tuple[list[int], list[float]]:
        """The likeliest continuations and their log-probabilities, sharpened and warped as if there
        were no others; for None, bare probabilities.
        """
        key = (tokens[-self.table.order + 1 :], width, sampler)
        if key not in self._known:
            if len(self._known) > REMEMBERED:
                self._known.clear()
            considered, probabilities = self.table.top(tokens, max(width, CONSIDERED))
            if sampler is not None:
                logits = self.counted_at * torch.tensor(probabilities, dtype=torch.float64).log()
                probabilities = sampler.log_probs(logits).tolist()
            self._known[key] = considered, probabilities
        return self._known[key]

    @functools.cached_property
    def _known(
        self,
    ) -> dict[tuple[tuple[int, ...], int, Sampler | None], tuple[list[int], list[float]]]:
        """What has been looked up: texts repeat themselves, and so do trees."""
        return {}
