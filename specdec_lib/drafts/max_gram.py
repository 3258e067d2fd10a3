"""Max-Gram: copy what followed the longest earlier occurrence of the context's own ending; a bigram
table fills the rest. The prompt is searched before the generation, and wins even with a match of
one token, as in the paper's listing.

Source: Chen et al. 2024 (cascade speculative drafting), section 3.3 and Listing 1. Where we differ:
a match lies wholly in the prompt or wholly in the generation, and something must follow it there;
no more than `length` tokens come back; a token that no bigram begins with ends the chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked, shown
from specdec_lib.core.tree import Count, TokenTree

DECAY = 0.75  # a node's score ÷ its parent's: it orders a chain
PROMPT = "prompt"
GENERATION = "generation"
BIGRAM = "bigram"
ORIGINS = (PROMPT, GENERATION, BIGRAM)  # sources of its nodes


@checked
@dataclass(frozen=True, eq=False)
class MaxGram:
    """A chain of copied tokens, continued from a bigram table.

    bigrams    integers [vocab]: likeliest next token, −1 for none (`Katz.bigrams`); or None
    length     tokens that are guessed, at most
    least      shortest suffix that is searched for, in tokens

    Raises ValueError for a table that is not one row of integers from −1 to below its length.
    """

    bigrams: np.ndarray | None = None
    length: Count = 10
    least: Count = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        table = self.bigrams
        if table is None:
            return
        row = table.ndim == 1 and table.dtype.kind in "iu"
        if not row or (table.size and not -1 <= table.min() <= table.max() < len(table)):
            raise ValueError(
                "a bigram table is one row of integers from -1 to below its length,"
                f" got {shown(table)} of shape {table.shape}"
            )

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the bigram table knows; None without one."""
        return None if self.bigrams is None else len(self.bigrams)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """Copy what followed the longest match (the earliest of a tie) in the prompt, or an
        encoder's tokens; without one, in the generation; then add bigrams. Sources: "prompt",
        "generation", "bigram".
        """
        origin, copied = self._copied(context)
        last = (context.tokens[-1], *copied)[-1]
        filled = self._filled(last, self.length - len(copied))
        sources = [origin] * len(copied) + [BIGRAM] * len(filled)
        return copied_chain(context, (*copied, *filled), sources)

    def _copied(self, context: Context) -> tuple[str, tuple[int, ...]]:
        """Where the match lies, and what followed it there."""
        text, *regions = searched(context)
        for origin, region in zip((PROMPT, GENERATION), regions, strict=True):
            end = find_ending(text, region[:-1], self.least)
            if end is not None:
                return origin, tuple(map(ord, region[end : end + self.length]))
        return "", ()

    def _filled(self, token: int, missing: int) -> list[int]:
        tokens: list[int] = []
        if self.bigrams is None or not missing:
            return tokens
        if token >= len(self.bigrams):
            raise ValueError(
                f"the bigram table has {len(self.bigrams)} entries, one per token of the"
                f" vocabulary, and none for token {token}"
            )
        likeliest = self.bigrams.item
        while len(tokens) < missing and (token := likeliest(token)) >= 0:
            tokens.append(token)
        return tokens


def copied_chain(context: Context, tokens: Sequence[int], sources: Sequence[str]) -> TokenTree:
    """The chain of these guesses after `context`, with scores that fall by `DECAY` per depth."""
    scores = [DECAY**depth for depth in range(1, len(tokens) + 1)]
    nodes = range(len(tokens))
    return TokenTree.rooted(context).grown(tokens, nodes, source=sources, scores=scores)


def searched(context: Context) -> tuple[str, str, str]:
    """The context as text, and where its ending is searched: prompt or source, and generation."""
    text = as_text(context.tokens)
    given = context.prompt_tokens
    first = text[:given] if context.source is None else as_text(context.source)
    return text, first, text[given:]


def find_ending(text: str, region: str, least: int) -> int | None:
    """The index in `region` after the first of `text`'s longest suffix; None if below `least`."""
    size = longest_ending(text, region)
    return region.index(text[-size:]) + size if size >= least else None


def longest_ending(text: str, region: str) -> int:
    """The length of the longest suffix of `text` in `region`."""
    most = min(len(text), len(region))
    size = 0
    step = 1
    while step:  # an ending stands there only if every shorter one does
        longer = size + step
        if longer <= most and text[-longer:] in region:
            size = longer
            step *= 2
        else:
            step //= 2
    return size


def as_text(tokens: Sequence[int]) -> str:
    """The tokens as characters, because strings are searched fast."""
    return "".join(map(chr, tokens))
