"""Cascades by closed form: the paper's theorems, against published numbers and simulation."""

import math

import numpy as np
import pytest

from specdec_lib.theory.cascades import (
    best_relay,
    counted_speed_up,
    phi,
    relay_speed_up,
    vertical_tokens,
)
from specdec_lib.theory.chains import chain_speed_up, chain_tokens, speed_up
from specdec_lib.workload.published import price_list, published

# rate, inner rate, length, reviews, tokens
VERTICAL = [(0.8, 0.3, 10, 2, 2.8283), (0.65, 0.2, 5, 3, 2.4606), (0.73, 0.5, 3, 4, 3.3928)]
FREE_MAX_GRAM = [  # rate, cost, % at .2 and .4
    *((0.65, 0.0069, 0.9, 1.9), (0.75, 0.0069, 1.4, 3.0)),
    *((0.73, 0.022, 2.8, 5.9), (0.8, 0.022, 3.6, 7.8)),
]


def simulated(rate, inner, length, reviews, samples: int = 500_000) -> np.ndarray:
    """The tokens that so many rounds of a vertical cascade emit, a coin per token."""
    rng = np.random.default_rng(4)
    kept, alive = np.zeros(samples, int), np.ones(samples, bool)
    for _ in range(reviews):
        accepted = (rng.random((samples, length)) < inner).cumprod(axis=1).sum(axis=1)
        for token in range(length + 1):
            tried = alive & (token <= accepted)  # the draft hands up its own token too
            lucky = rng.random(samples) < rate
            kept += tried & lucky
            alive &= ~tried | lucky
    return kept + 1


def agrees(value: float, samples: np.ndarray) -> bool:
    """Within half a percent of the samples' mean, which is more than four standard errors."""
    mean, error = samples.mean(), samples.std() / math.sqrt(samples.size)
    assert 4 * error < 0.005 * mean
    return abs(value / mean - 1) < 0.005


def vertical_speed_up(rate, inner, length, reviews, cost: float) -> float:
    tokens = vertical_tokens(rate, inner, length, reviews)
    return speed_up(tokens, draft_passes=reviews, draft_cost=cost)


@pytest.mark.parametrize("x", (0, 0.7, 1, 2.5))
@pytest.mark.parametrize("length", (0, 1, 6))
@pytest.mark.parametrize("rate", (0, 0.4, 1))
def test_phi_is_the_generating_function_of_a_chains_tokens(rate, length, x):
    chances = [*(rate**accepted * (1 - rate) for accepted in range(length)), rate**length]
    mean = sum(chance * x**tokens for tokens, chance in enumerate(chances, 1))
    assert phi(rate, length, x) == pytest.approx(mean)


def test_phi_is_the_printed_fraction_with_its_exponent_mended():
    rate, length, x = 0.73, 3, 0.6
    misprinted, mended = (
        1 + (x - 1) * (1 - (rate * x) ** power) / (1 - rate * x) for power in (length, length + 1)
    )
    assert phi(rate, length, x) == pytest.approx(mended) and abs(misprinted - mended) > 0.01


@pytest.mark.parametrize("rate, inner, length, reviews, tokens", VERTICAL)
def test_a_vertical_cascade_emits_what_was_published(rate, inner, length, reviews, tokens):
    found = vertical_tokens(rate, inner, length, reviews)
    assert found == pytest.approx(tokens, abs=5e-5)
    closed = (1 - rate * phi(inner, length, rate) ** reviews) / (1 - rate)
    assert found == pytest.approx(closed)


@pytest.mark.parametrize(
    "rate, inner, length, reviews", [case[:4] for case in VERTICAL] + [(0.9, 0.8, 2, 3)]
)
def test_a_vertical_cascade_emits_what_a_simulation_does(rate, inner, length, reviews):
    samples = simulated(rate, inner, length, reviews)
    assert agrees(vertical_tokens(rate, inner, length, reviews), samples)
    assert not agrees(vertical_tokens(rate, inner, length, reviews + 1), samples)


@pytest.mark.parametrize("rate, inner, length, reviews", [(0.73, 0.5, 3, 4), (0.9, 0.8, 2, 3)])
def test_a_simulation_tells_the_misprinted_exponent(rate, inner, length, reviews):
    misprinted = 1 + (rate - 1) * (1 - (inner * rate) ** length) / (1 - inner * rate)
    samples = simulated(rate, inner, length, reviews)
    assert not agrees((1 - rate * misprinted**reviews) / (1 - rate), samples)


def test_a_vertical_cascade_at_the_edges():
    assert vertical_tokens(1, 0.5, 3, 4) == pytest.approx(1 + 4 * chain_tokens(0.5, 3))
    assert vertical_tokens(1 - 1e-13, 0.5, 3, 4) == pytest.approx(vertical_tokens(1, 0.5, 3, 4))
    assert vertical_tokens(0.6, 0.5, 3, 0) == 1
    assert vertical_speed_up(0.6, 0.5, 0, 4, 0.1) == pytest.approx(chain_speed_up(0.6, 4, 0.1))


def test_table_1_is_the_printed_one():
    inputs = published("cascade.table1_inputs").set_index("model")
    computed = []
    for row in published("cascade.table1").itertuples():
        drafters = [name for name in (row.d1, row.d2) if isinstance(name, str)]
        rates, costs = inputs[row.data.lower()][drafters].tolist(), inputs.cost[drafters].tolist()
        lengths = [int(length) for length in (row.k1, row.k2)[: len(drafters)]]
        computed.append(relay_speed_up(rates, costs, lengths))
        assert f"{computed[-1]:.2f}" == f"{row.ewif:.2f}"
        assert computed[-1] == pytest.approx(row.ewif_recomputed, abs=5e-4)
    assert len(computed) == 6


@pytest.mark.parametrize(
    "rates, costs, lengths, speed",
    [  # in the first row the paper prints (5, 3), which gives 3.027
        ((0.73, 0.65), (0.022, 0.0069), (5, 5), 3.044),
        ((0.80, 0.75), (0.022, 0.0069), (5, 8), 3.925),
        ((0.73, 0.65), (0.04, 0.02), (4, 3), 2.720),
        ((0.80, 0.75), (0.04, 0.02), (4, 6), 3.415),
    ],
)
def test_the_best_turns_of_table_1(rates, costs, lengths, speed):
    assert best_relay(rates, costs, longest=14) == (lengths, pytest.approx(speed, abs=5e-4))


@pytest.mark.parametrize("rate, cost, low, high", FREE_MAX_GRAM)
def test_what_free_copies_gain(rate, cost, low, high):
    alone = best_relay([rate], [cost], longest=40).speed_up
    for inner, percent in ((0.2, low), (0.4, high)):
        best = max(vertical_speed_up(rate, inner, 10, reviews, cost) for reviews in range(1, 30))
        assert 100 * (best / alone - 1) == pytest.approx(percent, abs=0.05)


def test_standard_prices_make_a_speed_up_of_counts():
    passes = {"t5-xxl": 40, "t5-base": 200, "mag": 90}
    by_size, by_time = (
        counted_speed_up(120, passes, price_list(name), target="t5-xxl") for name in ("pw", "ms")
    )
    assert by_size == pytest.approx(120 / (40 + 200 * 0.04))
    assert by_time == pytest.approx(120 * 11300 / (40 * 11300 + 200 * 220))
    assert counted_speed_up(50, {"t": 50}, {"t": 3.0}, target="t") == 1
    prices = {"target": 20.0, "a": 2.0, "b": 0.6}
    found = counted_speed_up(3.1, {"target": 1.0, "a": 2.5, "b": 4.0}, prices, target="target")
    assert found == pytest.approx(3.1 / (1 + 2.5 * 0.1 + 4.0 * 0.03))


PAIR = {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda: phi(1.5, 3, 0.5), "got 1.5"),
        (lambda: vertical_tokens(0.5, 0.5, 3, -1), "reviews=-1"),
        (lambda: vertical_tokens(0.5, -0.5, 3, 1), "got -0.5"),
        (lambda: relay_speed_up([0.5], [0.1], [-2]), r"\[0.1\] and \[-2\]"),
        (lambda: best_relay([0.5], [0.1], longest=-1), "longest=-1"),
        (lambda: relay_speed_up([0.5], [-0.1], [2]), r"\[-0.1\] and \[2\]"),
        (
            lambda: counted_speed_up(3, PAIR, {"a": 1}, target="a"),
            "b has none; there are a",
        ),
        (lambda: counted_speed_up(3, {"b": 1}, PAIR, target="a"), r"got 'a', .* passes {'b': 1}"),
        (lambda: counted_speed_up(3, {"a": 1, "b": -1}, PAIR, target="a"), "'b': -1"),
    ],
)
def test_a_value_out_of_range_is_named(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call()
