"""Max-Gram: copy what followed the longest earlier occurrence of the context's own ending; a bigram table fills the rest.

Source: Chen et al. 2024 (cascade speculative drafting), section 3.3 and Listing 1. Where we differ: a match lies wholly in the prompt or
wholly in the generation, something must follow it there, and the ending never matches itself, so the first guess is not the beginning of the prompt;
no more than `length` tokens come back; a token the bigram table never saw ends the chain instead of guessing token 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from specdec_lib.chance import Chance
from specdec_lib.context import Context
from specdec_lib.tree import TokenTree

DECAY = 0.75  # a node's score against its parent's: a placeholder that orders a chain, until acceptance by depth is measured


@dataclass(frozen=True, eq=False)
class MaxGram:
    """A chain of copied tokens, continued from a bigram table.

    bigrams    per token its most likely continuation, −1 for none (`Katz.bigrams`); None for no table
    length     tokens in the chain, at most

    Raises ValueError if `length` is below 1 or `bigrams` is not one row of token numbers.
    """

    bigrams: np.ndarray | None = None
    length: int = 10

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a chain has a length of at least 1, got {self.length}")
        table = self.bigrams
        if table is None:
            return
        if table.ndim != 1 or table.dtype.kind not in "iu":
            raise ValueError(f"a bigram table is one row of integers, got shape {table.shape} of {table.dtype}")
        if table.size and not (-1 <= table.min() and table.max() < len(table)):
            raise ValueError(f"bigrams must lie in -1…{len(table) - 1}, got {table.min()}…{table.max()}")

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the bigram table knows; None without one."""
        return None if self.bigrams is None else len(self.bigrams)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """A chain below the context's last token: copied nodes named "prompt" or "generation", then "bigram" ones; chance is not asked.

        The encoder's tokens are searched in place of the prompt where there are any; the generation only where the prompt holds no match.
        Raises ValueError if the bigram table is too short for a token it is asked about.
        """
        tree = TokenTree.rooted(context)
        text = np.array(context.tokens)
        given = text[: context.prompt_tokens] if context.source is None else np.array(context.source, text.dtype)
        for source, region in (("prompt", given), ("generation", text[context.prompt_tokens :])):
            start = continuation(region, text)
            if start is not None:
                tree = _chained(tree, region[start : start + self.length].tolist(), source)
                break
        return _chained(tree, self._filled(tree.tokens[-1], self.length - tree.guesses), "bigram")

    def _filled(self, token: int, missing: int) -> list[int]:
        tokens: list[int] = []
        while self.bigrams is not None and len(tokens) < missing:
            if token >= len(self.bigrams):
                raise ValueError(f"the bigram table has {len(self.bigrams)} entries, one per token of the vocabulary, and none for token {token}")
            token = int(self.bigrams[token])
            if token < 0:
                break
            tokens.append(token)
        return tokens


def continuation(region: Int[np.ndarray, " region"], text: Int[np.ndarray, " text"]) -> int | None:
    """Where in `region` the token stands that follows the longest suffix of `text` found there; None if its last token is not.

    A suffix at the very end of the region, with nothing after it, does not count. The earliest of equally long matches wins.
    """
    ending = text[::-1]
    ends = np.flatnonzero(region[:-1] == ending[0])
    compared, block = 1, 8
    while len(ends) > 1:
        steps = np.arange(compared, compared + block)
        places = ends[:, None] - steps
        equal = (region[np.maximum(places, 0)] == ending[np.minimum(steps, len(ending) - 1)]) & (places >= 0) & (steps < len(ending))
        whole = equal.all(1)
        if not whole.any():
            return int(ends[equal.argmin(1).argmax()]) + 1
        ends = ends[whole]
        compared, block = compared + block, 2 * block
    return int(ends[0]) + 1 if len(ends) else None


def _chained(tree: TokenTree, tokens: Sequence[int], source: str) -> TokenTree:
    if not tokens:
        return tree
    last = len(tree) - 1
    scores = [tree.scores[last] * DECAY**depth for depth in range(1, len(tokens) + 1)]
    return tree.grown(tokens, range(last, last + len(tokens)), source=source, scores=scores)
