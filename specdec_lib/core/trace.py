"""What a verification walk reports while it runs, one event per decision."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Choice(NamedTuple):
    """The target chose `token` after `node`; under lenience an accepted child may hold another."""

    node: int
    token: int
    child: int | None


class Trial(NamedTuple):
    """One child was tested against the residual distribution after its parent.

    wanted    the target's distribution [vocab], or the residual one after rejected siblings
    left      the residual distribution after the test; `wanted` itself if the child was accepted
    ratio     l · wanted ÷ offered at the child's token, with lenience l (1 for the target)
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


Trace = Callable[[Choice | Trial | FinalDraw], object]
"""A function that receives each event of a walk in order, such as `list.append`."""


def ignore(event: Choice | Trial | FinalDraw, /) -> None:
    """Discard an event: the default of every walk."""
