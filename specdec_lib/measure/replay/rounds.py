"""The rounds of a setting along a recorded text.

Under `look_up` (Gumbel-coupled verification) the text is the target's own, whatever is proposed: a
round accepts the proposals with which the text goes on, and then emits the text's next token. So a
recorded text gives the rounds of any setting without another pass of the target. Settings differ in
where their proposals come from:

- `shape_rounds`: a fixed tree proposes by rank, and the text's rank at each position was recorded;
- `cascade_rounds`: a K matrix hands up choices of models that were recorded at each position;
- `draft_rounds`: a draft runs, and `decode` plays its rounds with the text in place of the target.
"""

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

Proposal = TypeVar("Proposal")


class RoundAlong(NamedTuple, Generic[Proposal]):
    """One round of a setting along a text.

    start       the place of the text's token that the first proposal stands for
    accepted    how many proposals the text confirms
    emitted     tokens: one more than was accepted, but where the text ends
    """

    start: int
    accepted: int
    emitted: int
    proposal: Proposal


def rounds_along(
    length: int, propose: Callable[[int], tuple[int, Proposal]]
) -> Iterator[RoundAlong[Proposal]]:
    """The rounds along a text of that length.

    propose    for the place where a round starts: how many proposals are accepted there, and they
               themselves
    """
    start = 0
    while start < length:
        accepted, proposal = propose(start)
        yield RoundAlong(start, accepted, min(accepted + 1, length - start), proposal)
        start += accepted + 1
