"""The tree explorer's widths as sliders and as text; the texts that its trees are tried on."""

import pytest
from test_widgets_drafts import BY_WIDTHS, OWN, START

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.recorded_target import record_target
from specdec_lib.measure.target_text import text_of
from specdec_lib.show.widgets import tree_explorer, trying
from specdec_lib.show.widgets.width_knobs import NAMES


@pytest.fixture(scope="module")
def explorer(ladder, prompts):
    return tree_explorer(ladder, prompts[:1], start=START)


@pytest.fixture
def trees(explorer, drawn):
    explorer.turn(seed=1)  # so that going back to the start draws
    explorer.buttons["reset"].click()
    return explorer


def test_widths_shape_the_tree_and_a_budget_takes_the_shape_back(trees, drawn):
    trees.turn(shape=BY_WIDTHS, widths="3, 1")
    assert len(drawn.given("tree")) == 7 and "3 · 1 children per node" in trees.words.value
    trees.knobs["budget"].value = 5
    assert trees.values()["shape"] == "budget" and len(drawn.given("tree")) == 6
    assert "the best 5 guesses" in trees.words.value
    trees.turn(shape="budget", widths="2,2")
    assert trees.values()["shape"] == "budget", "a shape that is asked for stays"


SLID = [
    ({"width_2": 3}, "4,3,1,1"),
    ({"width_5": 2}, "4,2,1,1,2"),
    ({"width_6": 1, "width_1": 2}, "2,2,1,1,1,1"),  # a deep level has those above it
    ({"width_2": 0}, "4"),  # and none below where one is missing
    ({"widths": "1,1,1,1,1,1,1,1", "width_1": 2}, "2,1,1,1,1,1,1,1"),  # deeper than the sliders
    ({"widths": "9,2", "width_2": 1}, "9,1"),  # wider, too
]


@pytest.mark.parametrize("turns, widths", SLID)
def test_sliders_of_width_and_the_text_of_widths_follow_each_other(trees, drawn, turns, widths):
    for name, value in turns.items():
        trees.turn(**{name: value})
    assert trees.values()["widths"] == widths and trees.values()["shape"] == BY_WIDTHS
    wanted = [*map(int, widths.split(","))]
    shown = [trees.values()[name] for name in NAMES]
    assert shown == [*wanted, *[0] * 6][:6]
    tree, nodes = drawn.given("tree"), 1
    for depth, width in enumerate(wanted, 1):
        nodes *= width
        assert tree.depths.count(depth) == nodes
    every = trees.words.value
    assert f">{sum(tree.scores):.2f}<" in every, "tokens per round as the scores expect them"


def test_a_text_that_is_no_widths_leaves_the_sliders_and_a_slider_mends_it(trees):
    trees.turn(widths="a")
    assert "numbers from 1 on" in trees.words.value and trees.values()["width_1"] == 4
    trees.knobs["width_1"].value = 3
    assert trees.values()["widths"] == "3,2,1,1" and "numbers" not in trees.words.value
    trees.turn(widths="2,0")
    trees.turn(shape="budget")
    assert "numbers from 1 on" not in trees.words.value, "the budget's tree needs none"


def test_a_text_is_written_with_a_draft_as_without_one_and_remembered(ladder, prompts):
    """Control: another seed writes another text."""
    trial = trying.DraftTrial(ladder, prompts[:1])
    at = {"prompt": prompts[0].name, "text": "", "temperature": 1.0, "seed": 3, "top_k": None}
    context, chance = trial.read(at)
    plain = record_target(ladder.target, context, chance, max_new_tokens=trying.NEW_TOKENS)
    assert trial._record(context, chance).tokens == plain.tokens
    draft = TreeDraft(ladder.draft, budget=4, depth=2)
    assert trial.follow(context, chance, draft) is trial.follow(context, chance, draft)
    other = trial.read(at | {"seed": 4})
    assert trial._record(*other).tokens != plain.tokens


def test_stored_texts_are_taken_for_their_prompts_alone(ladder, prompts, monkeypatch):
    first = prompts[0]
    text = text_of(ladder, first, ladder.encode(first), range(5, 45), Sampler(0.0), 0, 40)
    monkeypatch.setattr(trying, "known_texts", lambda samplers, *_, **__: [text])
    trial = trying.DraftTrial(ladder, prompts[:2])
    at = {"text": "", "temperature": 0.0, "seed": 0}
    found = [trial._record(*trial.read(at | {"prompt": one.name})) for one in prompts[:2]]
    assert found[0].tokens == tuple(range(5, 5 + trying.NEW_TOKENS)) != found[1].tokens
    own = trial._record(*trial.read(at | {"prompt": first.name, "text": OWN}))
    assert own.tokens != found[0].tokens
    other = trial._record(*trial.read(at | {"prompt": first.name, "seed": 1}))
    assert other.tokens != found[0].tokens
