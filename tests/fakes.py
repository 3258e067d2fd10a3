"""Test doubles, a chance that follows a script, and tests of what the real loop draws."""

import functools
import itertools
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from scipy import stats

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode, rounds
from specdec_lib.core.protocols import Usage
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.measure.cascade.record import Choices, Recording
from specdec_lib.models.table import TableModel, joint_distribution

fixed_model = TableModel.fixed
PROMPT = (1, 0)
HERE = Context.of(PROMPT)
T1 = Sampler(1.0)
CUT = {"top-k": Sampler(1.0, top_k=2), "top-p": Sampler(0.7, top_p=0.8)}
SAMPLERS = {"T=0": Sampler(0), "T=1": T1} | CUT
Law = dict[tuple[int, ...], float]  # of sequences of tokens


def table_model(
    vocabulary: int, seed: int, *, support: int | None = None, name="table", max_positions=1000
) -> TableModel:
    """A `TableModel` of random float64 logits that depend on every token so far; with `support`
    only so many tokens are possible, the same ones for any seed.
    """

    @functools.cache
    def logits(tokens: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(zlib.crc32(repr((seed, tokens)).encode()))
        found = 1.5 * torch.randn(vocabulary, dtype=torch.float64, generator=generator)
        if support is not None:
            found[[(sum(tokens) + i) % vocabulary for i in range(support, vocabulary)]] = -torch.inf
        return found

    return TableModel(logits, vocabulary, name, max_positions)


def assert_best(tree, row, chance, match=None, *, budget: int, depth: int, rel=1e-6) -> None:
    """A tree holds the `budget` best paths of all, by the products of their probabilities or, with
    a match table, of their match rates; `row` gives logits after a path.
    """
    scored, level = {}, {(): 1.0}
    for at in range(tree.root_position + 1, tree.root_position + 1 + depth):
        longer = {}
        for path, above in level.items():
            logits = row(path)
            tokens, factors = range(len(logits)), logits.softmax(-1).tolist()
            if match is not None:
                tokens, gaps = chance.rank(logits, at, len(logits))
                factors = [match.rate(*one) for one in enumerate([gaps[1], *gaps[1:]])]
            for token, factor in zip(tokens, factors, strict=True):
                longer[*path, token] = above * factor
        scored |= (level := longer)
    found = {tree.path_tokens(node): tree.scores[node] for node in range(1, len(tree))}
    assert len(found) == tree.guesses == budget
    assert found == pytest.approx({path: scored[path] for path in found}, rel=rel)
    assert min(found.values()) >= sorted(scored.values())[-budget] * (1 - rel)


class Table:
    """What a fake model has that runs no network and remembers nothing."""

    runtime, usage = "", None

    def forget(self) -> None:
        pass


class Clock:
    """Stands still unless something takes time."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Linear:
    """A model that remembers paths, and takes fixed + per row + per cached token, times the next of
    its factors for each timed pass; a fifth of it around the pass.
    """

    name: str
    clock: Clock
    fixed: float = 1.0
    row: float = 0.0
    context: float = 0.0
    factors: tuple[float, ...] = (1.0,)
    runtime: str = "made up"
    vocabulary: int = 50
    max_positions: int = 60
    usage: Usage = field(default_factory=Usage)
    known: set = field(default_factory=set)
    asked: list = field(default_factory=list)
    turns: list[str] = field(default_factory=list)

    def forget(self) -> None:
        self.known.clear()

    def score(self, context: Context, tree: TokenTree) -> torch.Tensor:
        paths = {context.tokens[: place + 1] for place in range(len(context))}
        paths |= {context.tokens + tree.path_tokens(node) for node in range(len(tree))}
        new = len(paths - self.known)
        self.known |= paths
        self.asked.append((len(context) - 1, new))
        self.turns.append(self.name)
        # a repeat reads the context, makes a pass that is not timed, and one that is
        factor = self.factors[(len(self.asked) // 3 - 2) % len(self.factors)]
        seconds = self.fixed + self.row * len(tree) + self.context * (len(context) - 1)
        self.usage += Usage(1, new, 0.8 * factor * seconds)
        self.clock.now += factor * seconds
        return torch.zeros(len(tree), self.vocabulary)


@dataclass
class Says:
    """A draft that says these tokens, and keeps what it was asked about, and the chance's nesting.

    factor    of each score to its parent's
    """

    tokens: tuple[int, ...]
    name: str = "says"
    factor: float = 0.5
    asked: list[tuple[int, ...]] = field(default_factory=list)
    nested: list[tuple] = field(default_factory=list)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        self.asked.append(context.tokens)
        self.nested.append(chance.nesting)
        scores = [self.factor**depth for depth in range(1, len(self.tokens) + 1)]
        places = range(len(self.tokens))
        return TokenTree.rooted(context).grown(self.tokens, places, source=self.name, scores=scores)


@dataclass(frozen=True)
class Scripted(Chance):
    """A `Chance` whose choice at a position is given."""

    choices: dict[int, int] = field(default_factory=dict)

    def choose(self, logits: torch.Tensor, position: int) -> int:
        return self.choices[position]


def distance(one: dict, other: dict) -> float:
    """The largest difference of two distributions."""
    return max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys())


def deviation(target, draft, sampler: Sampler, rule=reject, *, length=3) -> float:
    """How far the exact distribution of speculative tokens lies from the target's own."""
    found = speculative_distribution(target, draft, sampler, rule, length=length)
    return distance(found, joint_distribution(target, PROMPT, sampler, length))


def first_round(target, draft, prompt, chance, *, rule, room) -> tuple[int, ...]:
    """What the real loop emits in one round."""
    played, _ = next(rounds(target, draft, prompt, chance, max_new_tokens=room, rule=rule))
    return played.emitted


def speculative_distribution(
    target, draft, sampler: Sampler, rule=reject, *, length=3, once=False
) -> Law:
    """The exact joint distribution of `length` tokens: rounds enumerated whole, and composed; of
    one round alone, the rest is left to the target.
    """

    @functools.cache
    def after(begun: tuple[int, ...]) -> Law:
        left = length - len(begun)
        if left == 0 or (once and begun):
            return joint_distribution(target, PROMPT + begun, sampler, left)
        play = functools.partial(first_round, target, draft, PROMPT + begun, rule=rule, room=left)
        distribution: Law = Counter()
        for emitted, probability in every_outcome(play, sampler).items():
            for more, rest in after(begun + emitted).items():
                distribution[emitted + more] += probability * rest
        return distribution

    return after(())


def one_round_distribution(target, draft, sampler: Sampler, length=3, rule=reject) -> Law:
    return speculative_distribution(target, draft, sampler, rule, length=length, once=True)


# At α = 1e-4, 5,000 samples find every distribution of a token pair (9 cells) at a
# total-variation distance of .05 with power over .95.
SAMPLES, ALPHA = 5_000, 1e-4


def pairs_p_value(chance_class, draft, wanted, *, length=20, samples=SAMPLES) -> float:
    """Of a G-test of pairs of neighbouring tokens, drawn by the real loop with `reject`, under
    independent draws of `wanted`: every distribution is the same everywhere. `length` tokens have
    one seed.
    """
    target, counts = fixed_model(wanted, "target"), Counter()
    for seed in range(2 * samples // length):
        chance = chance_class(seed, Sampler(1.0))
        tokens = decode(target, draft, (0,), chance, max_new_tokens=length, rule=reject).tokens
        counts.update(zip(tokens[::2], tokens[1::2], strict=True))
    cells = list(itertools.product(range(len(wanted)), repeat=2))
    expected = [samples * wanted[one] * wanted[two] for one, two in cells]
    found = [counts[cell] for cell in cells]
    return stats.power_divergence(found, expected, lambda_="log-likelihood").pvalue


def assert_refused(call: Callable[[], object], said: str) -> None:
    """The call raises a ValueError of one line in which the pattern is found."""
    with pytest.raises(ValueError, match=said) as refused:
        call()
    assert "\n" not in str(refused.value)


def recording(name: str, seed: int, length: int = 60) -> Recording:
    """Of four kinds of token the middle is right for .9, the draft for .7, copies for .4."""
    dice = np.random.default_rng(seed)
    text = tuple(dice.integers(0, 4, length).tolist())

    def choices(right: float) -> Choices:
        chosen = tuple(token if dice.random() < right else (token + 1) % 4 for token in text)
        worth = np.where(np.eye(4)[[*chosen]] > 0, 1, dice.random((length, 4)).astype(np.float32))
        return Choices(chosen, tuple(dict(enumerate(row)) for row in worth.tolist()))

    ahead = (text[place : place + 64] for place in range(length))
    copies = tuple(tuple(t if dice.random() < 0.4 else 0 for t in one) for one in ahead)
    each = {"middle": choices(0.9), "draft": choices(0.7)}
    return Recording(name, Sampler(0.0), text, each, copies)
