"""The best cascade, the best hierarchy and standard prices: searches against brute force, and what is refused."""

import itertools
import math

import pytest

from specdec_lib.published import price_list
from specdec_lib.theory import (
    CascadeShape,
    best_cascade,
    best_hierarchy,
    best_relay,
    best_vertical,
    cascade_speed_up,
    chain_law,
    chain_tokens,
    cheapest_drafts,
    climbed_cascade,
    draft_seconds,
    ewif,
    expected_round,
    horizontal_speed_up,
    phi,
    relay_speed_up,
    swi,
    vertical_speed_up,
    vertical_tokens,
)

RATES = ((0.8, 0.7, 0.3), (0.0, 0.85, 0.4), (0.0, 0.0, 0.5))
COSTS = (0.1, 0.03, 0.0)
CHOICES = ((range(7), range(5), (0, 4)), ((0,), range(3), (0, 4)), ((0,), (0,), (0, 4)))
PASSES = (lambda rows: 1 + 0.01 * rows, lambda rows: 0.3, lambda rows: 0.08, lambda rows: 0.0)
COPIES = ((0.85, 0.8, 0.3), (0.0, 0.9, 0.4), (0.0, 0.0, 0.45))


def test_the_best_cascade_is_the_best_of_all():
    found = best_cascade(CHOICES, RATES, COSTS)
    rows = [[row for row in itertools.product(*choices)] for choices in CHOICES]
    every = [CascadeShape(matrix) for matrix in itertools.product(*rows)]
    assert len(every) == 7 * 5 * 2 * 3 * 2 * 2
    assert found.speed_up == max(cascade_speed_up(shape, RATES, COSTS) for shape in every) == cascade_speed_up(found.shape, RATES, COSTS)
    plain = CascadeShape(((0, 0, 0),) * 3)
    assert cascade_speed_up(plain, RATES, COSTS) == 1 < found.speed_up
    assert best_cascade(CHOICES, RATES, (9.0, 9.0, 9.0)).shape == plain


def test_a_climb_ends_where_no_two_entries_help():
    start = CascadeShape(((1, 0, 0), (0, 1, 0), (0, 0, 4)))
    found = climbed_cascade(start, CHOICES, RATES, COSTS)
    assert cascade_speed_up(start, RATES, COSTS) < found.speed_up <= best_cascade(CHOICES, RATES, COSTS).speed_up
    places = [(row, column) for row in range(3) for column in range(row, 3)]
    for one, other in itertools.product(places, repeat=2):
        for values in itertools.product(CHOICES[one[0]][one[1]], CHOICES[other[0]][other[1]]):
            matrix = [list(row) for row in found.shape.matrix]
            for (row, column), value in zip((one, other), values, strict=True):
                matrix[row][column] = value
            assert cascade_speed_up(CascadeShape.of(matrix), RATES, COSTS) <= found.speed_up * (1 + 1e-11)
    assert climbed_cascade(found.shape, CHOICES, RATES, COSTS) == found


def test_the_best_vertical_cascade_is_the_best_pair():
    found = best_vertical(0.8, 0.4, draft_cost=0.1, scout_cost=0.01, reviews=range(9), lengths=range(9))
    speeds = {(n, k): vertical_speed_up(0.8, 0.4, k, n, draft_cost=0.1, scout_cost=0.01) for n, k in itertools.product(range(9), repeat=2)}
    assert found == (max(speeds, key=speeds.get), max(speeds.values())) and min(found.lengths) > 0


def test_a_hierarchy_is_the_best_of_all_hierarchies():
    """Every way to choose a drafter and a length for each model, its seconds per token from the bottom up."""
    options = [[(None, 0), *itertools.product(range(model + 1, 4), range(1, 7))] for model in range(4)]
    best = [math.inf] * 4
    for choice in itertools.product(*options):
        seconds = [0.0] * 4
        for model in (3, 2, 1, 0):
            drafter, length = choice[model]
            if drafter is None:
                seconds[model] = PASSES[model](1)
            else:
                tokens = chain_tokens(COPIES[model][drafter - 1], length)
                seconds[model] = (PASSES[model](length + 1) + length * seconds[drafter]) / tokens
        best = [min(pair) for pair in zip(best, seconds, strict=True)]
    found = best_hierarchy(PASSES, COPIES, longest=6)
    assert [level.seconds for level in found] == pytest.approx(best)
    assert found[0].drafter == 2 and found[2].drafter == 3 and found[3] == (None, 0, 0.0)  # the middle model does not pay here


def test_one_drafter_gives_the_chain():
    level = best_hierarchy((lambda rows: 1.0, lambda rows: 0.05), ((0.8,),), longest=20)[0]
    assert 1 / level.seconds == pytest.approx(best_relay([0.8], [0.05], longest=20).speed_up)


def test_thrown_away_surplus_costs():
    law = chain_law(0.6, 3)
    seconds = draft_seconds(0.1, law, 40)
    assert seconds[0] == 0 and seconds[1] == pytest.approx(0.1) and seconds[2] == pytest.approx(0.1 * (1 + law[0]))
    per_token = 0.1 / chain_tokens(0.6, 3)
    assert all(whole > tokens * per_token for tokens, whole in enumerate(seconds[1:], 1))
    assert seconds[40] - seconds[20] == pytest.approx(20 * per_token, rel=1e-3)


def test_the_cheapest_draft_is_the_best_of_all_policies():
    def least(model: int, wanted: int) -> float:
        if wanted <= 0:
            return 0.0
        ways = [PASSES[model](1) + least(model, wanted - 1)]
        for drafter in range(model + 1, 4):
            for length in range(1, wanted):
                law = enumerate(chain_law(COPIES[model][drafter - 1], length), 1)
                after = sum(chance * least(model, wanted - tokens) for tokens, chance in law)
                ways.append(PASSES[model](length + 1) + least(drafter, length) + after)
        return min(ways)

    found = cheapest_drafts(PASSES, COPIES, tokens=4)
    for model in range(4):
        assert [level.seconds for level in found[model]] == pytest.approx([least(model, wanted) for wanted in range(1, 5)])


def test_thrown_away_surplus_is_never_cheaper_than_kept():
    kept, thrown = best_hierarchy(PASSES, COPIES, longest=12), cheapest_drafts(PASSES, COPIES, tokens=12)
    for long_run, levels in zip(kept, thrown, strict=True):
        assert all(level.seconds >= wanted * long_run.seconds - 1e-12 for wanted, level in enumerate(levels, 1))
    one_way = draft_seconds(0.08, chain_law(0.45, 3), 12)  # the draft under copies, always three at once
    assert all(level.seconds <= fixed + 1e-12 for level, fixed in zip(thrown[2][3:], one_way[4:], strict=True))


def test_standard_prices_make_a_speed_up_of_counts():
    passes = {"t5-xxl": 40, "t5-base": 200, "mag": 90}
    assert swi(120, passes, price_list("pw"), target="t5-xxl") == pytest.approx(120 / (40 + 200 * 0.04))
    assert swi(120, passes, price_list("ms"), target="t5-xxl") == pytest.approx(120 * 11300 / (40 * 11300 + 200 * 220))
    assert swi(50, {"t": 50}, {"t": 3.0}, target="t") == 1


def test_expected_counts_give_swi_and_ewif_alike():
    found = expected_round(CascadeShape(((3, 2, 4), (0, 1, 4), (0, 0, 4))), RATES)
    passes = {"target": 1.0} | dict(zip("abc", found.passes, strict=True))
    prices = {"target": 20.0, "a": 2.0, "b": 0.6, "c": 0.0}
    assert swi(found.tokens, passes, prices, target="target") == pytest.approx(ewif(found.tokens, found.passes, COSTS))


def test_ten_times_the_price_of_a_target_flatters_by_a_fifth():
    passes = {"llama-7b": 10, "llama-160m": 100}
    printed = swi(30, passes, price_list("ms"), target="llama-7b")
    assert printed / swi(30, passes, price_list("ms") | {"llama-7b": 7000.0}, target="llama-7b") == pytest.approx(1.2, abs=0.01)


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda: phi(1.5, 3, 0.5), "got 1.5"),
        (lambda: vertical_tokens(0.5, 0.5, 3, -1), "reviews=-1"),
        (lambda: vertical_tokens(0.5, -0.5, 3, 1), "got -0.5"),
        (lambda: horizontal_speed_up([0.5, 0.5], [0.1]), "each drafter has its passes and its cost, got 2 and 1"),
        (lambda: relay_speed_up([0.5], [0.1], [-2]), r"got 1, 1 and \[-2\]"),
        (lambda: ewif(0.5, (), ()), "tokens_per_pass=0.5"),
        (lambda: ewif(2, (1,), (-0.1,)), r"0 or more, got \[1\] and \[-0.1\]"),
        (lambda: swi(3, {"a": 1, "b": 1}, {"a": 1}, target="a"), "b has none; there are a"),
        (lambda: swi(3, {"b": 1}, {"a": 1, "b": 1}, target="a"), "got 0 of 'a' at 1"),
        (lambda: swi(3, {"a": 1, "b": -1}, {"a": 1, "b": 1}, target="a"), "counts and prices are 0 or more"),
        (lambda: CascadeShape(()), "got 0 rows"),
        (lambda: CascadeShape(((1, 2),)), r"got 1 rows of \[2\]"),
        (lambda: CascadeShape(((1, 2), (1, 2))), r"the first 1 entries of row 1 are 0, got \(1, 2\)"),
        (lambda: CascadeShape(((1, -2), (0, 2))), r"row 0 is \(1, -2\)"),
        (lambda: CascadeShape(((1,),), "passes"), "tokens or calls, got 'passes'"),
        (lambda: expected_round(CascadeShape(((1,),)), RATES), "1 drafters need 1 × 1 acceptance rates"),
        (lambda: expected_round(CascadeShape(((1,),)), ((1.2,),)), r"in \[0, 1\], got \(\(1.2,\),\)"),
        (lambda: best_cascade(((range(300), range(300)), ((0,), range(300))), ((0.5, 0.5), (0, 0.5)), (0, 0)), "got 27000000"),
        (lambda: best_cascade((((),),), ((0.5,),), (0,)), "there are no K matrices to try"),
        (lambda: best_cascade((((1,), (1,)), ((1,), (1,))), ((0.5, 0.5), (0, 0.5)), (0, 0)), "below the diagonal of a K matrix stands 0"),
        (lambda: climbed_cascade(CascadeShape(((9,),)), ((range(3),),), ((0.5,),), (0,)), r"got \(\(9,\),\)"),
        (lambda: best_hierarchy(PASSES[:1], (), longest=3), "at least 2 models and a length of at least 1, got 1 and 3"),
        (lambda: best_hierarchy(PASSES[::-1], COPIES, longest=3), "the target's above 0"),
        (lambda: cheapest_drafts(PASSES[1:], COPIES, tokens=3), "2 drafters need 2 × 2 acceptance rates"),
        (lambda: draft_seconds(0.1, [0.5, 0.4], 3), "a law sums to 1"),
    ],
)
def test_a_value_out_of_range_is_named(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call()
