"""All explorers: they draw as they start, every knob changes a figure, and reset goes back."""

import json

import ipywidgets
import pytest
from test_replay_studies import PRICES
from test_widgets import contents
from test_widgets_cascades import NAMES, OURS, made_replays, refuse
from test_widgets_costs import PLAIN, POINTS, SOURCES, STEEP, TARGET, TREE, curves
from test_widgets_numbers import GUESSES, ROUNDS

from specdec_lib.show import widgets
from specdec_lib.show.widgets import cascade_explorer

SAMPLED = {"budget": 6, "depth": 3, "temperature": 1.0, "top_k": None}
STEPS = {"rule": "reject", "step": 2, "budget": 4, "depth": 2}
CASCADE = {"prices": PRICES, "start": OURS, "texts": ("one", "other"), "tune": refuse}
PAIR = {"acceptance_rate": 0.6, "cost": 0.16}
EXPLORERS = {
    "acceptance": lambda *_: widgets.acceptance_explorer(GUESSES, ROUNDS, start={"least": 1}),
    "latency": lambda *_: widgets.latency_explorer(curves()),
    "break even": lambda *_: widgets.break_even_explorer(STEEP, POINTS, **PAIR),
    "plan": lambda *_: widgets.plan_explorer(SOURCES, TARGET, TREE, PLAIN),
    "cascade": lambda *_: cascade_explorer(made_replays().beside, NAMES, presets={}, **CASCADE),
    "trees": lambda *texts: widgets.tree_explorer(*texts, start=SAMPLED),
    "stages": lambda *texts: widgets.stage_explorer(*texts, start=SAMPLED),
    "steps": lambda *texts: widgets.round_steps(*texts, start=STEPS),
}
# without which a knob has no effect
BESIDE = {"widths": {"shape": "widths per depth"}, "top_k": {"temperature": 1.3}}


def pictures(box):
    return [json.loads(contents(one)) for one in box.figures]


def places(knob):
    """Where a knob may be, but for where it is."""
    if isinstance(knob, ipywidgets.Text | ipywidgets.Textarea):
        return ["3, 1", "def mean(values):\n"]
    if isinstance(knob, ipywidgets.IntSlider):
        return range(knob.max, -1, -1)
    options = [value for _, value in getattr(knob, "options", [("", not knob.value)])]
    return [value for value in reversed(options) if value != knob.value]


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_knob_changes_a_figure_and_reset_goes_back(name, ladder, prompts, unchecked):
    box = EXPLORERS[name](ladder, prompts[:2])
    first, idle = pictures(box), []
    assert "alert" not in box.words.value
    box.turn(**box.values())
    assert pictures(box) == first, "the control: a turn to where it is"
    for knob in box.values():
        box.turn(**BESIDE.get(knob, {}))
        before = pictures(box)
        for value in places(box.knobs[knob]):
            box.turn(**{knob: value})
            if pictures(box) != before and "alert" not in box.words.value:
                break
        else:
            idle.append(knob)
        box.buttons["reset"].click()
        assert pictures(box) == first
    assert idle == []
