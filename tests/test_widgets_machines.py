"""Explorers with machines: whose prices they have, the menu, the button, and what both set."""

import pandas as pd
import pytest
from test_machine_prices import OTHER, kept
from test_replay_studies import PRICES
from test_widgets_cascades import NAMES, START, refuse
from test_widgets_costs import PLAIN, POINTS, SOURCES, STEEP, TARGET, TREE
from test_widgets_explorers import races
from test_widgets_words import cells

from specdec_lib.measure import machine_prices
from specdec_lib.measure.machine import HERE, machine_name
from specdec_lib.measure.machine_prices import Machines
from specdec_lib.measure.price_map import place_of
from specdec_lib.measure.race_table import RACED
from specdec_lib.show import widgets
from specdec_lib.show.widgets.machine_menu import MachineMenu

PAIR = {"acceptance_rate": 0.6, "cost": 0.16}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, unchecked):
    """A machine that was not timed."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))


def timed(self, tell, *, seconds=10.0):
    """Timing this machine, without the time it takes."""
    for share in (0.3, 1.0):
        tell(share)
    kept(self)


def evaluate(setting, prices, texts):
    swi = 1 / prices["draft"]
    row = {"swi": swi, "low": 0.9 * swi, "high": 1.1 * swi, "texts": 10, "tokens_per_round": 2.0}
    row |= {f"{name}_{what}": 1.0 for name in prices for what in ("passes", "price")}
    row |= {"acceptance_rate": 0.5, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}
    return pd.DataFrame([row | {"setting": "this setting"}])


def cascades(machines):
    given = {"prices": PRICES, "start": START, "texts": ("one",), "presets": {}, "tune": refuse}
    return widgets.cascade_explorer(evaluate, NAMES, **given, machines=machines)


def plans(machines):
    sources = {name: one._replace(model=name) for name, one in SOURCES.items()}
    return widgets.plan_explorer(sources, TARGET, TREE, PLAIN, machines=machines)


def pairs(machines):
    return widgets.break_even_explorer(STEEP, POINTS, **PAIR, machines=machines)


MAKERS = {"cascade": cascades, "plan": plans, "pair": pairs}


def test_without_machines_there_is_no_menu():
    for make in MAKERS.values():
        panel = make(None)
        assert "machine" not in panel.values() and "time" not in panel.buttons


@pytest.mark.parametrize("name", MAKERS)
def test_the_menu_offers_the_stored_machines_and_this_one_once_it_was_timed(name, monkeypatch):
    monkeypatch.setattr(Machines, "time_here", timed)
    panel = MAKERS[name](Machines())
    offered = [value for _, value in panel.knobs["machine"].options]
    assert offered[0] == RACED == panel.values()["machine"] and OTHER in offered
    assert RACED in panel.words.value
    said = []
    panel.working.observe(lambda change: said.append(change["new"]), names="value")
    panel.buttons["time"].click()
    assert any('<progress value="0.300"' in one for one in said) and said[-1] == ""
    assert panel.values()["machine"] == HERE
    assert [label for label, _ in panel.knobs["machine"].options][1] == "this machine"
    assert f"this machine ({machine_name()}), timed on 2026-01-01" in panel.words.value
    panel.buttons["reset"].click()
    assert panel.values()["machine"] == RACED


@pytest.mark.parametrize("name", MAKERS)
def test_an_explorer_begins_with_this_machine_where_it_was_timed_and_no_other_was_asked(name):
    """Its image for pages without widgets does not: what a notebook stores hangs on no machine."""
    stands = MAKERS[name](Machines())._repr_mimebundle_()
    kept(Machines())
    panel = MAKERS[name](Machines())
    assert panel.values()["machine"] == HERE
    again = panel._repr_mimebundle_()
    assert {key: again[key] for key in ("text/plain", "image/png")} == {
        key: stands[key] for key in ("text/plain", "image/png")
    }
    panel.turn(machine=OTHER)
    assert OTHER in panel._repr_mimebundle_()["text/plain"], "what is turned now stands in"
    panel.buttons["reset"].click()
    assert panel.values()["machine"] == HERE
    assert MAKERS[name](Machines(OTHER)).values()["machine"] == OTHER


def test_timing_this_machine_again_renews_the_prices(monkeypatch):
    """The menu stands at this machine before and after."""
    times = []

    def dearer(self, tell, *, seconds=10.0):
        timed(self, tell)
        found = self.passes(HERE)
        times.append(1 + len(times))
        self._read[HERE] = found.assign(
            seconds=found.seconds.where(found.model != "draft", times[-1] * found.seconds)
        )
        self._tables.pop(HERE, None)

    monkeypatch.setattr(Machines, "time_here", dearer)
    panel = cascades(Machines())
    panel.buttons["time"].click()
    first = panel.values()["price_draft"]
    panel.buttons["time"].click()
    assert times == [1, 2] and panel.values()["machine"] == HERE
    assert panel.values()["price_draft"] > 1.5 * first
    assert not panel.buttons["time"].disabled


def test_a_cascades_prices_are_those_of_the_machine_until_they_are_set_by_hand():
    panel, theirs = cascades(Machines()), Machines().one_row_prices(OTHER)
    panel.turn(machine=OTHER)
    assert panel.values()["price_draft"] == theirs["draft"]
    assert panel.values()["price_middle"] == theirs["middle"]
    swi = ["this setting", f"{1 / theirs['draft']:.2f}"]
    assert swi in [row[:2] for row in cells(panel.words.value)]
    assert f"those of {OTHER}, stored" in panel.words.value
    panel.turn(price_draft=0.5)
    assert f"set by hand, where {OTHER}, stored, has" in panel.words.value
    panel.turn(machine=RACED)
    assert panel.values()["price_draft"] == PRICES["draft"], "the caller's own prices"
    panel.turn(machine=OTHER, price_draft=0.3)
    assert panel.values()["price_draft"] == 0.3, "a price that is asked for stays"


def test_a_plans_costs_are_those_of_the_machine_and_so_are_its_buttons(drawn):
    panel, tables = plans(Machines()), Machines().tables(OTHER)
    panel.buttons["middle"].click()
    before = drawn.given("budget_speed_ups").speed_up.max()
    panel.turn(machine=OTHER)
    cost = {name: tables[name].at(1, 256) / tables["target"].at(1, 256) for name in SOURCES}
    assert panel.values()["cost"] == pytest.approx(cost["middle"], rel=0.05)
    assert drawn.given("budget_speed_ups").speed_up.max() != before
    panel.buttons["draft"].click()
    assert panel.values()["cost"] == pytest.approx(cost["draft"], rel=0.05)
    assert f"the host's seconds are those of {RACED}" in panel.words.value
    panel.turn(machine=RACED)
    assert panel.values()["cost"] == 0.1


def test_a_plan_for_a_model_that_was_not_timed_there_is_refused():
    sources = {"other": SOURCES["draft"]._replace(model="other")}
    panel = widgets.plan_explorer(sources, TARGET, TREE, PLAIN, machines=Machines())
    panel.turn(machine=OTHER)
    assert "other was not timed there, timed were target" in panel.words.value


def test_curves_and_pairs_are_those_of_the_machine(drawn):
    panel, tables = pairs(Machines()), Machines().tables(OTHER)
    assert [value for _, value in panel.knobs["verify"].options] == ["steep", "flat"]
    panel.turn(machine=OTHER)
    names = [value for _, value in panel.knobs["verify"].options]
    assert names == ["target, fast", "target, int8", "flat"]
    cost = tables["draft"].at(1, 256) / tables["target"].at(1, 256)
    assert panel.values()["cost"] == pytest.approx(cost, rel=0.05)
    own = drawn.given("break_even", 1)
    assert own.cost.tolist() == pytest.approx([cost])
    verify = tables["target"].at(2, 256) / tables["target"].at(1, 256)
    first = drawn.given("chain_lengths").speed_up[0]
    assert first == pytest.approx(1.6 / (panel.values()["cost"] + verify))
    panel.turn(machine=RACED)
    assert drawn.given("break_even", 1).cost.tolist() == [0.15], "the caller's own pairs"


def test_prices_of_ones_own_machine_are_in_the_menu_beside_the_points():
    place = place_of(Machines().passes(OTHER), "exact", "draft", 0.0)
    start = place_of(Machines().passes(RACED), "exact", "draft", 0.0)
    options = {"machines": Machines(), "model": "draft", "temperature": 0.0}
    panel = widgets.price_explorer(races(), {"first": start}, **options)
    assert f"Prices: {RACED}, stored." in panel.words.value
    panel.turn(machine=OTHER)
    assert panel.values()["sixteen"] == pytest.approx(place.sixteen, abs=0.03)
    assert f"Prices: {OTHER}, stored." in panel.words.value
    panel.turn(sixteen=3.0)
    assert "Prices: set by hand." in panel.words.value
    panel.buttons["first"].click()
    assert "Prices: first." in panel.words.value


def test_models_timed_nowhere_have_no_machine_until_the_button(ladder, prompts, monkeypatch):
    monkeypatch.setattr(machine_prices, "ROWS", (1, 17))
    monkeypatch.setattr(machine_prices, "CONTEXTS", (32,))
    panel = widgets.tree_explorer(ladder, prompts[:1])
    assert panel.values()["machine"] == ""
    assert 'The button "time this machine"' in panel.words.value
    panel.buttons["time"].click()
    assert "Predicted speed" in panel.words.value and "this machine" in panel.words.value
    panel.buttons["reset"].click()
    assert panel.values()["machine"] == "" and "alert" not in panel.words.value


def test_a_machine_of_which_nothing_is_stored_is_refused():
    """Control: the caller has its prices."""
    with pytest.raises(ValueError, match="no table passes of no-such is stored"):
        MachineMenu(Machines("no-such"))
    assert MachineMenu(Machines("no-such"), given=True).menu.value == "no-such"
