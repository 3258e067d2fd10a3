"""Exact probabilities of every outcome of sampling: a `Chance` visits all branches of its coins and
draws, one per run. Tests enumerate the real code with it, not a copy of its formulas.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from specdec_lib.core.chance.keyed import Chance, Slots
from specdec_lib.core.chance.sampler import PerToken, Sampler


@dataclass
class Branches:
    """The decisions of one run, and the product of their probabilities.

    begun     the branch to take at each of the first decisions; later ones take the first possible
    others    `begun` of runs to come: each possible branch that this run leaves is added
    """

    begun: tuple[int, ...] = ()
    others: list[tuple[int, ...]] = field(default_factory=list)
    taken: dict[Hashable, int] = field(default_factory=dict)
    probability: float = 1.0

    def decide(self, key: Hashable, probabilities: Sequence[float]) -> int:
        """The index of the branch taken; raises ValueError if `key` was decided before."""
        if key in self.taken:
            raise ValueError(f"every decision needs a key of its own, asked twice for {key}")
        if len(self.taken) < len(self.begun):
            branch = self.begun[len(self.taken)]
        else:
            branch, *left = (one for one, share in enumerate(probabilities) if share > 0)
            self.others += [(*self.taken.values(), one) for one in reversed(left)]
        self.taken[key] = branch
        self.probability *= probabilities[branch]
        return branch


@dataclass(frozen=True)
class EveryBranch(Chance):
    """A `Chance` whose coins and draws follow `branches`; sampling by noise raises ValueError."""

    branches: Branches = field(default_factory=Branches)

    def noise_key(self, position: int) -> int:
        if self.sampler.temperature > 0:
            raise ValueError(
                "noise cannot be enumerated; use siblings without noise, or temperature 0"
                f" instead of {self.sampler.temperature}"
            )
        return super().noise_key(position)

    def coin(self, probability: float, root_position: int, slots: Slots) -> bool:
        heads = min(1.0, max(0.0, probability))
        key = ("coin", self.nesting, root_position, slots)
        return bool(self.branches.decide(key, [1 - heads, heads]))

    def draw(self, use: str, probs: PerToken, root_position: int, slots: Slots) -> int:
        key = (use, self.nesting, root_position, slots)
        return self.branches.decide(key, (probs / probs.sum()).tolist())


def every_outcome(
    run: Callable[[EveryBranch], tuple[int, ...]],
    sampler: Sampler,
    kind: Callable[..., EveryBranch] = EveryBranch,
) -> dict[tuple[int, ...], float]:
    """The exact probability of each outcome of `run`, called once per path through branches."""
    outcomes: dict[tuple[int, ...], float] = {}
    begun: list[tuple[int, ...]] = [()]
    while begun:
        branches = Branches(begun.pop(), begun)
        outcome = run(kind(0, sampler, branches=branches))
        outcomes[outcome] = outcomes.get(outcome, 0.0) + branches.probability
    return outcomes
