"""Explorers of trees, rounds and stages: the loop's own, own texts, and what is refused."""

import json
import re

import pandas as pd
import pytest
from own_models import gpt2
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import machine_prices
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.settings.explorers import GUESSERS, TreeSize, guesser, offered_by
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.show.widgets import round_steps, stage_explorer, tree_explorer, trying
from specdec_lib.show.widgets.trying import PassTimes
from specdec_lib.theory import PassTable, Work
from specdec_lib.workload import Prompt, load_ladder, seeds

START = {"budget": 6, "depth": 3, "temperature": 0.0, "top_k": None}
STAGED = {"budget": 4, "depth": 3, "scout_budget": 4}
BY_WIDTHS = "widths per depth"
OWN = "def mean(values):\n"


@pytest.fixture(scope="module")
def explorers(ladder, prompts):
    steps = round_steps(ladder, prompts[:2], start={"budget": 4, "depth": 2})
    return {"trees": tree_explorer(ladder, prompts[:3], start=START), "steps": steps}


@pytest.fixture
def trees(explorers, drawn):
    explorers["trees"].turn(seed=1)  # so that going back to the start draws
    explorers["trees"].buttons["reset"].click()
    return explorers["trees"]


@pytest.fixture
def steps(explorers):
    explorers["steps"].buttons["reset"].click()
    return explorers["steps"]


def real(ladder, text, draft, sampler=Sampler(0.0), seed=0):
    limits = {"stop_tokens": ladder.stop_tokens, "max_new_tokens": trying.NEW_TOKENS}
    chance = Chance(seed if isinstance(text, str) else seeds([text], seed)[0], sampler)
    return decode(ladder.target, draft, ladder.encode(text), chance, **limits)


def test_a_draft_of_ones_own_goes_step_by_step(ladder, prompts):
    """Copies have no model: their guesses come with scores alone, and no knob sizes them."""
    own = round_steps(
        ladder, prompts[:1], draft=MaxGram(None, 3), start={"text": "one two one two one"}
    )
    assert not {"budget", "depth"} & set(own.values()) and "step 0" in own.words.value
    said = []
    for _ in range(own.knobs["step"].max):
        own.knobs["next"].click()
        said.append(own.words.value)
    assert "tells no numbers of what decided" in "".join(said) and "emit" in said[-1]


def test_the_tree_and_its_numbers_are_the_loops_own(trees, drawn, ladder, prompts):
    played = real(ladder, prompts[0], TreeDraft(ladder.draft, budget=6, depth=3))
    first, tree = played.rounds[0], drawn.given("tree")
    assert (tree.tokens, tree.parents) == (first.tree.tokens, first.tree.parents)
    assert drawn.named("tree", "path") == first.path and drawn.given("mask") is tree
    words = trees.words.value
    assert f">{played.tokens_per_round:.2f}<" in words and f">{sum(tree.scores):.2f}<" in words


def test_an_own_text_stands_in_place_of_the_prompt(trees, drawn, ladder):
    trees.turn(text=OWN)
    first = real(ladder, OWN, TreeDraft(ladder.draft, budget=6, depth=3)).rounds[0]
    assert drawn.given("tree").tokens == first.tree.tokens
    trees.turn(text="   ")
    assert drawn.given("tree").tokens != first.tree.tokens


@pytest.mark.parametrize(
    "change, message",
    [
        ({"shape": BY_WIDTHS, "widths": "2,0"}, "numbers from 1 on"),
        ({"shape": BY_WIDTHS, "widths": "a"}, "numbers from 1 on"),
        ({"shape": BY_WIDTHS, "widths": "9,9"}, "of up to 64 guesses"),
        ({"round": 10}, "there is no round 10"),
        ({"text": "word " * 600}, "reads at most 512"),
    ],
)
def test_what_cannot_be_shown_is_said_and_the_figures_stay(trees, drawn, change, message):
    before = drawn.given("tree")
    trees.turn(**change)
    assert message in trees.words.value and drawn.given("tree") is before


@pytest.fixture(scope="module")
def reads():
    return tiny_ladder(reads=True)


@pytest.mark.parametrize("name", GUESSERS)
def test_every_guesser_guesses_by_budget_and_by_widths(name, reads, prompts):
    ladder = reads
    prompt, sampler = ladder.encode(prompts[0]), Sampler(1.0)
    context = Context.of(prompt).extended(prompt[:4])  # so that there is something to copy
    for size in (TreeSize(5, 3), TreeSize(5, 3, (2, 1))):
        tree = guesser(ladder, sampler, name, size).propose(context, Chance(1, sampler))
        assert tree.guesses and max(tree.depths) <= 3


def test_an_explorer_without_a_prompt_or_that_starts_nowhere_is_refused(ladder, prompts):
    for explorer in (tree_explorer, round_steps, stage_explorer):
        with pytest.raises(ValueError, match="needs a prompt"):
            explorer(ladder, [])
    with pytest.raises(ValueError, match="'step' cannot be at 99: it stops at"):
        round_steps(ladder, prompts[:1], start={"step": 99})


def test_a_predicted_speed_up_is_plain_decodings_time_over_the_drafts():
    table = PassTable((1, 2), (0,), ((1.0, 1.0),))
    columns = ["kind", "temperature", *trying.HOST]
    rows = [("tree", 0.0, 0.1, 0.0, 0.0), ("autoregressive", 0.0, 0.5, 0.0, 0.0)]
    host = pd.DataFrame([*rows, ("tree", 9.0, 7.0, 7.0, 7.0)], columns=columns)
    times = PassTimes("it", {"target": table, "draft": table.faster(10)}, host)
    work = Work(3.0, 1.0, 1.0, {("target", 2, 8): 1, ("draft", 1, 8): 2})
    assert times.speed_up(work, 0.7, host=True) == pytest.approx(1.5 * 3 / 1.3)
    assert times.speed_up(work, 0.7, host=False) == pytest.approx(3 / 1.2)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rule, deciding", [("look_up", "choose"), ("reject", "draw")])
def test_a_round_is_walked_forward_and_back_with_buttons(steps, rule, deciding, temperature):
    steps.turn(rule=rule, temperature=temperature, text=OWN)
    assert steps.knobs["previous"].disabled
    seen = [steps.words.value]
    while not steps.knobs["next"].disabled:
        steps.knobs["next"].click()
        seen.append(steps.words.value)
    kinds = [re.search(r"step \d+ of \d+, (\w+):", one)[1] for one in seen]
    assert len(set(seen)) == steps.knobs["step"].max + 1 and (kinds[0], kinds[-1]) == (
        "context",
        "emit",
    )
    assert {"propose", "score", deciding} <= {*kinds}
    steps.knobs["previous"].click()
    assert steps.words.value == seen[-2]


def test_fewer_steps_take_the_slider_back_and_a_bad_text_is_said(steps):
    steps.turn(rule="reject", temperature=1.0, budget=12, depth=4)
    steps.turn(step=(most := steps.knobs["step"].max))
    steps.turn(budget=1)
    assert steps.values()["step"] <= steps.knobs["step"].max < most
    steps.turn(text="word " * 600)
    assert "reads at most 512" in steps.words.value


def test_an_own_pair_is_explored_with_the_drafts_and_scouts_that_it_has(reads, tmp_path):
    own = load_ladder(gpt2(tmp_path / "a", seed=1), gpt2(tmp_path / "b", seed=2), device="cpu")
    texts = [Prompt("a", "def f(x):\n    return", "own", "held-out", "here")]
    trees, stages = tree_explorer(own, texts), stage_explorer(own, texts)
    steps = round_steps(own, texts, start={"rule": "reject", "temperature": 1.0})
    drafts = trees.knobs["draft"].options
    assert [name for name, _ in drafts] == ["draft", "Max-Gram", "draft and Max-Gram"]
    assert offered_by(reads, GUESSERS) == list(GUESSERS), "the control"
    assert [value for _, value in stages.knobs["scout"].options] == ["none", "Max-Gram"]
    assert stages.values()["scout"] == "Max-Gram"
    assert list(stages.buttons) == ["reset", "chain, no scout", "tree, no scout"]
    assert not any("alert" in box.words.value for box in (trees, stages, steps))
    assert "No speed-up" in trees.words.value, "pass times are of other models of these names"


def test_the_hosts_seconds_count_where_they_were_fitted(ladder, prompts, tmp_path, monkeypatch):
    """On the ladder, as if the stored pass times were those of its models."""
    as_embedded(ladder, tmp_path, monkeypatch)
    box, alone = tree_explorer(ladder, prompts[:1]), set()
    for draft in offered_by(ladder, GUESSERS):
        box.turn(draft=draft)
        assert "Predicted speed" in box.words.value
        alone |= {draft} if "passes alone" in box.words.value else set()
    assert alone == {"n-gram", "Max-Gram", "draft and Max-Gram"}
    assert f"of {RACED}, stored" in box.words.value
    box.turn(draft="draft", machine="amd-epyc-zen-3-avx2-1-threads")
    assert "of amd-epyc-zen-3-avx2-1-threads, stored; passes alone" in box.words.value


def test_a_model_that_was_not_timed_gets_no_predicted_speed(reads, prompts, tmp_path, monkeypatch):
    """Control: a draft of the same ladder that was timed."""
    as_embedded(reads, tmp_path, monkeypatch)
    timed = stored_clocked("passes", RACED).query("edition == 'exact' and model != 'reading'")
    monkeypatch.setattr(machine_prices, "stored_clocked", lambda *_: timed)
    box = tree_explorer(reads, prompts[:1])
    for draft, said in (("reading", "No speed-up is predicted"), ("draft", "Predicted speed")):
        box.turn(draft=draft)
        assert said in box.words.value and "alert" not in box.words.value


def as_embedded(ladder, folder, monkeypatch):
    """As if what is stored were of these models, on a machine that was not timed."""
    (folder / "ladder").mkdir()
    (folder / "ladder" / "card.json").write_text(json.dumps(ladder.card))
    monkeypatch.setattr(machine_prices, "DATA", folder)
    monkeypatch.setenv("SPECDEC_CACHE", str(folder))


@pytest.fixture
def stages(drawn, ladder, prompts):
    return stage_explorer(ladder, prompts[:2], start=STAGED)


def metric(drawn, name):
    """The values of one metric, by stack."""
    table = drawn.given("stages")
    return table[table.metric == name].value.tolist()


def test_the_stages_counts_are_those_of_real_rounds(stages, drawn, ladder, prompts):
    one = TreeDraft(ladder.draft, budget=4, depth=3, match=ladder.match("draft", Sampler(0.0)))
    two = StagedTree(one, LadderDrafts(ladder, Sampler(0.0)).scout(4), guided=2)
    for place, draft in enumerate((one, two), 1):
        played = real(ladder, prompts[0], draft)
        passes = sum(used.usage["draft"].passes for used in played.rounds) / len(played.rounds)
        assert metric(drawn, "tokens per round")[place] == pytest.approx(played.tokens_per_round)
        assert metric(drawn, "draft passes per round")[place] == pytest.approx(passes)


def test_a_second_stage_changes_passes_and_no_tokens(stages, drawn):
    for scout in ("n-gram", "Max-Gram", "draft, for the middle model"):
        for shape in ("tree", "chain"):
            stages.turn(scout=scout, shape=shape)
            plain, one, two = metric(drawn, "tokens per round")
            assert plain == 1 <= one == two
    stages.turn(scout="none", text="def mean(values):\n")
    assert len(metric(drawn, "tokens per round")) == 2 and "alert" not in stages.words.value
