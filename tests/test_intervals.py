"""Ratios over prompts: what they are, what their intervals cover, and what pairing is worth."""

import math

import numpy as np
import pytest
from scipy import stats

from specdec_lib.measure.intervals import bootstrap


def test_bootstrap_gives_the_ratio_of_sums_and_an_interval_around_it():
    ratio, low, high = bootstrap([10, 20, 30], [10, 10, 10])
    assert ratio == 2 and 1 <= low < 2 < high <= 3
    assert bootstrap([10, 20, 30], [10, 10, 10]) == (ratio, low, high)
    assert bootstrap([5, 5], [5, 5]) == (1, 1, 1)


def test_the_interval_is_that_of_scipy():
    random = np.random.default_rng(5)
    tokens, rounds = random.integers(0, 60, 17), random.integers(0, 9, 17)
    how = {"n_resamples": 500, "paired": True, "vectorized": True, "method": "percentile"}
    found = stats.bootstrap(
        (tokens, rounds),
        lambda above, below, axis: above.sum(axis) / below.sum(axis),
        rng=np.random.default_rng(3),
        **how,
    ).confidence_interval
    wanted = tokens.sum() / rounds.sum(), found.low, found.high
    assert bootstrap(tokens, rounds, resamples=500, seed=3) == pytest.approx(wanted)


def test_the_bootstrap_interval_covers():
    """Of 200 samples of 60 prompts about 95 % of the intervals hold the true ratio (.88 is 4.5
    standard errors below); half as wide, far fewer.
    """
    random, hits, narrow = np.random.default_rng(0), 0, 0
    for trial in range(200):
        rounds = random.integers(10, 60, 60)
        tokens = rounds * 2 * np.exp(0.3 * random.standard_normal(60) - 0.045)
        _, low, high = bootstrap(tokens, rounds, resamples=400, seed=trial)
        hits += low <= 2 <= high
        narrow += (
            2 - (2 - low) / 2 <= 2 <= 2 + (high - 2) / 2
            and abs((low + high) / 2 - 2) < (high - low) / 4
        )
    assert 0.88 <= hits / 200 <= 0.99
    assert narrow / 200 < 0.88


def test_the_paired_interval_covers_and_is_narrower_than_an_unpaired_one():
    """As above, for 1.25 times as many tokens per round from prompts that are easy or hard for
    both; half as wide, it holds 1.25 in about 67 %.
    """
    random, hits, narrow, paired, unpaired = np.random.default_rng(1), 0, 0, 0.0, 0.0
    for trial in range(200):
        ease = np.exp(0.4 * random.standard_normal(60) - 0.08)
        rounds_a, rounds_b = random.integers(10, 60, 60), random.integers(10, 60, 60)
        tokens_a = rounds_a * 2.5 * ease * np.exp(0.1 * random.standard_normal(60) - 0.005)
        tokens_b = rounds_b * 2.0 * ease * np.exp(0.1 * random.standard_normal(60) - 0.005)
        _, low, high = bootstrap(tokens_a, rounds_a, tokens_b, rounds_b, resamples=400, seed=trial)
        hits += low <= 1.25 <= high
        narrow += abs((low + high) / 2 - 1.25) < (high - low) / 4
        paired += high - low
        other = random.permutation(60)
        _, low, high = bootstrap(
            tokens_a, rounds_a, tokens_b[other], rounds_b[other], resamples=400, seed=trial
        )
        unpaired += high - low
    assert 0.88 <= hits / 200 <= 0.99
    assert narrow / 200 < 0.88
    assert paired < 0.9 * unpaired


def test_pairing_cancels_what_two_drafts_share():
    tokens, rounds = np.array([10, 80, 30, 5]), [4, 4, 4, 4]
    assert bootstrap(2 * tokens, rounds, tokens, rounds) == (2, 2, 2)
    ratio, low, high = bootstrap([6, 4], [2, 2], [1, 3], [2, 2])
    assert ratio == 2.5 and low == pytest.approx(4 / 3) and high == 6


def test_nothing_to_divide_by_is_nan_and_a_resample_without_it_is_left_out():
    assert all(map(math.isnan, bootstrap([1], [0])))
    assert all(map(math.isnan, bootstrap([], [])))
    assert bootstrap([0, 3], [0, 1]) == (3, 3, 3)
    for zero in range(1, 4):
        columns = ([0, 0] if place == zero else [1, 1] for place in range(4))
        assert all(map(math.isnan, bootstrap(*columns)))
    assert bootstrap([1, 0], [1, 0], [0, 1], [0, 1], resamples=1, seed=1)[0] == 1
    assert bootstrap([0, 0], [1, 1], [1, 1], [1, 1]) == (0, 0, 0)


def test_uneven_columns_and_no_resamples_are_refused():
    with pytest.raises(ValueError, match="as many numerators as denominators, got 1 and 2"):
        bootstrap([1], [1, 2])
    with pytest.raises(ValueError, match="got 2 and 2 and 2 and 1"):
        bootstrap([1, 1], [1, 1], [1, 1], [1])
    with pytest.raises(ValueError, match="at least 1 resample, got 0"):
        bootstrap([1], [1], resamples=0)
