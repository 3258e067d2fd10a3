"""How much of a text is a loop."""

from collections.abc import Sequence

REPEATED = 8  # tokens of an n-gram that count as a loop
LOOPING = 0.3  # a generation that repeats this share or more is reported apart


def repetition(tokens: Sequence[int]) -> float:
    """The share of tokens that end an n-gram of `REPEATED` tokens which was generated before."""
    seen: set[tuple[int, ...]] = set()
    repeated = 0
    for end in range(REPEATED, len(tokens) + 1):
        gram = tuple(tokens[end - REPEATED : end])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(tokens) if tokens else 0.0
