"""Plans: made on development prompts, judged on held-out ones, kept, and written as a setting."""

import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure import compare, planning
from specdec_lib.measure.compare import ADVICE, pays
from specdec_lib.measure.planning import PLANNED
from specdec_lib.measure.race import harness
from specdec_lib.measure.race.families import OURS
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.race.table import over_plain, ratio_table
from specdec_lib.suite import plan as planner
from specdec_lib.suite.command import main as specdec
from specdec_lib.suite.hf.settings import import_setting
from specdec_lib.suite.plan import make_plan
from specdec_lib.workload import load_prompts

pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY = Sampler(0)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What really runs: replays by prompt, and races on held-out prompts."""
    found: list[str] = []
    for module, name in ((planning, "trial_rows"), (harness, "race")):
        real = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda *given, _real=real, _name=name, **named: (
                found.append(_name),
                _real(*given, **named),
            )[1],
        )
    return found


def test_a_plan_is_made_on_one_split_judged_on_the_other_and_kept(ladder, tmp_path, ran):
    told: list[str] = []
    held_out = load_prompts("chat", "held-out", 5)
    asked = (ladder, GREEDY, load_prompts("chat", "development", 2))
    small = {"tokens": 6, "settings": 1, "keep": tmp_path}
    plan = make_plan(*asked, held_out[:4], **small, say=told.append)
    assert {*plan.forecasts.method} == {"autoregressive", *OURS, PLANNED}
    assert plan.forecasts.ms_per_token.is_monotonic_increasing and len(told) == 2
    guessing = plan.forecasts[plan.forecasts.method != "autoregressive"]
    assert [*plan.held_out.method] == ["autoregressive", *guessing.method[:2]]
    assert (plan.held_out.prompts == 4).all() and plan.held_out.ratio[0] == 1
    # first, rest and policy, on two texts each, and a few tokens before
    first = ["trial_rows"] * 9 + ["race"] * 4
    assert ran == first
    again = make_plan(*asked, held_out[:4], **small)
    assert ran == first and again.held_out.equals(plan.held_out)
    assert again.forecasts.equals(plan.forecasts)
    assert make_plan(*asked, held_out, **small).held_out.prompts.eq(5).all()
    assert ran == [*first, "race"]
    make_plan(*asked, held_out[:4], **small | {"tokens": 5})  # a control: another plan
    assert len(ran) == 2 * len(first) + 1
    with pytest.raises(ValueError, match=r"2 .* and a held-out one, got 2 and 0"):
        make_plan(*asked, [], **small)


def timings(method: str, seconds: list[float], rounds: int) -> list[Timing]:
    about = method, "", "any", 0.0, 0
    numbered = enumerate(seconds)
    return [Timing(*about, f"chat/{number}", 10, 10, one, rounds) for number, one in numbered]


@pytest.mark.parametrize(
    "seconds, rounds, wanted",
    [
        ([0.5, 0.6, 0.5, 0.4, 0.5], 4, "yes"),
        ([0.5, 0.6, 0.5], 4, "unclear"),  # too few prompts for an interval
        ([0.2, 1.7, 0.3, 1.2, 0.9], 4, "unclear"),
        ([1.2, 1.1, 1.0, 1.3, 1.2], 4, "no"),
        ([0.5, 0.6, 0.5, 0.4, 0.5], 10, "no"),  # no guess helps, whatever the clock says
    ],
)
def test_the_verdict_follows_from_the_held_out_prompts(seconds, rounds, wanted):
    both = timings("autoregressive", [1.0] * len(seconds), 10) + timings("tree", seconds, rounds)
    assert pays(over_plain(ratio_table(both)).iloc[1]) == wanted


@pytest.mark.parametrize("paying", ["yes", "unclear"])
def test_the_command_advises_and_writes_a_setting(ladder, tmp_path, monkeypatch, capsys, paying):
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compare, "load_ladder", lambda *_, **__: tiny_ladder())
    monkeypatch.setattr(planner, "pays", lambda best: paying)
    place = tmp_path / "new.json"
    line = ["--limit", "2", "--settings", "1", "--max-new-tokens", "4", "--json", str(place)]
    planner.main(line)
    said = capsys.readouterr().out
    assert f"\n{ADVICE[paying]}: on 2 held-out prompts " in said
    assert "\nRunner-up: " in said
    setting = import_setting(place.read_text(), ladder)
    assert isinstance(setting.draft, NoDraft) == (paying != "yes")
    made, plain = (
        decode(ladder.target, draft, (5, 7), Chance(0), max_new_tokens=5)
        for draft in (setting.draft, NoDraft())
    )
    assert made.tokens == plain.tokens
    with pytest.raises(SystemExit) as stopped:
        specdec(["hf", str(place)])
    assert not stopped.value.code and "vllm" in capsys.readouterr().out.lower()


def test_a_place_that_cannot_be_written_to_is_refused_before_models_are_loaded():
    with pytest.raises(ValueError, match="full"):
        planner.main(["--json", "/dev/full"])
