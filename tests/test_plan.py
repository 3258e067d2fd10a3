"""Plans: made on development prompts, judged on held-out ones, kept, and written as a setting."""

from types import ModuleType

import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure import compare, planning
from specdec_lib.measure.compare import ADVICE
from specdec_lib.measure.planning import PLANNED
from specdec_lib.measure.race import harness
from specdec_lib.measure.race.families import OURS
from specdec_lib.suite import plan as planner
from specdec_lib.suite.hf.settings import import_setting
from specdec_lib.suite.plan import make_plan
from specdec_lib.workload import load_prompts

pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY = Sampler(0)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What really runs: replays by prompt, and races on held-out prompts."""
    found: list[str] = []

    def watch(module: ModuleType, name: str) -> None:
        real = getattr(module, name)
        said = lambda *given, **named: (found.append(name), real(*given, **named))[1]  # noqa: E731
        monkeypatch.setattr(module, name, said)

    watch(planning, "trial_rows")
    watch(harness, "race")
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
    monkeypatch.setattr(compare, "load_ladder", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ValueError, match="full"):
        planner.main(["--json", "/dev/full"])
