"""The race to watch: what is recorded is what each method wrote and when, and all show it alike."""

import io
import re

import pandas as pd
import pytest
from rich.console import Console

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure import watching
from specdec_lib.measure.settings.setting import GREEDY
from specdec_lib.measure.watching import (
    PLAIN_LANE,
    RECORDED,
    race_speeds,
    record_race,
    stored_watched,
    watched_settings,
)
from specdec_lib.show import figures, racing
from specdec_lib.show.racing import play_race, race_page
from specdec_lib.show.widgets import race_to_watch
from specdec_lib.show.widgets.watch_race import RacePanel
from tests.verbs import run

REQUEST = "def mean(values):"
LANES = ["plain decoding", "chain", "staged tree", "vertical cascade", "tree behind copies"]


@pytest.fixture(scope="module")
def recording(ladder):
    return record_race(ladder, REQUEST, GREEDY, max_new_tokens=12)


def moving(page: str) -> list[float]:
    """The seconds at which the tokens of a page appear."""
    return [float(one) for one in re.findall(r'specdec-token" style="--at:([\d.]+)s', page)]


@pytest.mark.parametrize("sampler", [GREEDY, Sampler(1.0), Sampler(1.0, top_k=5)], ids=str)
def test_every_lane_writes_what_the_target_writes(ladder, sampler):
    found = record_race(ladder, REQUEST, sampler, seed=3, max_new_tokens=12)
    assert found.columns.tolist() == RECORDED and found.method.unique().tolist() == LANES
    context = Context.of(ladder.encode(REQUEST))
    chance = watching.Chance(3, sampler)
    stops = {"stop_tokens": ladder.stop_tokens}
    plain = decode(ladder.target, NoDraft(), context, chance, max_new_tokens=12, **stops)
    for _, own in found.groupby("method", sort=False):
        assert own.token.tolist() == [*map(ladder.text, plain.tokens)]
        assert own.same.all() and own.number.tolist() == [*range(len(own))]
        assert (own.seconds.diff().dropna() >= 0).all() and own.seconds.iloc[0] > 0
        assert (own.groupby("round").seconds.nunique() == 1).all()
    assert set(found[found.method == PLAIN_LANE].source) == {"target"}
    assert (found.source != "target").any()


def test_another_text_than_the_targets_is_refused(ladder, monkeypatch):
    """The control: with another seed the middle model's lanes write something else."""
    real, calls = watching._timed, []

    def other(*given):
        *rest, prompt, chance, most = given
        calls.append(chance)
        seed = 0 if len(calls) == 1 else 9
        return real(*rest, prompt, watching.Chance(seed, chance.sampler), most)

    monkeypatch.setattr(watching, "_timed", other)
    with pytest.raises(ValueError, match="chain does not write what the target does"):
        record_race(ladder, REQUEST, Sampler(1.0), max_new_tokens=12)


def test_a_ladder_without_a_middle_model_or_a_table_has_what_it_can(ladder):
    from dataclasses import replace

    small = replace(ladder, middle=None, katz=None, measured=())
    found = watched_settings(small, GREEDY)
    assert [one.method for one in found] == [one for one in LANES if one != "staged tree"]
    assert all("draft" in one.name for one in found[1:])


@pytest.mark.parametrize("request_", ["", "  \n"])
def test_an_empty_request_is_refused(ladder, request_):
    with pytest.raises(ValueError, match="a race needs a request to answer, got an empty one"):
        record_race(ladder, request_, GREEDY)


def test_speeds_are_those_of_the_recorded_times(recording):
    speeds = race_speeds(recording).set_index("method")
    own = recording[recording.method == "chain"]
    assert speeds.loc["chain", "rounds"] == own["round"].nunique()
    assert speeds.loc["chain", "tokens_per_second"] == len(own) / own.seconds.max()
    assert speeds.loc[PLAIN_LANE, "ratio"] == 1
    slow = recording.assign(
        seconds=recording.seconds.where(recording.method != PLAIN_LANE, 2 * recording.seconds)
    )
    doubled = race_speeds(slow).set_index("method").ratio / speeds.ratio
    assert doubled.drop(PLAIN_LANE).round(9).eq(2).all()


def test_a_page_shows_each_token_when_it_was_there(recording):
    page = race_page(recording)
    times = moving(page)
    assert times == [round(0.4 + one, 4) for one in recording.seconds]
    slow = moving(race_page(recording, slower=4))
    assert all(abs((b - 0.4) - 4 * (a - 0.4)) < 1e-3 for a, b in zip(times, slow, strict=True))
    assert all(method in page for method in LANES) and "tokens per second" in page


def test_code_and_markup_of_a_text_are_shown_as_they_stand(recording):
    sources = figures.races.with_plain_sources(recording).source
    assert set(sources) <= {"target", "middle", "n-gram", "copy", "reviewed copy", "word pair"}
    marked = recording.assign(token="<b>&", source="<who>")
    page = race_page(marked)
    assert "<b>&amp;" not in page and "&lt;b&gt;&amp;" in page and "&lt;who&gt;" in page


@pytest.mark.parametrize("slower", [0, -1, float("nan")])
def test_a_pace_is_above_zero(recording, slower):
    for shown in race_page, play_race:
        with pytest.raises(ValueError, match="slower is a number above 0, times as slow"):
            shown(recording, slower=slower)


def test_a_parted_text_says_so(recording):
    parted = recording.assign(same=recording.method != "chain")
    assert race_page(parted).count("parts from plain decoding at a near tie") == 1


def test_a_terminal_shows_the_end_of_each_text(recording):
    written = io.StringIO()
    play_race(recording, console=Console(file=written, width=90))
    shown = written.getvalue()
    assert all(f"{method}: " in shown for method in LANES) and "tokens per second" in shown
    screen = io.StringIO()
    play_race(recording, console=Console(file=screen, width=90, force_terminal=True))
    assert len(screen.getvalue()) > len(shown)  # frames before the last one


@pytest.mark.parametrize("height", [24, 60])
def test_all_lanes_fit_a_terminal(recording, height):
    """Control: a lane has more lines of its text where there is room."""
    written = io.StringIO()
    console = Console(file=written, width=80, height=height, force_terminal=True)
    end = float(recording.seconds.max())
    console.print(racing._frame(recording, racing._speeds(recording), end, console))
    lines = written.getvalue().splitlines()
    assert len(lines) <= height and all(f"{method}: " in written.getvalue() for method in LANES)
    assert len(lines) == 1 + len(LANES) * (racing.FRAMED + (2 if height == 24 else racing.LINES))


def test_a_picture_has_what_was_written_by_then(recording):
    ends = recording.groupby("method").seconds.max()
    said = figures.race_moment(recording).data[0].text
    first = ends.idxmin()
    for words in said:
        own = recording[recording.method == words.split("<b>")[1].split("</b>")[0]]
        count = (own.seconds <= ends.min()).sum()
        assert f"  {count} of {len(own)} tokens, " in words
        assert count == len(own) or first not in words
    with pytest.raises(ValueError, match="a moment of a race is a number of seconds above 0"):
        figures.race_moment(recording, at=0)
    assert len(figures.race_moment(recording, at=1e-9).data) == 1  # names alone


def test_the_panel_runs_a_request_of_ones_own_and_shows_it_again(ladder, recording):
    panel = race_to_watch(ladder, recording)
    first = panel.view.value
    assert panel.knobs["top_k"].label == "all tokens"
    assert "Recorded on this machine" in panel.words.value and moving(first)
    panel.pace.value = 4.0
    assert moving(panel.view.value) != moving(first)
    panel.knobs["request"].value = "x = 1"
    panel.knobs["tokens"].value = 32
    panel.race.click()
    assert panel.recording.request.unique().tolist() == ["x = 1"]
    assert not panel.race.disabled and panel.view.value != first
    panel.knobs["request"].value = " "
    panel.race.click()
    assert "alert" in panel.words.value and "got an empty one" in panel.words.value
    assert not panel.race.disabled
    bundle = panel._repr_mimebundle_()
    assert "image/png" in bundle and "a race to watch" in bundle["text/plain"]


def test_a_panel_without_a_recording_says_how_to_make_one(ladder):
    panel = RacePanel(ladder)
    assert "race on this machine" in panel.words.value and panel.view.value == ""
    assert "image/png" not in panel._repr_mimebundle_()


def test_a_recording_of_another_machine_says_whose_it_is(ladder, recording):
    other = recording.assign(machine="a-gpu", cores=3.0)
    words = RacePanel(ladder, other).words.value
    assert "another machine (a-gpu)" in words and "Other programs kept 2.0 cores busy" in words


def test_the_verb_writes_its_recording_and_checks_its_options_first(
    ladder, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("specdec_lib.workload.load_ladder", lambda *_, **__: ladder)
    place = tmp_path / "race.csv"
    assert run("watch", REQUEST, "--max-new-tokens", "8", "--csv", str(place)) is None
    shown = capsys.readouterr().out
    assert "staged tree\n" in shown and "tokens_per_second" in shown
    kept = pd.read_csv(place, keep_default_na=False)
    assert kept.columns.tolist() == RECORDED and set(kept.request) == {REQUEST}
    monkeypatch.setattr("specdec_lib.workload.load_ladder", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ValueError, match="slower is a number above 0"):
        run("watch", "--slower", "0")


def test_the_stored_race_reads_back_as_it_was_recorded():
    stored = stored_watched()
    assert stored.columns.tolist() == RECORDED and stored.method.unique().tolist() == LANES
    assert stored.same.all() and stored.cores.max() < 1.2 and len(set(stored.request)) == 1
    with pytest.raises(ValueError, match=r"no recorded race is stored in .* `specdec watch`"):
        stored_watched("nobody")
