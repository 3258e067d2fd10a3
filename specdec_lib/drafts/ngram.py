"""Trees of guesses from an n-gram table, without a network."""

import functools
import math
from dataclasses import dataclass

import torch

from specdec_lib.core.chance import Chance, Sampler, Slots
from specdec_lib.core.context import Context
from specdec_lib.core.tree import ROOT, MatchTable, TokenTree, leading
from specdec_lib.core.tree.growth import Slot, by_parent, grow_best_first
from specdec_lib.drafts.trees.growing import check_budget
from specdec_lib.models.katz.model import Katz

CONSIDERED = 16  # ranked with the shared noise; the rest is too flat to be worth a dense row
REMEMBERED = 50_000  # lookups


@dataclass(frozen=True)
class NgramDraft:
    """A tree whose nodes hold the likeliest continuations in an n-gram table.

    widths        children per node at each depth, the root's first; give this or `budget`
    budget        guesses in all, filled best-first by score
    depth         deepest guess of a tree with a budget
    source        the name of its nodes
    match         turns ranks and gaps into scores where a token is sampled
    siblings      "ranked": the likeliest under the shared noise; "top": the likeliest without noise
    counted_at    sampling temperature of the text that the table was counted on; probabilities are
                  raised to this power and renormalised over the likeliest tokens, which
                  approximates temperature 1

    At temperature 0, and for "top", a node's score is the product of probabilities along its path.
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
        check_budget(self.budget, self.depth)
        if self.siblings not in ("ranked", "top"):
            raise ValueError(
                f'the siblings of an n-gram draft are "ranked" or "top", got {self.siblings!r}'
            )
        if not 0 < self.counted_at < math.inf:
            raise ValueError(f"counted_at is a temperature above 0, got {self.counted_at}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Guess how `context` goes on, with fewer guesses where the table knows fewer tokens."""
        tree, window = TokenTree.rooted(context), context.tokens[-self.table.order :]
        grow = self._fill if self.widths is None else self._widen
        return grow(tree, window, chance)

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
        paths: dict[Slots, tuple[int, ...]] = {(): ()}  # tokens on the way to each slot

        def factors(slot: Slot) -> list[float]:
            path = paths[slot.ranks]
            position = tree.root_position + len(path) + 1
            tokens, found = self._children(window + path, self.budget, chance, position)
            for rank, token in enumerate(tokens):
                paths[(*slot.ranks, rank)] = (*path, token)
            return found

        limits = {"depth": self.depth, "floor": math.ulp(0.0), "tie": by_parent}
        slots = list(grow_best_first(factors, self.budget, **limits))
        return tree.grown(
            [paths[slot.ranks][-1] for slot in slots],
            [slot.parent for slot in slots],
            source=self.source,
            scores=[slot.score for slot in slots],
        )

    def _children(
        self, tokens: tuple[int, ...], width: int, chance: Chance, position: int
    ) -> tuple[list[int], list[float]]:
        if chance.sampler.temperature > 0 and self.siblings == "ranked":
            ranked, gaps = self.rank(tokens, width, chance, position)
            return ranked, [self.match.rate(rank, gap) for rank, gap in enumerate(gaps)]
        if self.counted_at == 1:
            likely, factors = self._likely(tokens, width, None)
        else:
            likely, log_probs = self._likely(tokens, width, Sampler(1.0))
            factors = [math.exp(value) for value in log_probs]
        return likely[:width], factors[:width]

    def rank(
        self, tokens: tuple[int, ...], k: int, chance: Chance, position: int
    ) -> tuple[list[int], list[float]]:
        """The k best under the shared noise of the max(k, 16) likeliest continuations of `tokens`,
        the best first, and their gaps as `MatchTable` has them; others never compete.
        """
        sampler = chance.sampler if chance.sampler.temperature > 0 else Sampler(1.0)
        likely, log_probs = self._likely(tokens, k, sampler)
        return leading(*chance.rank_among(likely, log_probs, position, max(2, k)), k)

    def _likely(
        self, tokens: tuple[int, ...], width: int, sampler: Sampler | None
    ) -> tuple[list[int], list[float]]:
        """The likeliest continuations and their log-probabilities, sharpened and warped as if there
        were no others; for None, bare probabilities.
        """
        key = (tokens[-self.table.order + 1 :], width, sampler)
        if key not in self._known:
            if len(self._known) > REMEMBERED:
                self._known.clear()
            likely, values = self.table.top(tokens, max(width, CONSIDERED))
            if sampler is not None:
                logits = self.counted_at * torch.tensor(values, dtype=torch.float64).log()
                values = sampler.log_probs(logits).tolist()
            self._known[key] = likely, values
        return self._known[key]

    @functools.cached_property
    def _known(
        self,
    ) -> dict[tuple[tuple[int, ...], int, Sampler | None], tuple[list[int], list[float]]]:
        """What has been looked up: texts repeat themselves, and so do trees."""
        return {}
