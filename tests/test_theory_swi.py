"""Cascades by closed form: standard prices, and what is refused."""

import pytest

from specdec_lib.theory import (
    CascadeShape,
    best_relay,
    ewif,
    expected_round,
    horizontal_speed_up,
    phi,
    relay_speed_up,
    swi,
    vertical_tokens,
)
from specdec_lib.workload.published import price_list

RATES = ((0.8, 0.7, 0.3), (0.0, 0.85, 0.4), (0.0, 0.0, 0.5))
COSTS = (0.1, 0.03, 0.0)


def test_standard_prices_make_a_speed_up_of_counts():
    passes = {"t5-xxl": 40, "t5-base": 200, "mag": 90}
    assert swi(120, passes, price_list("pw"), target="t5-xxl") == pytest.approx(
        120 / (40 + 200 * 0.04)
    )
    assert swi(120, passes, price_list("ms"), target="t5-xxl") == pytest.approx(
        120 * 11300 / (40 * 11300 + 200 * 220)
    )
    assert swi(50, {"t": 50}, {"t": 3.0}, target="t") == 1


def test_expected_counts_give_swi_and_ewif_alike():
    found = expected_round(CascadeShape(((3, 2, 4), (0, 1, 4), (0, 0, 4))), RATES)
    passes = {"target": 1.0} | dict(zip("abc", found.passes, strict=True))
    prices = {"target": 20.0, "a": 2.0, "b": 0.6, "c": 0.0}
    assert swi(found.tokens, passes, prices, target="target") == pytest.approx(
        ewif(found.tokens, found.passes, COSTS)
    )


def test_ten_times_the_price_of_a_target_flatters_by_a_fifth():
    passes = {"llama-7b": 10, "llama-160m": 100}
    printed = swi(30, passes, price_list("ms"), target="llama-7b")
    assert printed / swi(
        30, passes, price_list("ms") | {"llama-7b": 7000.0}, target="llama-7b"
    ) == pytest.approx(1.2, abs=0.01)


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda: phi(1.5, 3, 0.5), "got 1.5"),
        (lambda: vertical_tokens(0.5, 0.5, 3, -1), "reviews=-1"),
        (lambda: vertical_tokens(0.5, -0.5, 3, 1), "got -0.5"),
        (
            lambda: horizontal_speed_up([0.5, 0.5], [0.1]),
            "each drafter has its passes and its cost, got 2 and 1",
        ),
        (lambda: relay_speed_up([0.5], [0.1], [-2]), r"got 1, 1 and \[-2\]"),
        (
            lambda: best_relay([0.5], [0.1], longest=-1),
            "turns are of 0 tokens or more, got longest=-1",
        ),
        (lambda: ewif(0.5, (), ()), "tokens_per_pass=0.5"),
        (lambda: ewif(2, (1,), (-0.1,)), r"0 or more, got \[1\] and \[-0.1\]"),
        (lambda: swi(3, {"a": 1, "b": 1}, {"a": 1}, target="a"), "b has none; there are a"),
        (lambda: swi(3, {"b": 1}, {"a": 1, "b": 1}, target="a"), "got 0 of 'a' at 1"),
        (
            lambda: swi(3, {"a": 1, "b": -1}, {"a": 1, "b": 1}, target="a"),
            "counts and prices are 0 or more",
        ),
        (lambda: CascadeShape(()), "got 0 rows"),
        (lambda: CascadeShape(((1, 2),)), r"got 1 rows of \[2\]"),
        (
            lambda: CascadeShape(((1, 2), (1, 2))),
            r"the first 1 entries of row 1 are 0, got \(1, 2\)",
        ),
        (lambda: CascadeShape(((1, -2), (0, 2))), r"row 0 is \(1, -2\)"),
        (lambda: CascadeShape(((1,),), "passes"), "tokens or calls, got 'passes'"),
        (
            lambda: expected_round(CascadeShape(((1,),)), RATES),
            "1 drafters need 1 × 1 acceptance rates",
        ),
        (
            lambda: expected_round(CascadeShape(((1,),)), ((1.2,),)),
            r"in \[0, 1\], got \(\(1.2,\),\)",
        ),
    ],
)
def test_a_value_out_of_range_is_named(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call()
