"""The explorer of a plan: its tree, speed-ups and verdict are theory's, for every knob."""

import pandas as pd
import pytest

from specdec_lib.show.widgets import Source, plan_explorer
from specdec_lib.theory import Overhead, PassTable, best_tree, expected_tokens, tree_gains

TARGET = PassTable((1, 2, 9, 33), (0,), ((1.0, 1.1, 1.8, 4.2),))
DRAFT, MIDDLE = (PassTable((1, 9), (0,), ((cost, 1.2 * cost),)) for cost in (0.1, 0.2))
TREE, PLAIN = Overhead(0.06, 0.002, 0.01), Overhead(0.03)
SOURCES = {"draft": Source([0.5, 0.15, 0.1], DRAFT), "middle": Source([0.6, 0.2], MIDDLE)}


@pytest.fixture
def panel(drawn):
    return plan_explorer(SOURCES, TARGET, TREE, PLAIN)


def gains(rates, tables, **options):
    """The speed-up of every tree that the panel may choose, by theory; one row per tree."""
    sizes = {"budgets": range(1, 9), "depths": (1, 2, 3, 4, 6, 8), "widths": [3]}
    found = pd.DataFrame(tree_gains(rates, tables, **sizes, **options))
    found = found.drop_duplicates(["depth", "speed_up"]).set_index(["budget", "depth"])
    return found.speed_up.to_dict()


def test_the_drawn_tree_is_the_one_that_pays_best(drawn, panel):
    wanted = gains(
        [[0.5, 0.15, 0.1]], {"target": TARGET, "draft": DRAFT}, overhead=TREE, plain=PLAIN
    )
    found = drawn.given("budget_speed_ups").set_index(["budget", "depth"]).speed_up
    assert all(found[place] == pytest.approx(speed) for place, speed in wanted.items())
    (budget, depth), best = max(wanted.items(), key=lambda item: item[1])
    assert found.max() == pytest.approx(best) and best > 1
    tree = best_tree([[0.5, 0.15, 0.1]], budget, depth)
    assert drawn.given("shapes").parent.tolist() == list(tree.parents)
    words = panel.words.value
    assert f"{tree.guesses} guesses, {tree.depth} deep: {best:.2f} times" in words
    assert f"emits {expected_tokens(tree, [[0.5, 0.15, 0.1]]):.2f} tokens" in words


def test_every_knob_says_what_theory_says_of_its_change(drawn, panel):
    panel.turn(rows=0.0, host=0.0, first=0.6)
    flat = PassTable(TARGET.rows, (0,), ((1.0,) * 4,))
    rates = [[0.6, 0.4 * 0.5 * 0.6, 0.4 * 0.5 * 0.4]]
    wanted = gains(rates, {"target": flat, "draft": DRAFT})
    found = drawn.given("budget_speed_ups").set_index(["budget", "depth"]).speed_up
    assert all(found[place] == pytest.approx(speed) for place, speed in wanted.items())
    panel.turn(cost=0.2)
    dearer = gains(rates, {"target": flat, "draft": DRAFT.faster(0.5)})
    found = drawn.given("budget_speed_ups").set_index(["budget", "depth"]).speed_up
    assert all(found[place] == pytest.approx(speed) for place, speed in dearer.items())
    assert dearer != pytest.approx(wanted), "the control: the cost makes a difference"


def test_a_button_sets_what_was_measured_of_a_source(panel):
    panel.buttons["middle"].click()
    assert panel.values() | {"rows": 1, "host": 1} == panel.values()
    at = panel.values()
    assert (at["first"], at["others"], at["cost"]) == (0.6, 0.5, 0.2)


@pytest.mark.parametrize(
    "turn, said",
    [
        ({"cost": 1.0}, "it would pay with draft passes in"),
        ({"first": 0.02, "others": 0.02, "host": 3.0}, "even free draft passes would not"),
    ],
)
def test_where_nothing_pays_the_verdict_is_not_to_speculate(drawn, panel, turn, said):
    panel.turn(**turn)
    assert drawn.given("budget_speed_ups").speed_up.max() <= 1
    assert "Do not speculate" in panel.words.value and said in panel.words.value


@pytest.mark.parametrize(
    "sources", [{}, {"draft": Source([0.5], DRAFT)}, {"draft": Source([0.5, 0.0], DRAFT)}]
)
def test_a_plan_without_a_second_rank_is_refused(sources):
    with pytest.raises(ValueError, match="two ranks or more"):
        plan_explorer(sources, TARGET, TREE, PLAIN)
