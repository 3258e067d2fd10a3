"""A `Chance` that visits every branch: exact distributions by enumeration instead of sampling."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance.keyed import Chance, Slots
from specdec_lib.core.chance.sampler import Sampler


@dataclass
class Branches:
    """The decisions of one run, the product of their probabilities, and their keys.

    script    the branch to take at each of the first decisions; later ones take the first branch
    taken     per decision: the branch taken, and the number of possible ones
    """

    script: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    probability: float = 1.0
    keys: set[Hashable] = field(default_factory=set)

    def decide(self, key: Hashable, probabilities: Sequence[float]) -> int:
        """The index of the branch taken; raises ValueError if `key` was decided before."""
        if key in self.keys:
            raise ValueError(f"every decision needs a key of its own, asked twice for {key}")
        self.keys.add(key)
        possible = [branch for branch, probability in enumerate(probabilities) if probability > 0]
        choice = self.script[len(self.taken)] if len(self.taken) < len(self.script) else 0
        self.taken.append((choice, len(possible)))
        self.probability *= probabilities[possible[choice]]
        return possible[choice]

    def next_script(self) -> list[int] | None:
        """The script of the next run in order, or None after the last."""
        taken = list(self.taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        return [*(choice for choice, _ in taken[:-1]), taken[-1][0] + 1] if taken else None


@dataclass(frozen=True)
class EveryBranch(Chance):
    """A `Chance` whose coins and draws follow `branches`; sampling by noise raises ValueError."""

    branches: Branches = field(default_factory=lambda: Branches([]))

    def noise_key(self, position: int) -> int:
        if (temperature := self.sampler.temperature) > 0:
            remedy = "use siblings without noise, or temperature 0"
            raise ValueError(f"noise cannot be enumerated; {remedy} instead of {temperature}")
        return super().noise_key(position)

    def coin(self, probability: float, root_position: int, slots: Slots) -> bool:
        heads, key = min(1.0, max(0.0, probability)), ("coin", self.nesting, root_position, slots)
        return bool(self.branches.decide(key, [1 - heads, heads]))

    def draw(
        self, use: str, probs: Float[Tensor, " vocab"], root_position: int, slots: Slots
    ) -> int:
        key = (use, self.nesting, root_position, slots)
        return self.branches.decide(key, (probs / probs.sum()).tolist())


def every_outcome(
    run: Callable[[EveryBranch], tuple[int, ...]],
    sampler: Sampler,
    kind: Callable[..., EveryBranch] = EveryBranch,
) -> dict[tuple[int, ...], float]:
    """The exact probability of each outcome of `run`, which is called once per branch with a
    `kind`: `EveryBranch` or a subclass.
    """
    outcomes: dict[tuple[int, ...], float] = {}
    script: list[int] | None = []
    while script is not None:
        branches = Branches(script)
        outcome = run(kind(0, sampler, branches=branches))
        outcomes[outcome] = outcomes.get(outcome, 0.0) + branches.probability
        script = branches.next_script()
    return outcomes
