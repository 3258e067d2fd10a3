"""Ratios over prompts: what they are, and what their intervals are."""

import math

import numpy as np
import pytest
from scipy import stats

from specdec_lib.measure.ratios import RESAMPLES, bootstrap, with_interval


def test_fewer_than_ten_prompts_have_no_interval():
    """Control: ten have one."""
    ratio, *ends = bootstrap(range(1, 10), [2] * 9)
    assert ratio == 2.5 and all(map(math.isnan, ends)) and with_interval(ratio, *ends) == "2.50"
    ratio, low, high = bootstrap(range(10), [2] * 10)
    assert low < ratio < high and with_interval(2.251, 1.9, 2.6) == "2.25 (1.90–2.60)"


@pytest.mark.parametrize("sides", [1, 2])
def test_the_interval_is_that_of_scipy(sides):
    """This holds for a ratio, and for two ratios whose prompts are drawn together."""
    random = np.random.default_rng(5)
    columns = [random.integers(1, 60, 17) for _ in range(2 * sides)]

    def ratio(above, below, *others, axis):
        found = above.sum(axis) / below.sum(axis)
        return found / (others[0].sum(axis) / others[1].sum(axis)) if others else found

    how = {"n_resamples": RESAMPLES, "paired": True, "vectorized": True, "method": "percentile"}
    found = stats.bootstrap(columns, ratio, rng=np.random.default_rng(3), **how).confidence_interval
    wanted = ratio(*columns, axis=0), found.low, found.high
    assert bootstrap(*columns, seed=3) == pytest.approx(wanted)


def test_nothing_to_divide_by_is_nan_and_a_resample_without_it_is_left_out():
    assert all(map(math.isnan, bootstrap([1], [0])))
    assert all(map(math.isnan, bootstrap([], [])))
    assert bootstrap([0, 3], [0, 1], least=1) == (3, 3, 3)
    for zero in range(1, 4):
        columns = ([0, 0] if place == zero else [1, 1] for place in range(4))
        assert all(map(math.isnan, bootstrap(*columns)))
    assert bootstrap([0, 0], [1, 1], [1, 1], [1, 1], least=1) == (0, 0, 0)


def test_uneven_columns_are_refused():
    with pytest.raises(ValueError, match="as many numerators as denominators, got 1 and 2"):
        bootstrap([1], [1, 2])
