"""The sampler's distributions, the fit of the shared noise, and independent coins and draws."""

import hashlib
import itertools
import math

import numpy as np
import pytest
import torch
from fakes import assert_refused
from scipy import stats

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.chance.sampler import _kth_largest

T1 = Sampler(1.0)
LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0], dtype=torch.float64)


WRONG = {"temperature": (-0.1, math.nan, 1e-46), "top_k": (0, True), "top_p": (0.0, 1.1)}
NO_LOGITS = torch.tensor([[math.nan, 0.0], [math.inf, 0.0], [-math.inf, -math.inf]])
BAD = list(itertools.product((Sampler(0), T1), NO_LOGITS))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        *((lambda a=name, b=one: Sampler(**{a: b}), name) for name in WRONG for one in WRONG[name]),
        *(
            (lambda one=one, bad=bad: Chance(0, one).choose(bad, 3), r"NaN or \+inf")
            for one, bad in BAD
        ),
        (lambda: Chance(True), "seed of Chance must be a whole number, got True"),
    ],
)
def test_values_out_of_range_and_logits_that_are_no_distribution_are_refused(call, said):
    assert_refused(call, said)


def test_a_sampler_keeps_ties_and_the_smallest_set_that_holds_the_mass():
    assert Sampler(0).probs(torch.tensor([1.0, 3.0, 3.0])).tolist() == [0, 1, 0]
    assert Sampler(1.0, top_k=2).probs(torch.tensor([1.0, 3.0, 1.0, 0.0])).count_nonzero() == 3
    probs = LOGITS.softmax(-1)
    kept = Sampler(1.0, top_p=float(probs[:2].sum()) - 1e-9).probs(LOGITS)
    assert kept.tolist() == pytest.approx([*(probs[:2] / probs[:2].sum()).tolist(), 0, 0])
    assert Sampler(1.0, top_p=1e-9).probs(LOGITS).tolist() == [1, 0, 0, 0]
    assert Sampler(1.0).probs(LOGITS).dtype == torch.float64
    assert Sampler(1.0).probs(LOGITS.bfloat16()).dtype == torch.float32


def test_noise_is_plain_integer_arithmetic_of_seed_and_position():
    """SplitMix64 written with Python's own integers."""
    key = hashlib.blake2b(repr(("noise", 5, 9)).encode(), digest_size=8)
    state, noise = int.from_bytes(key.digest(), "little"), Chance(5, T1).noise(9, range(50))
    for token in range(50):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        uniform = (((mixed ^ (mixed >> 31)) >> 12) + 0.5) * 2.0**-52
        assert noise[token] == pytest.approx(-math.log(-math.log(uniform)), abs=1e-12)
    assert not any(Chance(seed, T1).noise(at, range(50)) == noise for seed, at in ((6, 9), (5, 8)))


@pytest.mark.parametrize("positions, fits", [((10, 11), True), ((0, 0), False)])
def test_choices_follow_the_distribution_jointly_over_two_positions(positions, fits, unchecked):
    """A G-test of 16 cells: 15 degrees of freedom at α = 1e-4, 8,000 samples find a total-variation
    distance of .05 with power over .95.
    """
    assert stats.ncx2.sf(stats.chi2.isf(1e-4, 15), 15, 4 * 0.05**2 * 8_000) > 0.95
    distribution, counts = LOGITS.softmax(-1), [0] * 16
    for seed in range(8_000):
        one, two = (Chance(seed, Sampler(1.0)).choose(LOGITS, position) for position in positions)
        counts[4 * one + two] += 1
    expected = (distribution[:, None] * distribution * 8_000).flatten().numpy()
    found = stats.power_divergence(counts, expected, lambda_="log-likelihood").pvalue
    assert (found > 1e-4) == fits


def test_rank_begins_with_the_choice_and_never_leaves_the_support():
    for seed in range(50):
        chance = Chance(seed, Sampler(1.0, top_k=3))
        tokens, gaps = chance.rank(LOGITS, 4, 10)
        assert tokens[0] == chance.choose(LOGITS, 4)
        assert sorted(tokens) == [0, 1, 2]
        assert gaps[0] == 0 and gaps == sorted(gaps)
    assert Chance(0).rank(LOGITS, 4, 3) == ([0, 1, 2], [0.0, 1.0, 2.0])


def test_a_tie_goes_to_the_lower_token_everywhere():
    chance, flat = Chance(0), torch.zeros(10)
    assert chance.choose(flat, 3) == 0 and chance.rank(flat, 3, 3) == ([0, 1, 2], [0.0, 0.0, 0.0])
    coarse = torch.randn(4096, generator=torch.Generator().manual_seed(0)).bfloat16()
    assert chance.rank(coarse, 3, 50)[0][0] == chance.choose(coarse, 3)


def test_a_numpy_seed_is_the_same_seed():
    one, two = Chance(np.int64(7), T1), Chance(7, T1)
    assert one.noise(4, [5]) == two.noise(4, [5]) and one.coin(0.5, 3, ()) == two.coin(0.5, 3, ())


def test_every_part_of_a_key_matters_and_an_inner_chance_shares_the_noise_alone():
    uses, places = ("coin", "sibling", "emit"), ((), (0,), (1,), (0, 0))
    keys = itertools.product(uses, (0, 1), places)
    uniforms = [Chance(seed).uniform(*key) for key in keys for seed in (0, 1)]
    inner = Chance(0, T1).inner("reviewer", (0,)), Chance(0, T1).inner("reviewer")
    uniforms += [one.uniform("coin", 0, ()) for one in inner]
    assert len(set(uniforms)) == len(uniforms) == 50
    assert all(0 <= uniform < 1 for uniform in uniforms)
    assert inner[0].noise(7, range(9)) == Chance(0, T1).noise(7, range(9))


def test_a_draw_never_returns_a_token_without_probability(monkeypatch):
    for number, token in ((0.0, 1), (1 - 2.0**-53, 3)):
        monkeypatch.setattr(Chance, "uniform", lambda *_, number=number: number)
        assert Chance(0).draw("emit", torch.tensor([0.0, 0.5, 0.0, 0.5, 0.0]), 0, ()) == token


def test_the_k_largest_are_those_of_a_full_sort_whatever_the_groups():
    made = np.random.default_rng(0)
    for size, k in itertools.product((64, 100, 129, 5_000), (1, 2, 7, 60)):
        values = made.integers(0, 40, size).astype(np.float32)  # many ties, also of the k-th
        values[made.random(size) < 0.5] = -np.inf
        if size == 5_000:
            values[::64] = 50 + made.random(len(values[::64]))  # the largest share a few groups
        assert _kth_largest(values, k) == np.sort(values)[-k]
