"""Ratios over prompts: what they are, and how often their intervals hold the truth."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from specdec_lib.core.files import DATA
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import Ratio, interval, summarise, with_interval
from specdec_lib.measure.settings.names import AUTOREGRESSIVE

DRAWN = 400  # samples of prompts for each case


def test_fewer_than_ten_prompts_have_no_interval():
    """Control: ten have one."""
    ratio, *ends = interval(range(1, 10), [2] * 9)
    assert ratio == 2.5 and all(map(math.isnan, ends)) and with_interval(ratio, *ends) == "2.50"
    ratio, low, high = interval(range(10), [2] * 10)
    assert low < ratio < high and with_interval(2.251, 1.9, 2.6) == "2.25 (1.90–2.60)"


def test_the_interval_of_a_mean_is_students_t_on_its_logarithm():
    """With 1 below every prompt, the error of the logarithm is that of the mean ÷ the mean."""
    above = np.random.default_rng(5).integers(1, 60, 17)
    error = stats.sem(above) / above.mean()
    low, high = stats.t(16, loc=math.log(above.mean()), scale=error).interval(0.95)
    wanted = above.mean(), math.exp(low), math.exp(high)
    assert interval(above, [1] * 17) == pytest.approx(wanted)


def test_a_quotient_of_two_ratios_has_the_error_of_their_difference():
    """Control: where both sides rise and fall together, the quotient is known far better."""
    random = np.random.default_rng(6)
    seconds = random.uniform(1, 9, 40)
    ours = seconds * random.uniform(0.49, 0.51, 40)
    one = [1] * 40
    ratio, low, high = interval(seconds, one, ours, one)
    assert 1.97 < low < ratio < high < 2.03
    _, low, high = interval(seconds, one, ours[::-1], one)
    assert high / low > 1.2


def stored_cases() -> dict[str, tuple[tuple[np.ndarray, ...], bool]]:
    """Stored numbers of 40 prompts and more: columns of `interval`, and whether it is a share."""
    learning = stored_clocked("learning", RACED)
    rules = pd.read_csv(DATA / "measured" / "verifiers.csv")
    cases = {}
    for sampling, raced in learning.groupby("sampling"):
        by = {name: own.set_index("prompt") for name, own in raced.groupby("draft")}
        plain = by[AUTOREGRESSIVE]
        for name in ("draft model's tree", "Max-Gram beside recycled"):
            own = by[name]
            base = plain.loc[own.index]
            columns = (own.tokens, own.seconds, base.tokens, base.seconds)
            cases[f"speed-up, {sampling}, {name}"] = columns, False
            cases[f"tokens per round, {sampling}, {name}"] = (own.tokens, own["rounds"]), False
    for key, own in rules.groupby(["sampling", "shape", "siblings"]):
        first = own[own.rule == own.rule.iloc[0]]
        cases[f"first accepted, {key}"] = (first.first_accepted, first["rounds"]), True
    return {
        name: (tuple(column.to_numpy(float) for column in columns), share)
        for name, (columns, share) in cases.items()
    }


def percentiles(columns: list[np.ndarray], random: np.random.Generator) -> tuple[float, float]:
    """The interval of a bootstrap over prompts, for comparison."""
    count = len(columns[0])
    times = random.multinomial(count, [1 / count] * count, size=500)
    sums = [times @ column for column in columns]
    found = sums[0] / sums[1]
    if len(sums) > 2:
        found /= sums[2] / sums[3]
    return tuple(np.quantile(found, (0.025, 0.975)))


@pytest.mark.parametrize("prompts", [10, 20, 40])
def test_intervals_hold_the_truth_as_often_as_they_say(prompts):
    """The truth is the ratio of all stored prompts; samples of them are drawn with replacement.
    The percentiles of a bootstrap are the control: they hold it less often.
    """
    random = np.random.default_rng(prompts)
    held, control = [], []
    for columns, share in stored_cases().values():
        truth = interval(*columns, share=share)[0]
        for _ in range(DRAWN):
            places = random.integers(len(columns[0]), size=prompts)
            some = [column[places] for column in columns]
            _, low, high = interval(*some, share=share)
            held.append(low <= truth <= high)
            if len(control) < len(held) / 8:  # they take longer
                low, high = percentiles(some, random)
                control.append(low <= truth <= high)
    assert len(held) > 8_000  # a standard error of .0025
    assert 0.935 <= np.mean(held) <= 0.965
    assert np.mean(control) < np.mean(held) - 0.01


def test_a_share_stays_between_0_and_1():
    """Control: the same numbers as a plain ratio reach beyond 1."""
    above = [10] * 9 + [7]
    below = [10] * 10
    ratio, low, high = interval(above, below, share=True)
    assert 0 < low < ratio < high < 1
    assert interval(above, below)[2] > 1
    assert interval(below, below, share=True) == (1, 1, 1)
    assert interval([0] * 10, below, share=True) == (0, 0, 0)


def test_nothing_to_divide_by_is_nan():
    assert all(map(math.isnan, interval([1], [0])))
    assert all(map(math.isnan, interval([], [])))
    assert interval([0, 3], [0, 1], least=1) == (3, 3, 3)
    for zero in range(1, 4):
        columns = ([0, 0] if place == zero else [1, 1] for place in range(4))
        assert all(map(math.isnan, interval(*columns)))
    assert interval([0, 0], [1, 1], [1, 1], [1, 1], least=1) == (0, 0, 0)


@pytest.mark.parametrize("columns", [([2, 2], [1, 1]), ([1, 1], [2, 2], [1, 1], [2, 2])])
def test_a_share_above_1_or_beside_a_baseline_is_refused(columns):
    with pytest.raises(ValueError, match="a share is at most 1 and has no baseline"):
        interval(*columns, share=True)


def test_uneven_columns_are_refused():
    with pytest.raises(ValueError, match="as many numerators as denominators, got 1 and 2"):
        interval([1], [1, 2])


def timed(prompts: str = "abc") -> pd.DataFrame:
    """Two drafts on the same prompts under two samplers; "fast" takes half of the time."""
    return pd.DataFrame(
        {"draft": draft, "sampling": sampling, "prompt": prompt, "tokens": 8, "seconds": seconds}
        for sampling in ("greedy", "T = 1")
        for draft, seconds in (("plain", 4.0), ("fast", 2.0))
        for prompt in prompts
    )


def test_a_summary_has_every_ratio_of_every_group_beside_its_baseline():
    wanted = {
        "speed_up": Ratio("tokens", "seconds", relative=True),
        "ms_per_token": Ratio("seconds", "tokens", times=1000, ends=False),
    }
    told = summarise(
        timed(), ["sampling", "draft"], wanted, baseline={"draft": "plain"}, within=["sampling"]
    )
    names = ["sampling", "draft", "speed_up", "speed_up_low", "speed_up_high", "ms_per_token"]
    assert [*told] == [*names, "prompts"]
    assert told.speed_up.tolist() == [1, 2, 1, 2] and told.prompts.tolist() == [3] * 4
    assert told.ms_per_token.tolist() == [500, 250, 500, 250]


def test_a_baseline_without_a_groups_prompts_is_refused():
    wanted = {"speed_up": Ratio("tokens", "seconds", relative=True)}
    few = timed().drop(index=0)
    with pytest.raises(ValueError, match="greedy: the baseline 'plain' has 2 prompts"):
        summarise(few, ["draft"], wanted, baseline={"draft": "plain"}, within=["sampling"])
