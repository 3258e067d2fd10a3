"""Trees of guesses from an n-gram table, without a network."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.tree import Count, MatchTable, TokenTree
from specdec_lib.drafts.trees.slots import check_limits
from specdec_lib.models.fast.choices import match_arrays, noise_keys
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.katz.trie import Guesser, Warp, grow_guesses, rank_continuations


@checked
@dataclass(frozen=True)
class NgramDraft:
    """A tree whose nodes hold the likeliest continuations in an n-gram table.

    widths        children per node at each depth, the root's first; give this or `budget`
    budget        guesses in all, filled best-first by score
    depth         the deepest guess allowed; only with a budget
    match         turns ranks and gaps into scores where a token is sampled; at temperature 0, and
                  for "top" siblings, a node's score is the product of probabilities along its path
    siblings      "ranked": the likeliest under the shared noise; "top": the likeliest without noise
    counted_at    sampling temperature of the text that the table was counted on; probabilities are
                  raised to this power and renormalised over the likeliest tokens
    """

    table: Katz
    widths: tuple[Count, ...] | None = None
    budget: Count | None = None
    depth: Count = 8
    source: str = "n-gram"
    match: MatchTable = MatchTable()
    siblings: Literal["ranked", "top"] = "ranked"
    counted_at: Annotated[float, Within(2.0**-20, 2.0**20)] = 1.0

    def __post_init__(self) -> None:
        check_limits(self.widths, self.budget)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Guess how `context` goes on, with fewer guesses where the table knows fewer tokens."""
        guesser = self.guesser(context, chance)
        keys = noise_keys(chance, len(context), len(guesser.limits[0]))
        nodes, scores = grow_guesses(guesser, guesser.window, keys)
        tokens, parents = nodes[:, 1:].tolist()
        return TokenTree.rooted(context).grown(
            tokens, parents, source=self.source, scores=scores[1:].tolist()
        )

    def guesser(self, context: Context, chance: Chance) -> Guesser:
        """The table and the limits for a compiled call; raises ValueError for an unknown token."""
        widths = self.widths or (self.budget,) * self.depth
        return Guesser(
            trie=self.table.trie,
            window=self.table.window(context.tokens),
            limits=(np.array(widths, np.int64), int(self.budget or 0)),  # else compiled anew
            warp=self._warp(chance),
            match=match_arrays(self.match),
        )

    def rank(
        self, tokens: tuple[int, ...], k: int, chance: Chance, position: int
    ) -> tuple[list[int], list[float]]:
        """The best k of the max(16, k) likeliest continuations, and gaps as of `MatchTable`."""
        [key] = noise_keys(chance, position, 1)
        window = self.table.window(tokens)
        found, gaps = rank_continuations(self.table.trie, window, k, self._warp(chance), key)
        return found.tolist(), gaps.tolist()

    def _warp(self, chance: Chance) -> Warp:
        ranked = self.siblings == "ranked"
        return Warp(
            counted_at=float(self.counted_at),
            temperature=float(chance.sampler.temperature) if ranked else 0.0,
            top_k=chance.sampler.top_k or self.table.vocabulary,
            top_p=float(chance.sampler.top_p),
        )
