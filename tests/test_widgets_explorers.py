"""All explorers: they draw as they start, every knob changes a figure, and reset goes back."""

import json
from functools import partial

import ipywidgets
import pytest
from test_replay_studies import PRICES
from test_widgets import contents
from test_widgets_cascades import NAMES, OURS, made_replays, refuse
from test_widgets_costs import PLAIN, POINTS, SOURCES, STEEP, TARGET, TREE, curves
from test_widgets_numbers import GUESSES, ROUNDS

from specdec_lib.measure.idea_tables import stored_ideas
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.price_map import Priced, PricePoint
from specdec_lib.show import widgets
from specdec_lib.show.widgets import cascade_explorer

SAMPLED = {"budget": 6, "depth": 3, "temperature": 1.0, "top_k": None}
STEPS = {"rule": "reject", "step": 2, "budget": 4, "depth": 2}
CASCADE = {"prices": PRICES, "start": OURS, "texts": ("one", "other"), "tune": refuse}
PAIR = {"acceptance_rate": 0.6, "cost": 0.16}
STORED = {"machines": widgets.Machines()}
PLACES = {"first": PricePoint(1.5, 0.03, 1.0), "a GPU": PricePoint(1.0, 0.15, 0.0)}
SHAPE = partial(widgets.best_shape, [[0.5, 0.2, 0.1]])
SIZES = {"budget": range(1, 9), "depth": range(1, 5), "width": range(1, 4)}
SIZE = {"budget": 8, "depth": 3, "width": 2}
SHAPES = widgets.Bookmark("01_tree_construction", "shape_explorer", ("budget", "depth"))


def races() -> dict[str, Priced]:
    """The stored races of the README's machine, of its float32 target."""
    own = stored_ideas().query("edition == 'exact'")
    passes = stored_clocked("passes")
    return {f"T = {heat:g}": Priced.of(one, passes) for heat, one in own.groupby("temperature")}


EXPLORERS = {
    "acceptance": lambda *_: widgets.acceptance_explorer(GUESSES, ROUNDS, start={"least": 1}),
    "latency": lambda *_: widgets.latency_explorer(curves()),
    "break even": lambda *_: widgets.break_even_explorer(STEEP, POINTS, **PAIR),
    "plan": lambda *_: widgets.plan_explorer(SOURCES, TARGET, TREE, PLAIN),
    "cascade": lambda *_: cascade_explorer(made_replays().beside, NAMES, presets={}, **CASCADE),
    "pair of a machine": lambda *_: widgets.break_even_explorer(STEEP, POINTS, **PAIR, **STORED),
    "plan of a machine": lambda *_: widgets.plan_explorer(SOURCES, TARGET, TREE, PLAIN, **STORED),
    "shapes": lambda *_: widgets.sliders(SHAPE, SIZES, start=SIZE, bookmark=SHAPES),
    "prices": lambda *_: widgets.price_explorer(races(), PLACES, **STORED),
    "trees": lambda *texts: widgets.tree_explorer(*texts, start=SAMPLED),
    "stages": lambda *texts: widgets.stage_explorer(*texts, start=SAMPLED),
    "steps": lambda *texts: widgets.round_steps(*texts, start=STEPS),
}
# without which a knob has no effect
BESIDE = {"top_k": {"temperature": 1.3}}
WORDS_ALONE = {("trees", "machine")}  # of knobs that change no figure


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A machine that was not timed."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))


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
        if (name, knob) in WORDS_ALONE:
            continue
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
