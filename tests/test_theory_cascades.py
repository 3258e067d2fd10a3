"""Cascades by closed form: the paper's theorems, against published numbers, exact enumeration and
simulation.
"""

import itertools
import math

import numpy as np
import pytest

from specdec_lib.theory import (
    CascadeShape,
    best_relay,
    cascade_speed_up,
    chain_law,
    chain_speed_up,
    chain_tokens,
    expected_round,
    phi,
    relay_speed_up,
    vertical_speed_up,
    vertical_tokens,
)
from specdec_lib.workload.published import published

VERTICAL = [
    (0.8, 0.3, 10, 2, 2.8283),
    (0.65, 0.2, 5, 3, 2.4606),
    (0.73, 0.5, 3, 4, 3.3928),
]  # rate, inner rate, length, reviews, tokens
RATES = ((0.8, 0.7, 0.3), (0.0, 0.85, 0.4), (0.0, 0.0, 0.5))
MATRICES = [
    ((2, 3, 2), (0, 2, 2), (0, 0, 2)),
    ((1, 1, 4), (0, 0, 3), (0, 0, 2)),
    ((0, 3, 0), (0, 2, 1), (0, 0, 3)),
    ((3, 0, 2), (0, 1, 0), (0, 0, 0)),
]
FREE_MAX_GRAM = [
    (0.65, 0.0069, 0.9, 1.9),
    (0.75, 0.0069, 1.4, 3.0),
    (0.73, 0.022, 2.8, 5.9),
    (0.8, 0.022, 3.6, 7.8),
]  # rate, cost, % at .2 and .4


def enumerated(matrix, rates, counted="tokens") -> tuple[dict[int, float], list[float]]:
    """The law of a review and the passes of the drafters, every draft written out as the drafters
    of its tokens.
    """
    drafts, passes, until = {(): 1.0}, [0.0] * len(matrix), 0
    for column, wanted in enumerate(matrix[0]):
        last, until = column == len(matrix) - 1, until + wanted
        batch, below = {wanted: 1.0}, [float(wanted)]
        if not last:
            batch, below = enumerated(
                *[[row[column + 1 :] for row in whole[column + 1 :]] for whole in (matrix, rates)],
                counted,
            )
            below = [1.0, *below]
        for call in itertools.count():
            enough = (
                call >= (min(wanted, 1) if last else wanted)
                if counted == "calls"
                else all(len(draft) >= until for draft in drafts)
            )
            if enough or not wanted:
                break
            longer: dict[tuple, float] = {}
            for draft, chance in drafts.items():
                asked = counted == "calls" or len(draft) < until
                passes = [
                    have + chance * asked * more
                    for have, more in zip(passes, [0.0] * column + below, strict=True)
                ]
                for tokens, share in batch.items() if asked else [(0, 1.0)]:
                    key = draft + (column,) * tokens
                    longer[key] = longer.get(key, 0.0) + chance * share
            drafts = longer
    law: dict[int, float] = {}
    for draft, chance in drafts.items():
        for emitted, column in enumerate(draft, 1):
            law[emitted] = law.get(emitted, 0.0) + chance * (1 - rates[0][column])
            chance *= rates[0][column]
        law[len(draft) + 1] = law.get(len(draft) + 1, 0.0) + chance
    return law, passes


def simulated(matrix, rates, samples: int, rng, counted="tokens") -> np.ndarray:
    """What so many reviews emit, a coin per token."""
    there, alive, kept, until = (
        np.zeros(samples, int),
        np.ones(samples, bool),
        np.zeros(samples, int),
        0,
    )
    for column, wanted in enumerate(matrix[0]):
        last, until = column == len(matrix) - 1, until + wanted
        for call in itertools.count():
            more = call < (min(wanted, 1) if last else wanted)
            asked = np.flatnonzero(np.full(samples, more) if counted == "calls" else there < until)
            if not asked.size:
                break
            inner = [
                tuple(row[column + 1 :] for row in whole[column + 1 :]) for whole in (matrix, rates)
            ]
            handed = (
                np.full(asked.size, wanted) if last else simulated(*inner, asked.size, rng, counted)
            )
            there[asked] += handed
            for token in range(handed.max()):
                tried = alive[asked] & (token < handed)
                lucky = rng.random(asked.size) < rates[0][column]
                kept[asked] += tried & lucky
                alive[asked] &= ~tried | lucky
    return kept + 1


def agrees(value: float, samples: np.ndarray) -> bool:
    """Within half a percent of the samples' mean, which are enough for that to be more than four
    standard errors.
    """
    mean, error = samples.mean(), samples.std() / math.sqrt(samples.size)
    assert 4 * error < 0.005 * mean
    return abs(value / mean - 1) < 0.005


@pytest.mark.parametrize(
    "rate, length, x", list(itertools.product((0, 0.4, 1), (0, 1, 6), (0, 0.7, 1, 2.5)))
)
def test_phi_is_the_generating_function_of_a_chains_law(rate, length, x):
    assert phi(rate, length, x) == pytest.approx(
        sum(chance * x**tokens for tokens, chance in enumerate(chain_law(rate, length), 1))
    )


def test_phi_is_the_printed_fraction_with_its_exponent_mended():
    rate, length, x = 0.73, 3, 0.6
    fraction = [
        1 + (x - 1) * (1 - (rate * x) ** power) / (1 - rate * x) for power in (length, length + 1)
    ]
    assert (
        phi(rate, length, x) == pytest.approx(fraction[1]) and abs(fraction[0] - fraction[1]) > 0.01
    )


@pytest.mark.parametrize("rate, inner, length, reviews, tokens", VERTICAL)
def test_a_vertical_cascade_emits_what_was_published(rate, inner, length, reviews, tokens):
    assert vertical_tokens(rate, inner, length, reviews) == pytest.approx(tokens, abs=5e-5)
    assert vertical_tokens(rate, inner, length, reviews) == pytest.approx(
        (1 - rate * phi(inner, length, rate) ** reviews) / (1 - rate)
    )


@pytest.mark.parametrize(
    "rate, inner, length, reviews", [case[:4] for case in VERTICAL] + [(0.9, 0.8, 2, 3)]
)
def test_a_vertical_cascade_emits_what_a_simulation_does(rate, inner, length, reviews):
    samples = simulated(
        ((reviews, 0), (0, length)),
        ((rate, 0.0), (0.0, inner)),
        500_000,
        np.random.default_rng(4),
        "calls",
    )
    assert agrees(vertical_tokens(rate, inner, length, reviews), samples)
    assert not agrees(vertical_tokens(rate, inner, length, reviews + 1), samples)


@pytest.mark.parametrize("rate, inner, length, reviews", [(0.73, 0.5, 3, 4), (0.9, 0.8, 2, 3)])
def test_a_simulation_tells_the_misprinted_exponent(rate, inner, length, reviews):
    misprinted = 1 + (rate - 1) * (1 - (inner * rate) ** length) / (1 - inner * rate)
    samples = simulated(
        ((reviews, 0), (0, length)),
        ((rate, 0.0), (0.0, inner)),
        500_000,
        np.random.default_rng(5),
        "calls",
    )
    assert not agrees((1 - rate * misprinted**reviews) / (1 - rate), samples)


def test_a_vertical_cascade_at_the_edges():
    assert vertical_tokens(1, 0.5, 3, 4) == pytest.approx(1 + 4 * chain_tokens(0.5, 3))
    assert vertical_tokens(1 - 1e-13, 0.5, 3, 4) == pytest.approx(vertical_tokens(1, 0.5, 3, 4))
    assert vertical_tokens(0.6, 0.5, 3, 0) == 1
    assert vertical_speed_up(0.6, 0.5, 0, 4, draft_cost=0.1) == pytest.approx(
        chain_speed_up(0.6, 4, 0.1)
    )


@pytest.mark.parametrize(
    "rate, inner, length", list(itertools.product((0.05, 0.5, 0.99), (0.05, 0.5, 0.99), (1, 2, 10)))
)
def test_a_free_scout_always_helps_at_the_same_number_of_draft_passes(rate, inner, length):
    assert phi(inner, length, rate) < rate
    for reviews in (1, 3, 8):
        assert vertical_speed_up(rate, inner, length, reviews, draft_cost=0.1) > chain_speed_up(
            rate, reviews, 0.1
        )
    assert not phi(0, length, rate) < rate and not phi(inner, 0, rate) < rate


def test_table_1_is_the_printed_one():
    inputs = published("cascade.table1_inputs").set_index("model")
    computed = []
    for row in published("cascade.table1").itertuples():
        drafters = [name for name in (row.d1, row.d2) if isinstance(name, str)]
        lengths = [int(length) for length in (row.k1, row.k2)[: len(drafters)]]
        computed.append(
            relay_speed_up(
                inputs[row.data.lower()][drafters].tolist(), inputs.cost[drafters].tolist(), lengths
            )
        )
        assert f"{computed[-1]:.2f}" == f"{row.ewif:.2f}" and computed[-1] == pytest.approx(
            row.ewif_recomputed, abs=5e-4
        )
    assert len(computed) == 6


@pytest.mark.parametrize(
    "rates, costs, lengths, speed",
    [
        (
            (0.73, 0.65),
            (0.022, 0.0069),
            (5, 5),
            3.044,
        ),  # the paper prints (5, 3), which gives 3.027
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
        best = max(
            vertical_speed_up(rate, inner, 10, reviews, draft_cost=cost) for reviews in range(1, 30)
        )
        assert 100 * (best / alone - 1) == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize("matrix, counted", list(itertools.product(MATRICES, ("tokens", "calls"))))
def test_a_cascade_of_three_levels_is_what_every_draft_adds_up_to(matrix, counted):
    found, (law, passes) = (
        expected_round(CascadeShape(matrix, counted), RATES),
        enumerated(matrix, RATES, counted),
    )
    assert found.law == pytest.approx(
        [law.get(tokens, 0.0) for tokens in range(1, len(found.law) + 1)], abs=1e-12
    )
    assert found.passes == pytest.approx(passes) and sum(found.law) == pytest.approx(1)
    assert found.tokens == pytest.approx(sum(tokens * chance for tokens, chance in law.items()))


def test_a_cascade_of_three_levels_emits_what_a_simulation_does():
    matrix = ((3, 4, 5), (0, 2, 4), (0, 0, 4))
    samples = simulated(matrix, RATES, 500_000, np.random.default_rng(6))
    assert agrees(expected_round(CascadeShape(matrix), RATES).tokens, samples)
    assert not agrees(expected_round(CascadeShape(matrix, "calls"), RATES).tokens, samples)
    swapped = ((0.8, 0.3, 0.7), *RATES[1:])
    assert not agrees(expected_round(CascadeShape(matrix), swapped).tokens, samples)


@pytest.mark.parametrize("rate, inner, length, reviews, tokens", VERTICAL)
def test_the_composed_law_contains_the_vertical_theorem(rate, inner, length, reviews, tokens):
    shape, rates = CascadeShape(((reviews, 0), (0, length)), "calls"), ((rate, 0.0), (0.0, inner))
    assert expected_round(shape, rates).passes == pytest.approx((reviews, reviews * length))
    by_theorem = vertical_speed_up(rate, inner, length, reviews, draft_cost=0.05, scout_cost=0.01)
    assert cascade_speed_up(shape, rates, (0.05, 0.01)) == pytest.approx(by_theorem, rel=1e-12)


@pytest.mark.parametrize("lengths", [(5, 3, 4), (0, 2, 0), (4, 0, 1), (0, 0, 0)])
def test_the_composed_law_contains_the_horizontal_theorem(lengths):
    rates, costs = (0.8, 0.7, 0.3), (0.1, 0.04, 0.01)
    shape = CascadeShape((lengths, (0, 0, 0), (0, 0, 0)))
    assert cascade_speed_up(shape, (rates, (0, 0, 0), (0, 0, 0)), costs) == pytest.approx(
        relay_speed_up(rates, costs, lengths), rel=1e-12
    )


def test_tokens_and_calls_agree_where_calls_have_one_length():
    always, never = ((0.8, 0.0), (0.0, 1.0)), ((0.8, 0.0), (0.0, 0.0))
    for tokens, calls in ((1, 1), (4, 1), (5, 2), (9, 3)):  # four tokens per call
        by_tokens, by_calls = (
            CascadeShape(((tokens, 0), (0, 3))),
            CascadeShape(((calls, 0), (0, 3)), "calls"),
        )
        assert expected_round(by_tokens, always).law == pytest.approx(
            expected_round(by_calls, always).law
        )
    by_tokens, by_calls = CascadeShape(((4, 0), (0, 3))), CascadeShape(((4, 0), (0, 3)), "calls")
    assert expected_round(by_tokens, never).law == pytest.approx(
        expected_round(by_calls, never).law
    )  # one token per call
    assert (
        expected_round(by_tokens, ((0.8, 0.0), (0.0, 0.5))).tokens
        < expected_round(by_calls, ((0.8, 0.0), (0.0, 0.5))).tokens
    )
    assert expected_round(CascadeShape(((6,),)), ((0.7,),)).law == pytest.approx(chain_law(0.7, 6))
