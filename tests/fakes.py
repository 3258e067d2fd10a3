"""Test doubles: a model that is a table of laws, and chances that visit every branch or follow a script."""

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from specdec_lib.chance import Chance, Sampler
from specdec_lib.context import Context
from specdec_lib.lm import check_root
from specdec_lib.tree import TokenTree


@dataclass(frozen=True, eq=False)
class TableModel:
    """A model whose logits are a function of all tokens so far; counts nothing."""

    laws: Callable[[tuple[int, ...]], torch.Tensor]
    vocabulary: int
    name: str = "table"
    max_positions: int = 1000

    def score(self, context: Context, tree: TokenTree) -> torch.Tensor:
        check_root(context, tree, self.vocabulary, self.max_positions)
        return torch.stack([self.laws(context.tokens + tree.path_tokens(node)) for node in range(len(tree))])


def random_laws(vocabulary: int, seed: int, support: int | None = None) -> Callable[[tuple[int, ...]], torch.Tensor]:
    """float64 logits that depend on every token so far; with `support` only so many tokens are possible, the same ones for any seed."""
    known: dict[tuple[int, ...], torch.Tensor] = {}

    def laws(tokens: tuple[int, ...]) -> torch.Tensor:
        if tokens not in known:
            generator = torch.Generator().manual_seed(zlib.crc32(repr((seed, tokens)).encode()))
            logits = 1.5 * torch.randn(vocabulary, dtype=torch.float64, generator=generator)
            if support is not None:
                logits[[(sum(tokens) + i) % vocabulary for i in range(support, vocabulary)]] = -torch.inf
            known[tokens] = logits
        return known[tokens]

    return laws


def table_model(vocabulary: int, seed: int, *, support: int | None = None, name: str = "table", max_positions: int = 1000) -> TableModel:
    """A `TableModel` of random laws."""
    return TableModel(random_laws(vocabulary, seed, support), vocabulary, name, max_positions)


def fixed_model(probs: Sequence[float], name: str = "table") -> TableModel:
    """A `TableModel` with one law everywhere."""
    logits = torch.tensor(probs, dtype=torch.float64).log()
    return TableModel(lambda tokens: logits, len(probs), name)


@dataclass
class Branches:
    """The decisions of one run: a script that is followed, then first branches, and the probability of all."""

    script: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    probability: float = 1.0
    keys: set = field(default_factory=set)

    def decide(self, key: tuple, probabilities: Sequence[float]) -> int:
        if key in self.keys:
            raise AssertionError(f"asked twice for {key}")
        self.keys.add(key)
        open_branches = [branch for branch, probability in enumerate(probabilities) if probability > 0]
        place = len(self.taken)
        choice = self.script[place] if place < len(self.script) else 0
        self.taken.append((choice, len(open_branches)))
        self.probability *= probabilities[open_branches[choice]]
        return open_branches[choice]

    def next_script(self) -> list[int] | None:
        taken = list(self.taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        return [*(choice for choice, _ in taken[:-1]), taken[-1][0] + 1] if taken else None


@dataclass(frozen=True)
class EveryBranch(Chance):
    """A `Chance` that takes the branches of a script; a key that is asked twice in one round is an error.

    Noise has no branches here: sampling by noise is refused, temperature 0 is as in `Chance`.
    """

    branches: Branches = field(default_factory=lambda: Branches([]))

    def choose(self, logits: torch.Tensor, position: int) -> int:
        assert self.sampler.temperature == 0, "noise cannot be enumerated"
        return super().choose(logits, position)

    def rank(self, logits: torch.Tensor, position: int, k: int) -> tuple[list[int], list[float]]:
        assert self.sampler.temperature == 0, "noise cannot be enumerated"
        return super().rank(logits, position, k)

    def coin(self, probability: float, committed: int, slots: tuple[int, ...]) -> bool:
        heads = min(1.0, max(0.0, probability))
        return bool(self.branches.decide(("coin", self.nesting, committed, slots), [1 - heads, heads]))

    def draw(self, use: str, law: torch.Tensor, committed: int, slots: tuple[int, ...]) -> int:
        return self.branches.decide((use, self.nesting, committed, slots), (law / law.sum()).tolist())


def every_outcome(run: Callable[[EveryBranch], tuple[int, ...]], sampler: Sampler) -> dict[tuple[int, ...], float]:
    """The exact law of what `run` returns: every branch of the real code is visited once."""
    law: dict[tuple[int, ...], float] = {}
    for branches in _every_script(lambda branches: _record(run, sampler, branches)):
        outcome, probability = branches
        law[outcome] = law.get(outcome, 0.0) + probability
    return law


def _record(run, sampler: Sampler, branches: Branches) -> tuple[tuple[int, ...], float]:
    return run(EveryBranch(0, sampler, branches=branches)), branches.probability


def _every_script(play) -> Iterator:
    script: list[int] | None = []
    while script is not None:
        branches = Branches(script)
        yield play(branches)
        script = branches.next_script()


@dataclass(frozen=True)
class Scripted(Chance):
    """A `Chance` whose choice at a position is given."""

    choices: dict[int, int] = field(default_factory=dict)

    def choose(self, logits: torch.Tensor, position: int) -> int:
        return self.choices[position]


def target_law(model: TableModel, prompt: tuple[int, ...], sampler: Sampler, length: int) -> dict[tuple[int, ...], float]:
    """The exact joint law of the next `length` tokens of the target alone."""
    law: dict[tuple[int, ...], float] = {}
    for tokens in itertools.product(range(model.vocabulary), repeat=length):
        probability = 1.0
        for place, token in enumerate(tokens):
            probability *= float(sampler.probs(model.laws(prompt + tokens[:place]))[token])
        if probability > 0:
            law[tokens] = probability
    return law


def distance(one: dict, other: dict) -> float:
    """The largest difference of two laws."""
    return max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys())
