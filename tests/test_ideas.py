"""The race of each idea by itself: who races, who is chosen, what is kept, what is compared."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.drafts.combined import FirstDraft
from specdec_lib.measure import idea_tuning, ideas, racing
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.ideas import (
    COLUMNS,
    IdeasPlan,
    disturbed,
    measure_ideas,
    race_ideas,
    read_finished,
    with_others,
)
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.settings.ideas import (
    CHAIN,
    COPIED,
    METHODS,
    SCOUT,
    TREE,
    idea_settings,
)
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.target_text import chosen_prompts
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked")
SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
BUSY = Quiet(busy=True)


@pytest.mark.parametrize("model", ["draft", "middle"])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_method_has_as_many_candidates_and_its_factors_the_same_size(model, sampler):
    groups = idea_settings(tiny_ladder(), sampler, model)
    counts = {name: len(grid) for name, grid in groups.items()}
    assert counts.pop(AUTOREGRESSIVE) == 1 and set(counts.values()) == {24}
    assert {method for grid in groups.values() for method in grid[0]} == set(METHODS)
    for shape, candidate in product((CHAIN, TREE), range(24)):
        one = groups[shape][candidate]
        alone, behind = one[shape].draft, one[shape + COPIED].draft
        assert isinstance(behind, FirstDraft) and behind.parts[1] == alone
        size = alone.length if shape == CHAIN else alone.budget
        assert behind.parts[0].length == size
        assert one[shape + SCOUT].draft.draft == alone
        assert one[shape + SCOUT + COPIED].draft.parts[1] == one[shape + SCOUT].draft


def test_a_scout_changes_no_guess_and_may_save_passes():
    ladder = tiny_ladder()
    groups = idea_settings(ladder, SAMPLERS[1], "middle")
    context = Context.of(ladder.encode(chosen_prompts("chat", "held-out", 1)[0]))
    chance = Chance(3, SAMPLERS[1])
    for shape in (CHAIN, TREE):
        for one in groups[shape]:
            trees = [one[name].draft.propose(context, chance) for name in (shape, shape + SCOUT)]
            assert trees[0].tokens == trees[1].tokens and trees[0].parents == trees[1].parents
    chain = groups[CHAIN][-1][CHAIN].draft.propose(context, chance)
    tree = groups[TREE][-1][TREE].draft.propose(context, chance)
    assert chain.tokens != tree.tokens  # the control: another shape guesses otherwise


def test_no_scout_helps_a_draft_that_reads_its_target():
    with pytest.raises(ValueError, match='"draft" or "middle", got \'reading\''):
        idea_settings(tiny_ladder(reads=True), Sampler(0), "reading")


@pytest.fixture
def small(monkeypatch):
    """The race with a tiny ladder, two candidates of each kind and 8 tokens; says what raced."""
    raced = []

    def few(ladder, sampler, model):
        groups = idea_settings(ladder, sampler, model)
        return {name: grid[:2] for name, grid in groups.items()}

    def race(contenders, text, *given, **more):
        raced.append(text.prompt)
        return real(contenders, text, *given, **more)

    real = racing.race
    monkeypatch.setattr(racing, "race", race)
    monkeypatch.setattr(idea_tuning, "race", race)
    monkeypatch.setattr(ideas, "idea_settings", few)
    monkeypatch.setattr(ideas, "racing_ladder", lambda edition: tiny_ladder())
    monkeypatch.setattr(idea_tuning, "TUNING", 8)
    monkeypatch.setattr(idea_tuning, "STAGES", (1, 1))
    return raced


def test_a_race_goes_on_where_its_table_ends(small, tmp_path, monkeypatch):
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    plan = IdeasPlan(("exact",), "middle", 8)
    prompts = chosen_prompts("chat", "held-out", 2)
    first = pd.concat(measure_ideas(prompts[:1], plan, BUSY, read_finished(None)))
    assert list(first) == COLUMNS and len(first) == 2 * len(METHODS)
    assert (first.state == decoding()).all() and (first.tokens <= 8).all()
    place = tmp_path / "ideas.csv"
    first.to_csv(place, index=False)
    small.clear()
    both = pd.concat(measure_ideas(prompts, plan, BUSY, read_finished(place)))
    assert set(small) == {prompts[1].name}, "only the new prompt is timed, and nothing tuned"
    assert len(both) == 4 * len(METHODS)
    assert both.groupby(["temperature", "method"]).setting.nunique().max() == 1
    old = read_finished(place).assign(state="older")
    small.clear()
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "another")
    again = pd.concat(measure_ideas(prompts[:1], plan, BUSY, old))
    assert prompts[0].name in small and (again.state == decoding()).all()
    counted = ["tokens", "rounds", "passes"]
    same = first[first.method == AUTOREGRESSIVE][counted].to_numpy().tolist()
    assert again[again.method == AUTOREGRESSIVE][counted].to_numpy().tolist() == same


def test_a_table_keeps_the_prompts_that_are_not_asked_for(small, tmp_path, monkeypatch):
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(ideas, "ideas_file", lambda *_, **__: tmp_path / "none.csv")
    plan, place = IdeasPlan(("exact",), "middle", 8), tmp_path / "mine.csv"
    prompts = chosen_prompts("chat", "held-out", 2)
    race_ideas(place, prompts, plan, BUSY).to_csv(place, index=False)
    small.clear()
    again = race_ideas(place, prompts[1:], plan, BUSY)
    assert not small and len(again) == 4 * len(METHODS)
    assert set(again.prompt) == {one.name for one in prompts}


def test_a_stored_table_that_is_named_from_the_present_folder_is_read_once(
    small, tmp_path, monkeypatch
):
    """Else no prompt in it would seem whole, and all would be raced again."""
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    place = tmp_path / "mine.csv"
    monkeypatch.setattr(ideas, "ideas_file", lambda *_, **__: place)
    monkeypatch.chdir(tmp_path)
    plan, prompts = IdeasPlan(("exact",), "middle", 8), chosen_prompts("chat", "held-out", 1)
    race_ideas(Path("mine.csv"), prompts, plan, BUSY).to_csv(place, index=False)
    small.clear()
    again = race_ideas(Path("mine.csv"), prompts, plan, BUSY)
    assert not small and len(again) == 2 * len(METHODS)


def test_rows_that_were_not_raced_now_stay_if_state_and_settings_are_the_same():
    keys = {"state": "now", "model": "middle", "max_new_tokens": 8, "threads": 1}
    keys |= {"machine": "this", "versions": "these", "edition": "exact", "temperature": 0.0}
    methods = ({"method": CHAIN, "setting": "3 tokens"}, {"method": TREE, "setting": "budget 4"})
    found = pd.DataFrame([{**keys, **one, "prompt": "a", "seconds": 2.0} for one in methods])
    rows = [
        ("a", {}),
        ("b", {}),
        ("c", {"state": "old"}),
        ("d", {"state": "old", "edition": "int8"}),
    ]
    before = pd.DataFrame(
        [
            {**keys, **one, "prompt": name, "seconds": 1.0, **other}
            for name, other in rows
            for one in methods
        ]
    )
    again = {**keys, "prompt": "e", "seconds": 1.0}  # one method of it has another setting now
    other = [{**again, **methods[0]}, {**again, **methods[1], "setting": "budget 6"}]
    kept = with_others(found, pd.concat([before, pd.DataFrame(other)]))
    assert kept.groupby("prompt").seconds.agg(list).to_dict() == {
        "a": [2.0, 2.0],
        "b": [1.0, 1.0],
        "d": [1.0, 1.0],
    }


def test_settings_that_are_chosen_anew_are_raced_anew(small, tmp_path, monkeypatch):
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(ideas, "ideas_file", lambda *_, **__: tmp_path / "none.csv")
    plan, place = IdeasPlan(("exact",), "middle", 8), tmp_path / "mine.csv"
    prompts = chosen_prompts("chat", "held-out", 1)
    first = race_ideas(place, prompts, plan, BUSY)
    first.to_csv(place, index=False)
    again = replace(plan, retune=True)
    small.clear()
    assert len(race_ideas(place, prompts, again, BUSY)) == len(first)
    assert prompts[0].name not in small, "the same settings are not raced twice"
    last = "vertical and horizontal"
    monkeypatch.setattr(idea_tuning, "fastest", lambda _, grid, *more: grid[last in grid[0]])
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "another")
    changed = race_ideas(place, prompts, again, BUSY)
    assert prompts[0].name in small and len(changed) == len(first)
    assert set(changed.setting) != set(first.setting)
    changed.to_csv(place, index=False)
    small.clear()
    race_ideas(place, prompts, plan, BUSY)
    assert not small, "a table goes on with the settings that it has"


def test_prompts_that_something_slowed_are_raced_again(small, tmp_path, monkeypatch):
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(ideas, "ideas_file", lambda *_, **__: tmp_path / "none.csv")
    plan, place = IdeasPlan(("exact",), "middle", 8), tmp_path / "mine.csv"
    prompts = chosen_prompts("chat", "held-out", 3)
    found = race_ideas(place, prompts, plan, BUSY).reset_index(drop=True)
    plain = (found.method == AUTOREGRESSIVE) & (found.temperature == 0)
    late = plain & (found.prompt == prompts[1].name)
    found["seconds"] = found.tokens * 1.0
    found.loc[late, "seconds"] *= 1.3
    assert list(disturbed(found, 1.2).index) == list(found.index[late])
    assert disturbed(found, 1.4).empty
    found.to_csv(place, index=False)
    small.clear()
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "another")
    again = race_ideas(place, prompts, replace(plan, again=1.2), BUSY)
    assert small == [prompts[1].name] and len(again) == len(found)
    small.clear()
    race_ideas(place, prompts, replace(plan, again=1.2), BUSY)
    assert not small, "a run that was stopped does not race them a third time"
    assert set(again[again.seconds < again.tokens].prompt) == {prompts[1].name}
    small.clear()
    race_ideas(place, prompts, plan, BUSY)
    assert not small


def test_a_race_that_was_stopped_goes_on_though_no_table_was_written(small, tmp_path, monkeypatch):
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(ideas, "ideas_file", lambda *_, **__: tmp_path / "none.csv")
    plan, prompts = IdeasPlan(("exact",), "middle", 8), chosen_prompts("chat", "held-out", 2)
    race_ideas(None, prompts[:1], plan, BUSY)
    small.clear()
    race_ideas(None, prompts, plan, BUSY)
    assert set(small) == {prompts[1].name}


def test_a_table_goes_on_with_its_own_settings(small, tmp_path, monkeypatch):
    """Though the other stored table of the machine has others."""
    monkeypatch.setattr(ideas, "cache_folder", lambda: tmp_path / "cache")
    places = {published: tmp_path / f"{published}.csv" for published in (False, True)}
    monkeypatch.setattr(ideas, "ideas_file", lambda *_, published=False: places[published])
    plan, prompts = IdeasPlan(("exact",), "middle", 8), chosen_prompts("chat", "held-out", 2)
    for published, last in ((False, 0), (True, 1)):
        monkeypatch.setattr(idea_tuning, "fastest", lambda _, grid, *more, last=last: grid[last])
        [prompt] = prompts[published : published + 1]
        once = replace(plan, retune=True)
        monkeypatch.setattr(ideas, "cache_folder", lambda last=last: tmp_path / f"cache {last}")
        race_ideas(places[published], [prompt], once, BUSY).to_csv(places[published], index=False)
    small.clear()
    again = race_ideas(places[False], prompts, plan, BUSY)
    assert small.count(prompts[0].name) == 0 and small.count(prompts[1].name) > 0
    assert again.groupby(["temperature", "method"]).setting.nunique().max() == 1
    with pytest.raises(ValueError, match=r"again is 0, or above 1, got 0\.5"):
        replace(plan, again=0.5)


def test_another_table_is_refused(tmp_path):
    place = tmp_path / "other.csv"
    place.write_text("prompt,seconds\na,1\n")
    with pytest.raises(ValueError, match="no table of `specdec measure ideas`: it lacks context"):
        read_finished(place)


def test_the_verb_refuses_before_it_works(tmp_path, monkeypatch):
    monkeypatch.setattr(ideas, "measure_ideas", lambda *given: pytest.fail("it works"))
    with pytest.raises(ValueError, match=r"--csv names a file that ends in .csv"):
        run("measure", "ideas", "--csv", str(tmp_path / "ideas.txt"))
    with pytest.raises(ValueError, match="counts from 1, got 0"):
        run("measure", "ideas", "--limit", "0")
