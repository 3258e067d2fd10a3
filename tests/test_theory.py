"""Chains, cascades and the cost of a pass: closed forms against published numbers; and the price of
time: the policy with the most tokens per second, and what a gain hangs on.
"""

import dataclasses
import itertools

import numpy as np
import pytest
from fakes import assert_refused

from specdec_lib.theory import (
    RTX_4090,
    Machine,
    ModelShape,
    Overhead,
    PassTable,
    Tally,
    Work,
    best_policy,
    counted_speed_up,
    margin,
    plain_work,
    roofline_seconds,
    smoothed,
)
from specdec_lib.theory.chains import (
    best_relay,
    chain_speed_up,
    chain_tokens,
    phi,
    relay_speed_up,
    speed_up,
    vertical_tokens,
)
from specdec_lib.theory.costs import bytes_moved, pass_flops
from specdec_lib.workload.published import price_list, published

# rate, inner rate, length, reviews, tokens
VERTICAL = [(0.8, 0.3, 10, 2, 2.8283), (0.65, 0.2, 5, 3, 2.4606), (0.73, 0.5, 3, 4, 3.3928)]
CHAINS = [  # rate, length, tokens, speed-up
    *((0.8, 4, 3.3616, 2.8013), (0.8, 8, 4.3289, 3.0921)),
    *((0.7, 4, 2.7731, 2.3109), (0.7, 8, 3.1988, 2.2849)),
]
GPT2_LARGE = ModelShape(36, 1280, 50257)
ROOFLINE = [(1, 1.579), (16, 1.585), (64, 1.602), (128, 1.626), (256, 2.539)]  # rows, milliseconds


@pytest.mark.parametrize("rate, length, tokens, speed", CHAINS)
def test_a_chains_tokens_and_speed_up_are_the_published_ones(rate, length, tokens, speed):
    assert chain_tokens(rate, length) == pytest.approx(tokens, abs=1e-4)
    assert chain_speed_up(rate, length, 0.05) == pytest.approx(speed, abs=1e-4)


def test_measured_tokens_give_the_papers_speed_up():
    assert speed_up(4.07, draft_passes=5, draft_cost=0.149) == pytest.approx(350 / 150, abs=0.005)
    for rate, length, tokens in [(0.84, 5, 4.07), (0.82, 8, 4.58), (0.65, 5, 2.63)]:
        assert chain_tokens(rate, length) == pytest.approx(tokens, abs=0.05)
    found = chain_speed_up(0.8, 4, 0.05, lambda rows: 1 + (rows - 1) / 10)
    assert found == pytest.approx(3.3616 / (0.2 + 1.4))


@pytest.mark.parametrize("rows, milliseconds", ROOFLINE)
def test_the_roofline_of_gpt2_large_is_the_published_one(rows, milliseconds):
    asked = {"rows": rows, "context": 256}
    bare = roofline_seconds(GPT2_LARGE, RTX_4090, **asked, activations=False)
    assert bare * 1e3 == pytest.approx(milliseconds, abs=6e-4)
    assert bare <= roofline_seconds(GPT2_LARGE, RTX_4090, **asked)
    launched = dataclasses.replace(RTX_4090, pass_seconds=0.005)
    found = roofline_seconds(GPT2_LARGE, launched, **asked, activations=False)
    assert found == pytest.approx(bare + 0.005)


def test_gpt2_large_reads_and_computes_what_was_published():
    assert 2 * GPT2_LARGE.weights == pytest.approx(1.544e9, rel=1e-3)
    bare = dataclasses.replace(GPT2_LARGE, vocabulary=0)
    body, whole = (pass_flops(model, 1, 0) for model in (bare, GPT2_LARGE))
    assert (body, whole) == pytest.approx((1.416e9, 1.544e9), rel=5e-4)
    assert RTX_4090.ridge == pytest.approx(164, abs=0.5)


def test_shared_key_heads_and_a_gate_are_counted():
    llama = ModelShape(2, 8, 100, 4.0, query_width=8, key_width=4, inner_width=12, matrices=3)
    counts = {"passes": 1, "rows": 3, "context_tokens": 5}
    weights = 2 * (8 * (8 + 4 + 4 + 8) + 3 * 8 * 12)
    assert llama.weights == weights + 800
    moved = weights + 800 + 2 * 2 * 4 * (5 + 2 * 3)
    assert bytes_moved(llama, **counts, activations=False) == 4 * moved
    written = 2 * (6 * 8 + 2 * 8 + 2 * 4 + 3 * 12)
    assert bytes_moved(llama, **counts) == 4 * (moved + 3 * (2 * written + 100))
    assert pass_flops(llama, 3, 5) == 2 * 3 * llama.weights + 4 * 2 * 8 * 3 * 8


def test_phi_is_the_generating_function_of_a_chains_tokens():
    for rate, length, x in itertools.product((0, 0.4, 1), (0, 1, 6), (0, 0.7, 1)):
        chances = [*(rate**accepted * (1 - rate) for accepted in range(length)), rate**length]
        mean = sum(chance * x**tokens for tokens, chance in enumerate(chances, 1))
        assert phi(rate, length, x) == pytest.approx(mean)


@pytest.mark.parametrize("rate, inner, length, reviews, tokens", VERTICAL)
def test_a_vertical_cascade_emits_what_was_published(rate, inner, length, reviews, tokens):
    found = vertical_tokens(rate, inner, length, reviews)
    assert found == pytest.approx(tokens, abs=5e-5)
    closed = (1 - rate * phi(inner, length, rate) ** reviews) / (1 - rate)
    assert found == pytest.approx(closed)
    assert vertical_tokens(1, inner, 3, 4) == pytest.approx(1 + 4 * chain_tokens(inner, 3))
    assert vertical_tokens(0.6, 0.5, 3, 0) == 1
    assert vertical_tokens(0.6, 0.5, 0, 4) == pytest.approx(chain_tokens(0.6, 4))


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


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: chain_tokens(1.2, 3), "acceptance_rate of chain_tokens .* from 0 to 1, got 1.2"),
        (lambda: chain_tokens(0.5, -1), "length of chain_tokens must be .* to 65,536, got -1"),
        (lambda: speed_up(0.5, draft_passes=1, draft_cost=0), "tokens_per_round of .*, got 0.5"),
        (lambda: speed_up(2, draft_passes=1, draft_cost=0, verify=0), "verify of .*, got 0"),
        (lambda: ModelShape(0, 8, 8), "layers of ModelShape must be .*, got 0"),
        (lambda: Machine("none", 0.0, 1.0), "bytes_per_second of Machine must be .*, got 0.0"),
        (lambda: bytes_moved(GPT2_LARGE, passes=3, rows=2, context_tokens=0), "3 passes, 2 rows"),
        (lambda: relay_speed_up([0.5], [-0.1], [2]), r"costs of .*, got \[-0.1\]"),
    ],
)
def test_a_value_out_of_range_is_named(call, said):
    assert_refused(call, said)


def test_counted_passes_at_published_prices_give_the_speed_up():
    passes = {"t5-xxl": 40, "t5-base": 200, "mag": 90}
    by_size = counted_speed_up(120, passes, price_list("pw"), target="t5-xxl")
    by_time = counted_speed_up(120, passes, price_list("ms"), target="t5-xxl")
    assert by_size == pytest.approx(120 / (40 + 200 * 0.04))
    assert by_time == pytest.approx(120 * 11300 / (40 * 11300 + 200 * 220))
    assert counted_speed_up(50, {"t": 50}, {"t": 3.0}, target="t") == 1


PRICES = {"a": 1.0, "b": 1.0}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: counted_speed_up(3, {"a": 1, "b": 1}, {"a": 1}, target="a"),
            "a model that ran needs a price: b has none; there are a",
        ),
        (
            lambda: counted_speed_up(3, {"b": 1}, PRICES, target="a"),
            "the target's passes and price are above 0; got 'a', passes {'b': 1}",
        ),
        (lambda: counted_speed_up(3, {"a": 1}, {"a": 0.0}, target="a"), "are above 0; got 'a'"),
        (lambda: counted_speed_up(3, {"a": 1, "b": -1}, PRICES, target="a"), "passes of .*, got"),
    ],
)
def test_counts_without_prices_or_target_are_refused(call, said):
    assert_refused(call, said)


def test_work_of_two_targets_is_not_added():
    one = Work(30.0, 10.0, 40.0, {("target", 5, 0): 10, ("draft", 1, 0): 40})
    same = one + one
    assert (same.tokens, same.rounds, same.draft_passes) == (60.0, 20.0, 80)
    with pytest.raises(ValueError, match="the same target, got 'target' and 'draft'"):
        one + dataclasses.replace(one, target="draft")


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


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: best_policy({}, (0.5, 0.5)), "got 0 and 2"),
        (lambda: best_policy({"one": [Tally(1, 1, 1)]}, (0.5, 0.5)), "got 1 and 2"),
    ],
)
def test_a_policy_needs_a_tally_per_situation(call, said):
    assert_refused(call, said)


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
