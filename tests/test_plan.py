"""Plans: made on development prompts, judged on held-out ones, kept, and written as a setting."""

import math
from dataclasses import replace

import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.planned import SITUATIONS
from specdec_lib.measure import plan as planning
from specdec_lib.measure import planning as measuring
from specdec_lib.measure import racing
from specdec_lib.measure.plan import make_plan, plan_in_words
from specdec_lib.measure.planning import PLANNED
from specdec_lib.measure.race_table import over_plain, ratio_table
from specdec_lib.measure.settings.bench import OURS
from specdec_lib.measure.settings.exported import import_setting
from specdec_lib.measure.trial import Trial
from specdec_lib.suite.command import main as specdec
from specdec_lib.workload import Prompt, load_prompts
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY, SMALL = Sampler(0), {"tokens": 6, "settings": 1}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What really runs: replays by prompt, and races on held-out prompts."""
    found: list[str] = []
    trials, race = measuring.counted_trials, racing.race

    def counted(*given: object, **named: object) -> object:
        found.append("replay")
        return trials(*given, **named)

    def raced(*given: object, **named: object) -> object:
        found.append("race")
        return race(*given, **named)

    monkeypatch.setattr(measuring, "counted_trials", counted)
    monkeypatch.setattr(racing, "race", raced)
    return found


def prompts(count: int, split: str) -> list[Prompt]:
    return load_prompts("chat", split, count)


def test_a_plan_is_made_on_one_split_judged_on_the_other_and_kept(ladder, tmp_path, ran):
    asked = (ladder, GREEDY, prompts(2, "development"), prompts(4, "held-out"))
    plan = make_plan(*asked, **SMALL, keep=tmp_path)
    assert {*plan.forecasts.method} == {"autoregressive", *OURS, PLANNED}
    assert plan.forecasts.ms_per_token.is_monotonic_increasing and plan.margin.tokens >= 1
    guessing = plan.forecasts[plan.forecasts.method != "autoregressive"]
    assert [*plan.held_out.method] == ["autoregressive", *guessing.method[:2], planning.FREE[0]]
    assert (plan.held_out.prompts == 4).all() and plan.held_out.ratio[0] == 1
    assert plan.margin.tokens >= 1
    # first, rest and policy, warmed up and on two texts each
    first = ["replay"] * 3 * 3 + ["race"] * 4
    assert ran == first
    again = make_plan(*asked, **SMALL, keep=tmp_path)
    assert ran == first and again.held_out.equals(plan.held_out)
    assert again.forecasts.equals(plan.forecasts)
    more = (*asked[:3], prompts(5, "held-out"))
    assert make_plan(*more, **SMALL, keep=tmp_path).held_out.prompts.eq(5).all()
    assert ran == [*first, "race"]  # in a run of its own
    make_plan(*asked, tokens=5, settings=1, keep=tmp_path)  # a control: another plan
    assert len(ran) == 2 * len(first) + 1
    named = {*zip(plan.forecasts.method, plan.forecasts.setting, strict=True)}
    assert [*plan.policy] == [*SITUATIONS] and named >= {*plan.policy.values()}


def test_a_plan_without_a_folder_is_measured_anew(ladder, tmp_path, ran, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = (ladder, GREEDY, prompts(2, "development"), prompts(1, "held-out"))
    plan = make_plan(*asked, tokens=5, settings=1)
    count = len(ran)
    assert count and not [*tmp_path.iterdir()]
    make_plan(*asked, tokens=5, settings=1)
    assert len(ran) == 2 * count
    said = {0.0: "It would not pay with free drafts", 2.5: "passes take 2.5 times as long."}

    def in_words(times: float) -> str:
        return plan_in_words(replace(plan, margin=plan.margin._replace(dearer_drafts=times)))

    assert all(words in in_words(times) for times, words in said.items())
    assert not any(words in in_words(math.inf) for words in said.values())


@pytest.mark.parametrize("development, held_out", [(1, 1), (2, 0)])
def test_too_few_prompts_are_refused_before_anything_runs(ladder, tmp_path, development, held_out):
    asked = prompts(2, "development")[:development], prompts(1, "held-out")[:held_out]
    with pytest.raises(ValueError, match=f"2 .* and a held-out one, got {development} and"):
        make_plan(ladder, GREEDY, *asked, **SMALL, keep=tmp_path)


def timings(method: str, seconds: list[float], rounds: int) -> list[Trial]:
    return [
        Trial(
            method=method,
            setting="any",
            sampler=GREEDY,
            prompt=f"chat/{number}",
            tokens=10,
            timed_tokens=10,
            seconds=one,
            rounds=rounds,
            repetition=0.0,
        )
        for number, one in enumerate(seconds)
    ]


@pytest.mark.parametrize(
    "seconds, rounds, pays",
    [
        ([0.5, 0.6, 0.5, 0.4, 0.5], 4, "yes"),
        ([0.5, 0.6, 0.5], 4, "unclear"),  # too few prompts for an interval
        ([0.2, 1.7, 0.3, 1.2, 0.9], 4, "unclear"),
        ([1.2, 1.1, 1.0, 1.3, 1.2], 4, "no"),
        ([0.5, 0.6, 0.5, 0.4, 0.5], 10, "no"),  # no guess helps, whatever the clock says
    ],
)
def test_the_verdict_follows_from_the_held_out_prompts(seconds, rounds, pays):
    both = timings("autoregressive", [1.0] * len(seconds), 10) + timings("tree", seconds, rounds)
    rows = over_plain(ratio_table(both, {}))
    assert planning._pays(rows.iloc[1]) == pays
    assert rows.ratio[1] == pytest.approx(len(seconds) / sum(seconds))


@pytest.mark.parametrize("pays", ["yes", "unclear"])
def test_the_command_advises_and_writes_a_setting(ladder, tmp_path, monkeypatch, capsys, pays):
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("specdec_lib.measure.cluster.load_ladder", lambda *_, **__: tiny_ladder())
    monkeypatch.setattr(planning, "_pays", lambda best: pays)
    monkeypatch.setattr(planning, "LEAST_FOR_WORDS", 2 if pays == "yes" else 3)
    place = tmp_path / "new.json"
    line = [
        "--limit",
        "2",
        "--settings",
        "1",
        "--max-new-tokens",
        "4",
        "--json",
        str(place),
    ]
    run("plan", *line)
    said = capsys.readouterr().out
    assert f"\n{planning.ADVICE[pays]}: on 2 held-out prompts " in said and " on 2 prompts;" in said
    assert "\nBest forecast of another method: " in said and "\nWithout a draft model: " in said
    setting = import_setting(place.read_text(), ladder)
    assert isinstance(setting.draft, NoDraft) == (pays != "yes") == ("Too few prompts" in said)
    made = decode(ladder.target, setting.draft, (5, 7), Chance(0), max_new_tokens=5)
    plain = decode(ladder.target, NoDraft(), (5, 7), Chance(0), max_new_tokens=5)
    assert made.tokens == plain.tokens
    with pytest.raises(SystemExit) as stopped:
        specdec(["hf", str(place)])
    assert not stopped.value.code and "vllm" in capsys.readouterr().out.lower()


def test_a_place_that_cannot_be_written_to_is_refused_before_models_are_loaded():
    with pytest.raises(ValueError, match="full"):
        run("plan", "--json", "/dev/full")
