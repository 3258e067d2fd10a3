"""What a verification walk reports while it runs, one event per decision.

A reader of these events explains a round, or works out the distribution of a token, without a
second copy of the walk.
"""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


class Choice(NamedTuple):
    """The target chose a token after `node`; `child` is the child accepted there, None if none is.

    token    the target's own choice; an accepted child may hold another one under lenience
    """

    node: int
    token: int
    child: int | None


class Trial(NamedTuple):
    """One child was tested against the residual distribution after its parent.

    wanted    the target's distribution over tokens [vocab]; after rejected siblings the residual
              distribution max(0, target − draft), normalised
    left      the residual distribution after the test; `wanted` itself if the child was accepted
    ratio     l · wanted ÷ offered at the child's token, with lenience l (1 for the target); the
              child is accepted with probability min(1, ratio)
    accepted  whether the child was accepted
    """

    child: int
    wanted: Float[Tensor, " vocab"]
    left: Float[Tensor, " vocab"]
    ratio: float
    accepted: bool


class FinalDraw(NamedTuple):
    """No child of `node` was accepted, so `token` was drawn from `wanted` [vocab]."""

    node: int
    wanted: Float[Tensor, " vocab"]
    token: int


@runtime_checkable
class Trace(Protocol):
    """A function that receives each event of a walk in order, such as `list.append`."""

    def __call__(self, event: Choice | Trial | FinalDraw, /) -> object: ...


def ignore(event: Choice | Trial | FinalDraw, /) -> None:
    """Discard an event: the default of every walk."""
