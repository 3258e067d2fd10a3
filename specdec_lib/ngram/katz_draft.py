"""A tree of guesses straight from an n-gram table: no network at all."""

from dataclasses import dataclass

import torch

from specdec_lib.chance import Chance
from specdec_lib.context import Context
from specdec_lib.ngram.katz import Katz
from specdec_lib.tree import ROOT, MatchTable, TokenTree

CONSIDERED = 16  # ranked with the shared noise; the law beyond them is too flat to be worth a dense row


@dataclass(frozen=True)
class NgramDraft:
    """A tree whose nodes hold the likeliest continuations in an n-gram table.

    table     where the guesses come from
    widths    children per node at each depth, the root's first; one number per depth of the tree
    source    the name of its nodes
    match     turns ranks into scores where a token is sampled

    At temperature 0 a node's score is the product of probabilities along its path. At other temperatures the likeliest continuations are ranked under
    the shared noise of their position, and `match` gives the score. Nodes have no rows: their tokens follow from the noise that the target looks at.
    Raises ValueError unless there is at least one width and all are whole numbers from 1 on.
    """

    table: Katz
    widths: tuple[int, ...] = (1, 1, 1, 1)
    source: str = "n-gram"
    match: MatchTable = MatchTable()

    def __post_init__(self) -> None:
        if not self.widths or not all(isinstance(width, int) and width >= 1 for width in self.widths):
            raise ValueError(f"widths are whole numbers of at least 1, one per depth and at least one, got {self.widths}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Guess how `context` goes on; narrower than `widths` where the table's law has fewer tokens."""
        tree = TokenTree.rooted(context)
        window = context.tokens[-self.table.order :]
        frontier = [ROOT]
        for width in self.widths:
            tokens, parents, scores = [], [], []
            for node in frontier:
                children, factors = self._children(window + tree.path_tokens(node), width, chance, tree.position(node) + 1)
                tokens += children
                parents += [node] * len(children)
                scores += [tree.scores[node] * factor for factor in factors]
            frontier = list(range(len(tree), len(tree) + len(tokens)))
            tree = tree.grown(tokens, parents, source=self.source, scores=scores)
        return tree

    def _children(self, tokens: tuple[int, ...], width: int, chance: Chance, position: int) -> tuple[list[int], list[float]]:
        if chance.sampler.temperature == 0:
            return self.table.top(tokens, width)
        tokens_considered, probabilities = self.table.top(tokens, max(width, CONSIDERED))
        logits = torch.full((self.table.vocabulary,), -torch.inf, dtype=torch.float64)
        logits[tokens_considered] = torch.tensor(probabilities, dtype=torch.float64).log()
        ranked, _ = chance.rank(logits, position, width)
        return ranked, [self.match.rate(rank) for rank in range(len(ranked))]
