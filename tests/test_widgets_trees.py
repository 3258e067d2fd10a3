"""The explorers of trees, rounds and stages show what the loop does, take an own text, and refuse
what makes no sense.
"""

import re

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.sweep import stacks
from specdec_lib.show.widgets import round_steps, stage_explorer, tree_explorer
from specdec_lib.show.widgets.trying import GUESSERS, Machine, Plan, Trial
from specdec_lib.theory import Overhead, PassTable, Work

SMALL = {"max_new_tokens": 12}
START = {"budget": 6, "depth": 3, "temperature": 0.0, "top_k": None}
OWN = "def mean(values):\n"
MACHINE = Machine("made up", {}, {})


@pytest.fixture(scope="module")
def explorer(ladder, prompts):
    return tree_explorer(ladder, prompts[:3], start=START, machine=MACHINE, **SMALL)


@pytest.fixture
def trees(explorer):
    explorer.turn(**explorer._start)
    return explorer


def labels(box):
    """The words in the drawn tree's boxes."""
    return list(next(trace for trace in box.figures[0].data if trace.mode == "text").text)


def real(ladder, text, draft, sampler=Sampler(0.0), seed=0):
    return decode(
        ladder.target,
        draft,
        ladder.encode(text),
        Chance(seed, sampler),
        max_new_tokens=12,
        stop_tokens=ladder.stop_tokens,
    )


def test_the_tree_and_its_numbers_are_the_loops_own(trees, ladder, prompts):
    played = real(ladder, prompts[0], TreeDraft(ladder.draft, budget=6, depth=3))
    first = played.rounds[0]
    assert trees.figures[0].layout.title.text.startswith(
        f"round 1: {first.accepted} of 6 guesses accepted"
    )
    assert (
        len(labels(trees)) == len(first.tree) + 1
    )  # the target's own token stands at the path's end
    assert (
        f">{played.tokens_per_round:.2f}<" in trees.words.value
        and f">{sum(first.tree.scores):.2f}<" in trees.words.value
    )
    assert trees.figures[1].layout.title.text == "7 rows in one pass of the target"


def test_every_knob_of_the_tree_explorer_redraws(trees, prompts):
    before = labels(trees)
    for change in (
        {"budget": 3},
        {"temperature": 1.3, "seed": 4},
        {"draft": "Max-Gram"},
        {"prompt": prompts[1].name},
        {"round": 2},
    ):
        trees.turn(**trees._start)
        trees.turn(**change)
        assert "alert" not in trees.words.value and labels(trees) != before, (
            change,
            trees.words.value,
        )


def test_an_own_text_is_continued_in_place_of_the_prompt(trees, ladder):
    trees.turn(text=OWN)
    first = real(ladder, OWN, TreeDraft(ladder.draft, budget=6, depth=3)).rounds[0]
    assert (
        f"{first.accepted} of {first.proposed} guesses" in trees.figures[0].layout.title.text
        and labels(trees)[0] == "⏎"
    )
    deep = labels(trees)
    trees.turn(depth=1)
    assert labels(trees) != deep
    trees.turn(text="   ")
    assert labels(trees)[0] != "⏎"


def test_widths_shape_the_tree_and_their_field_is_open_only_then(trees):
    assert trees.knobs["widths"].disabled and not trees.knobs["budget"].disabled
    trees.turn(shape="widths per depth", widths="3, 1")
    assert (
        len(labels(trees)) == 8
        and not trees.knobs["widths"].disabled
        and trees.knobs["budget"].disabled
    )


@pytest.mark.parametrize(
    "widths, message",
    [
        ("4,x", "whole numbers, one per depth"),
        ("", "got none"),
        ("2,0", "at least 1"),
        ("9,9", "90 guesses; at most 64"),
    ],
)
def test_bad_widths_are_said_and_the_figures_stay(trees, widths, message):
    before = labels(trees)
    trees.turn(shape="widths per depth", widths=widths)
    assert message in trees.words.value and labels(trees) == before


def test_a_round_or_a_text_that_is_not_there_is_said(trees):
    trees.turn(round=10, depth=3, budget=6)
    assert "rounds, there is no round 10" in trees.words.value
    trees.turn(round=1, text="word " * 600)
    assert "reads at most 512" in trees.words.value
    trees.turn(text="word " * 253)
    assert "leaves room for 12 more" in trees.words.value


@pytest.mark.parametrize("name", GUESSERS)
def test_every_guesser_guesses_by_budget_and_by_widths(name, ladder, prompts):
    context, sampler = Context.of(ladder.encode(prompts[0])), Sampler(1.0)
    for plan in (Plan(5, 3), Plan(5, 3, (2, 1))):
        tree = GUESSERS[name](ladder, plan, sampler).propose(context, Chance(1, sampler))
        assert tree.guesses and max(tree.depths) <= 3


def test_a_tree_explorer_that_starts_nowhere_is_refused(ladder, prompts):
    for start, message in (
        ({"budget": 99}, "'budget' must start"),
        ({"shape": "round"}, "'shape' must start"),
        ({"breadth": 1}, "no knob 'breadth'"),
    ):
        with pytest.raises(ValueError, match=message):
            tree_explorer(ladder, prompts[:1], start=START | start, machine=MACHINE, **SMALL)
    with pytest.raises(ValueError, match="needs a prompt"):
        tree_explorer(ladder, [], machine=MACHINE)


def test_a_predicted_speed_up_is_plain_decodings_time_over_the_drafts():
    table = PassTable((1, 2), (0,), ((1.0, 1.0),))
    machine = Machine(
        "it",
        {"target": table, "draft": table.faster(10)},
        {0.0: {"tree": Overhead(0.1), "autoregressive": Overhead(0.5)}},
    )
    work = Work(3.0, 1.0, 1.0, {("target", 2, 8): 1, ("draft", 1, 8): 2})
    assert machine.speed_up(work, 0.7) == pytest.approx(1.5 * 3 / 1.3)
    assert machine.speed_up(work, 0.7, kind=None) == pytest.approx(3 / 1.2)
    assert machine.speed_up(Work(3.0, 1.0, 1.0, {("middle", 1, 8): 1}), 0.0) is None
    assert (
        machine.speed_up(work, 0.0, kind="staged") is None and MACHINE.speed_up(work, 0.0) is None
    )


def test_the_stored_measurement_knows_the_ladder():
    machine = Machine.stored()
    assert (
        {"target", "middle", "draft"} <= set(machine.tables)
        and machine.name
        and all("tree" in kinds for kinds in machine.kinds.values())
    )


def test_a_trial_remembers_and_forgetting_changes_nothing(ladder, prompts):
    trial, chance = Trial(ladder, prompts[:1], 8), Chance(1, Sampler(1.0))
    context = trial.context(prompts[0].name)
    one, two = (
        trial.generation(TreeDraft(ladder.draft, budget=3), context, chance).tokens
        for _ in range(2)
    )
    assert one == two == real(ladder, prompts[0], NoDraft(), Sampler(1.0), 1).tokens[:8]


@pytest.fixture(scope="module")
def steps(ladder, prompts):
    return round_steps(ladder, prompts[:2], start={"budget": 4, "depth": 2})


def test_a_round_is_walked_forward_and_back_with_buttons(steps):
    steps.turn(step=0)
    assert steps.knobs["previous"].disabled and "context" in steps.words.value
    seen = []
    while not steps.knobs["next"].disabled:
        seen.append(steps.words.value)
        steps.knobs["next"].click()
    assert len(set(seen)) == steps.knobs["step"].max and "emit" in steps.words.value
    steps.knobs["next"].click()
    steps.knobs["previous"].click()
    assert steps.words.value == seen[-1]


@pytest.mark.parametrize("rule", ["look_up", "reject"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_step_of_both_rules_is_drawn(steps, rule, temperature):
    steps.turn(step=0, rule=rule, temperature=temperature, text=OWN)
    kinds = set()
    for step in range(steps.knobs["step"].max + 1):
        steps.turn(step=step)
        kinds.add(re.search(r"step \d+ of \d+, (\w+):", steps.words.value)[1])
    assert "alert" not in steps.words.value
    assert {"context", "propose", "score", "emit"} < kinds and kinds & (
        {"choose"} if rule == "look_up" else {"draw"}
    )


def test_fewer_steps_take_the_slider_back_and_a_bad_text_is_said(steps):
    steps.turn(step=0, rule="reject", temperature=1.0, budget=12, depth=4, text="")
    steps.turn(step=steps.knobs["step"].max)
    steps.turn(budget=1)
    assert "emit" in steps.words.value or steps.knobs["step"].value < steps.knobs["step"].max
    steps.turn(text="word " * 600)
    assert "reads at most 512" in steps.words.value


def test_a_round_that_starts_at_no_step_is_refused(ladder, prompts):
    with pytest.raises(ValueError, match="'step' must start at one of 0…"):
        round_steps(ladder, prompts[:1], start={"step": 99})


@pytest.fixture(scope="module")
def stages(ladder, prompts):
    return stage_explorer(
        ladder, prompts[:2], start={"budget": 4, "depth": 3, "scout_budget": 4}, **SMALL
    )


def dots(box, metric):
    """The values of one panel of the stage explorer, by stack."""
    place = [note.text for note in box.figures[0].layout.annotations].index(metric)
    trace = [one for one in box.figures[0].data if one.mode and "markers" in one.mode][place]
    return [float(value) for value in trace.x]


def test_the_stages_counts_are_those_of_real_rounds(stages, ladder, prompts):
    one = TreeDraft(ladder.draft, budget=4, depth=3, match=ladder.match("draft", Sampler(0.0)))
    two = StagedTree(one, stacks.scout(ladder, Sampler(0.0), budget=4), guided=2)
    for place, draft in enumerate((one, two), 1):
        played = real(ladder, prompts[0], draft)
        assert dots(stages, "tokens per round")[place] == pytest.approx(played.tokens_per_round)
        passes = sum(used.usage["draft"].passes for used in played.rounds) / len(played.rounds)
        assert dots(stages, "draft passes per round")[place] == pytest.approx(passes)


def test_a_second_stage_changes_passes_and_no_tokens(stages):
    for scout in ("n-gram", "Max-Gram", "draft, for the middle model"):
        for shape in ("tree", "chain"):
            stages.turn(scout=scout, shape=shape)
            plain, one, two = dots(stages, "tokens per round")
            assert plain == 1 <= one == two
    stages.turn(scout="none", text=OWN)
    assert len(dots(stages, "tokens per round")) == 2 and "alert" not in stages.words.value


def test_explorers_stand_as_small_images_where_widgets_cannot_run(trees, steps, stages):
    for box in (trees, steps, stages):
        bundle = box._repr_mimebundle_()
        assert "image/png" not in bundle or len(bundle["image/png"]) < 40_000


def test_two_explorers_of_one_ladder_are_independent(ladder, prompts):
    one, two = (round_steps(ladder, prompts[:2], start={"budget": 4, "depth": 2}) for _ in range(2))
    one.turn(step=3, seed=5)
    assert two.values()["step"] == 0 and two.values()["seed"] == 0
