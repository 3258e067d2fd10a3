"""The price of time: the policy with the most tokens per second, and what a gain hangs on."""

import itertools

import numpy as np
import pytest
from fakes import refusals

from specdec_lib.theory import (
    Overhead,
    PassTable,
    Tally,
    Work,
    best_policy,
    margin,
    plain_work,
    smoothed,
)


def speed(means, shares, choice) -> float:
    taken = [means[name][place] for place, name in enumerate(choice)]
    tokens, seconds = (np.dot(shares, [one[column] for one in taken]) for column in (1, 2))
    return tokens / seconds


@pytest.mark.parametrize("seed", range(60))
def test_no_other_policy_is_faster(seed):
    draw = np.random.default_rng(seed)
    drawn = draw.uniform((1.0, 0.1), (5.0, 2.0), (4, 3, 2))
    means = {name: [Tally(1.0, *one) for one in its] for name, its in enumerate(drawn.tolist())}
    shares = draw.dirichlet((1.0,) * 3).tolist()
    policy = best_policy(means, shares)
    every = [speed(means, shares, one) for one in itertools.product(means, repeat=3)]
    assert policy.price == pytest.approx(max(every), rel=1e-9)
    assert policy.price == pytest.approx(speed(means, shares, policy.choice), rel=1e-9)


def test_few_rounds_are_drawn_towards_the_mean_of_all():
    means = smoothed([Tally(92, 184, 92), Tally(8, 16, 16), Tally(0, 0, 0)], rounds=8)
    mean = (2.0, 108 / 100)
    assert means[2][1:] == pytest.approx(mean)
    assert means[1][1:] == pytest.approx((2.0, (2.0 + mean[1]) / 2))
    assert means[0].seconds == pytest.approx((92 + 8 * mean[1]) / 100)


test_a_policy_needs_a_tally_per_situation = refusals(
    (lambda: best_policy({}, (0.5, 0.5)), "got 0 and 2"),
    (lambda: best_policy({"one": [Tally(1, 1, 1)]}, (0.5, 0.5)), "got 1 and 2"),
)


TABLES = {
    "target": PassTable((1, 5), (0,), ((1.0, 1.4),)),
    "draft": PassTable((1,), (0,), ((0.1,),)),
}
WORK = Work(30.0, 10.0, 40.0, {("target", 5, 0): 10, ("draft", 1, 0): 40})


def test_a_gain_hangs_on_tokens_drafts_and_rows():
    plain, overhead = plain_work(context=0), Overhead(round=0.2)
    found = margin(WORK, plain, TABLES, overhead)
    whole = 10 * 1.4 + 40 * 0.1 + 10 * 0.2
    assert found.tokens == 3.0
    assert found.needed == pytest.approx(whole / 10)
    assert found.free_drafts == pytest.approx(30 / (whole - 4))
    assert found.free_rows == pytest.approx(30 / (whole - 4.0))
    dearer = TABLES | {"draft": PassTable((1,), (0,), ((0.1 * found.dearer_drafts,),))}
    assert 30 / WORK.seconds(dearer, overhead) == pytest.approx(1.0)  # breaks even there
    assert 30 / WORK.seconds(TABLES, overhead) > 1.0
    few = Work(15.0, 10.0, 40.0, WORK.passes)
    assert margin(few, plain, TABLES).dearer_drafts == pytest.approx(0.25)
    copies = Work(30.0, 10.0, 40.0, {("target", 5, 0): 10})
    assert margin(copies, plain, TABLES).dearer_drafts == float("inf")
