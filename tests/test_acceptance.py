"""Acceptance counted from records, against hand-made rounds and exact distributions."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from fakes import PROMPT, fixed_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, Round, decode
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.acceptance import (
    collect,
    expected_calibration_error,
    hazards,
    rank_rates,
    rates,
    rates_by_confidence,
    tokens,
)
from specdec_lib.measure.acceptance.rates import GUESS, LABELS, ROUND
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.workload import Prompt


def played(parents=(), path=(), scores=None, *, sources=None):
    """A round of guesses with these parents; it emits one token more than it accepts."""
    count, emitted = len(parents), (7,) * (len(path) + 1)
    names, scores = ("context", *(sources or ["m"] * count)), (1.0, *(scores or [0.5] * count))
    tree = TokenTree(4, (9, *range(count)), (-1, *parents), names, scores, (None,) * (count + 1))
    tried = len(path) + bool(tree.children(path[-1] if path else ROOT))
    return Round(tree, tuple(path), emitted, ("m",) * len(emitted), tried, {}, 0.0)


def generation(*rounds):
    return Generation(Context.of([1, 2]), rounds, "", {})


def collected(*made, draft="t", sampler=Sampler(), rule=look_up):
    """Both tables of generations, each of a prompt of its own: a, b, …"""
    setting = Setting(draft, NoDraft(), sampler, rule)
    prompts = [Prompt(name, "", "code", "development", "") for name in "abcdefghijklmn"]
    return collect((setting, *each) for each in zip(prompts, made, strict=False))


# depth 1: nodes 1, 2, 3; below node 2: 4, 5; below node 5: 6
TREE = (0, 0, 0, 2, 2, 5)
SCORES = (0.8, 0.5, 0.1, 0.4, 0.25, 0.25)
SOURCES = ("m", "m", "n", "n", "m", "m")


@pytest.fixture(scope="module")
def hand():
    """Two prompts, five rounds: depth 1 is looked at in four of them and accepted in three, depth 2
    in two and one, depth 3 in one and none.
    """
    paths = (2, 5), (1,), (2,)
    first, second, last = (played(TREE, path, SCORES, sources=SOURCES) for path in paths)
    one = generation(first, second, played())
    other = generation(last, played((0, 1), (), (0.5, 0.25)))
    return collected(one, other)


def copies(table, count):
    """The rows of so many prompts that are like each other."""
    return pd.concat(table.assign(prompt=table.prompt + str(one)) for one in range(count))


def test_every_child_of_every_reached_node_has_a_row():
    made = generation(played(TREE, (2, 5), SCORES, sources=SOURCES))
    table = collected(made, sampler=Sampler(1.0, top_k=9), rule=reject)[0]
    assert list(table) == LABELS + GUESS
    labels = ("t", 1.0, 9, "reject", "code", 0.0, "a")
    assert {tuple(row) for row in table[LABELS].values} == {labels}
    assert table[GUESS].values.tolist() == [
        [0, 1, 0, -1, 3, "m", 0.8, False, True],
        [0, 1, 1, -1, 3, "m", 0.5, True, True],
        [0, 1, 2, -1, 3, "n", 0.1, False, False],
        [0, 2, 0, 1, 2, "n", 0.8, False, True],
        [0, 2, 1, 1, 2, "m", 0.5, True, True],
        [0, 3, 0, 1, 1, "m", 1.0, False, True],
    ]
    assert collected(generation(played((0, 1), (1,), (0.0, 0.0))))[0].confidence.tolist() == [0, 0]


def test_a_round_has_one_row_whatever_was_proposed(hand):
    columns = ["prompt", "round", "proposed", "deepest", "tried", "accepted", "emitted"]
    assert [*hand[1][columns].itertuples(index=False, name=None)] == [
        ("a", 0, 6, 3, 3, 2, 3),
        ("a", 1, 6, 3, 1, 1, 2),
        ("a", 2, 0, 0, 0, 0, 1),
        ("b", 0, 6, 3, 2, 1, 2),
        ("b", 1, 2, 2, 1, 0, 1),
    ]
    assert list(hand[1]) == LABELS + ROUND


def test_a_round_says_where_it_began_who_guessed_and_the_last_why_it_ended():
    made = replace(generation(played((0,), (1,)), played()), stop="length")
    rows = collected(made)[1][["root_position", "source", "stop"]]
    assert rows.values.tolist() == [[4, "m", ""], [4, "m", "length"]]


def test_a_hazard_counts_those_at_risk_and_survival_is_their_product_in_each_group(hand):
    """Depth 2 is accepted in 1 of 5 rounds, but in 1 of the 2 that had a guess to look at."""
    table = hazards(pd.concat([hand[0], hand[0].assign(draft="u")]), ["draft"])
    assert table.draft.tolist() == ["t"] * 3 + ["u"] * 3
    columns = ["depth", "at_risk", "accepted", "prompts", "rate", "survival"]
    by_hand = [[1, 4, 3, 2, 0.75, 0.75], [2, 2, 1, 2, 0.5, 0.375], [3, 1, 0, 1, 0, 0]]
    assert table[columns].values.tolist() == 2 * by_hand
    assert (hand[1].accepted >= 2).mean() == 0.2
    assert table.low.isna().all() and table.high.isna().all()  # two prompts have no interval
    row = hazards(copies(hand[0], 5)).iloc[0]
    assert row.prompts == 10 and 0.5 < row.low < 0.75 < row.high < 1


def test_a_rate_per_guess_tells_siblings_apart(hand):
    table = rates(hand[0], ["depth", "rank"])
    by_hand = [[1, 0, 4, 1], [1, 1, 3, 2], [1, 2, 3, 0], [2, 0, 2, 0], [2, 1, 2, 1], [3, 0, 1, 0]]
    assert table[["depth", "rank", "at_risk", "accepted"]].values.tolist() == by_hand
    assert rates(hand[0], ["source"]).at_risk.tolist() == [10, 5]
    assert rates(hand[0]).at_risk[0] == 15 and rates(hand[0], per="node").at_risk[0] == 7


def test_groups_keep_the_order_of_labels_and_sort_numbers():
    one = generation(played((0, 0), (), (0.5, 0.4)))
    runs = [("z", Sampler(1.0)), ("z", Sampler(0.0)), ("b", Sampler(0.5))]
    every = pd.concat([collected(one, draft=draft, sampler=how)[0] for draft, how in runs])
    table = rates(every, ["draft", "temperature"])
    keys = [["z", 0, 2], ["z", 1, 2], ["b", 0.5, 2]]
    assert table[["draft", "temperature", "at_risk"]].values.tolist() == keys


def test_confidence_beside_what_came_of_it(hand):
    """An edge belongs to the bin above it, and 1 to the last."""
    table = rates_by_confidence(hand[0], bins=2)
    columns = ["low_edge", "high_edge", "at_risk", "accepted"]
    assert table[columns].values.tolist() == [[0, 0.5, 3, 0], [0.5, 1, 12, 4]]
    assert table.confidence.tolist() == pytest.approx([0.1, (0.8 * 5 + 0.5 * 6 + 1) / 12])
    wanted = 3 / 15 * 0.1 + 12 / 15 * (8 / 12 - 4 / 12)
    assert expected_calibration_error(hand[0], bins=2) == pytest.approx(wanted)
    table = collected(generation(played((0, 0, 0, 0), (), (0.3, 0.1 + 0.2, 1.0, 0.0))))[0]
    found = rates_by_confidence(table)
    assert found.low_edge.tolist() == [0, 0.3, 0.9] and found.at_risk.tolist() == [1, 2, 1]


def test_rank_rates_pool_what_was_seldom_seen(hand):
    table = hand[0]
    assert rank_rates(table, least=1) == [[1 / 4, 2 / 3, 0], [0, 1 / 2], [0]]
    assert rank_rates(table, least=2) == [[1 / 4, 2 / 3, 0], [0, 1 / 2]]
    assert rank_rates(table, least=3) == [[1 / 7, 3 / 5, 0]]
    assert rank_rates(table) == [[1 / 7]]
    assert rank_rates(table, by_depth=False, least=1) == [[1 / 7, 3 / 5, 0]]


def test_tokens_per_round_with_the_bonus_and_without(hand):
    row = tokens(copies(hand[1], 5), ["draft"]).iloc[0]
    assert (row.rounds, row.prompts) == (25, 10)
    assert (row.tokens_per_round, row.accepted_per_round) == (9 / 5, 4 / 5)
    assert 1.5 < row.tokens_per_round_low < 9 / 5 < row.tokens_per_round_high < 2


def test_rates_of_records_hold_the_exact_distribution():
    """A chain under `reject` has the hazard Σ min(target, draft) = 0.8 at every depth: within 4
    standard errors (σ ≤ 0.04), unlike 0.64.
    """
    target, model = fixed_model((0.5, 0.3, 0.2)), fixed_model((0.3, 0.4, 0.3), "draft")
    draft, limits = ChainDraft(model, 2, siblings="iid"), {"max_new_tokens": 30, "rule": reject}
    chances = [Chance(seed, Sampler(1.0)) for seed in range(12)]
    table, rounds = collected(*(decode(target, draft, PROMPT, one, **limits) for one in chances))
    for row in hazards(table).itertuples():
        assert abs(row.rate - 0.8) < 4 * math.sqrt(0.8 * 0.2 / row.at_risk) < 0.16
    whole = rounds[rounds.proposed == 2]
    assert abs((whole.accepted == 2).mean() - 0.64) < 4 * math.sqrt(0.64 * 0.36 / len(whole)) < 0.18


@pytest.mark.parametrize(
    "call,complaint",
    [
        (lambda table: rates(table[:0]), "at least 1 row, got an empty table"),
        (lambda table: rates(table, per="round"), 'per is "node" or "guess", got \'round\''),
        (lambda table: rates(table, ["depth", "rank"], per="node"), "siblings differ in rank"),
        (lambda table: rates_by_confidence(table, bins=0), "at least 1 bin, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(hand, call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(hand[0])
