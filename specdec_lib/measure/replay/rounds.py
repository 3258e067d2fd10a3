"""The rounds of a setting along a recorded text.

Under `look_up` the text is the target's own, whatever is proposed: a round accepts the proposals
with which the text goes on, and then emits the text's next token. What is proposed comes from ranks
(`shape_rounds`) or choices (`cascade_rounds`) that were recorded at each position. `draft_rounds`
runs the draft itself, in `decode`, with the text in place of the target.
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
