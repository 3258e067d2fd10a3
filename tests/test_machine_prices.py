"""Prices of this machine: timed once per state of the code, kept, and beside the stored ones."""

import json

import pytest
from tiny import tiny_ladder

from specdec_lib.core.files import cache_folder
from specdec_lib.measure import machine_prices
from specdec_lib.measure.machine import HERE, machine_name, stored_clocked, stored_machines
from specdec_lib.measure.machine_prices import Machines, timed_repeats
from specdec_lib.measure.price_list import COLUMNS
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.row_cache import RowCache

OTHER = "amd-epyc-zen-3-avx2-1-threads"


@pytest.fixture(autouse=True)
def short(tmp_path, monkeypatch, unchecked):
    """A cache of its own, and few and short passes."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    monkeypatch.setattr(machine_prices, "ROWS", (1, 4))
    monkeypatch.setattr(machine_prices, "CONTEXTS", (32,))


def test_this_machine_is_timed_once_and_known_again(ladder):
    machines, told = Machines(ladder=ladder), []
    assert not machines.is_timed and machines.names() == [] and machines.start == ""
    with pytest.raises(ValueError, match="was not timed with these models yet"):
        machines.passes(HERE)
    found = machines.time_here(told.append, seconds=0.0)
    assert told == [1.0] * machine_prices.LEAST_REPEATS, "no fewer, however long they take"
    assert set(COLUMNS) <= set(found) and set(found.repeats) == {machine_prices.LEAST_REPEATS}
    again = Machines(ladder=tiny_ladder())
    assert again.names() == [HERE] and again.start == HERE
    assert again.tables(HERE)["target"].at(4) == pytest.approx(
        found.query("model == 'target' and rows == 4").seconds.item()
    )
    assert again.one_row_prices(HERE)["target"] == 1
    assert f"this machine ({machine_name()}), timed on" in again.describe(HERE)


def test_other_code_other_models_and_a_damaged_file_are_not_taken_for_it(ladder, monkeypatch):
    Machines(ladder=ladder).time_here(seconds=0.0)
    assert Machines(ladder=ladder).is_timed
    assert not Machines().is_timed, "the embedded models were not timed"
    assert not Machines(ladder=ladder, edition="int8").is_timed
    with monkeypatch.context() as patch:
        patch.setattr(machine_prices, "clocked_here", lambda: {"state": "older"})
        assert not Machines(ladder=ladder).is_timed
    [kept] = (cache_folder() / "machine_prices").rglob("*.json")
    kept.write_text(kept.read_text().replace("target", "targed", 1))
    assert not Machines(ladder=ladder).is_timed


def test_repeats_go_on_until_the_seconds_are_over(ladder, clock, monkeypatch):
    def repeat(models, rows, contexts, number):
        clock.now += 2.0
        yield {"repeat": number}

    monkeypatch.setattr(machine_prices, "one_repeat", repeat)
    told = []
    rows = list(timed_repeats(ladder.models, told.append, seconds=9.0))
    assert [row["repeat"] for row in rows] == [0, 1, 2, 3, 4], "the first one is not counted"
    assert told == pytest.approx([2 / 9, 4 / 9, 6 / 9, 8 / 9, 1.0])
    told.clear()
    rows = list(timed_repeats(ladder.models, told.append, seconds=1e6))
    assert len(rows) == machine_prices.MOST_REPEATS == len(told) and told[-1] == 1.0


def kept(machines: Machines, others: float = 0.0) -> None:
    """This machine's prices as if they had been timed: those of the other machine."""
    found = stored_clocked("passes", OTHER).query("edition == @machines.edition")
    found = found.assign(others=others, date="2026-01-01", machine=machine_name())
    rows = json.loads(found.to_json(orient="records"))
    RowCache(cache_folder() / "machine_prices" / machine_name()).write(machines._key(), rows)


def test_stored_machines_are_those_of_the_embedded_models_alone(ladder):
    assert Machines().names() == stored_machines("passes") and Machines().start == RACED
    assert Machines(OTHER).start == OTHER == Machines(OTHER).given
    assert Machines().describe(RACED) == f"{RACED}, stored"
    assert Machines(ladder=ladder).given == machine_name(), "these were timed nowhere else"
    with pytest.raises(ValueError, match="no table passes of no-such is stored"):
        Machines("no-such").passes("no-such")


def test_this_machine_comes_first_where_it_was_timed_and_none_was_asked_for():
    kept(Machines())
    assert Machines().names() == [HERE, *stored_machines("passes")] and Machines().start == HERE
    assert Machines("here").start == HERE and Machines(RACED).start == RACED
    prices = stored_clocked("passes", OTHER)
    assert Machines().passes(HERE).seconds.tolist() == pytest.approx(
        prices[prices.edition == "exact"].seconds.tolist()
    )


def test_a_machine_that_others_kept_busy_is_named_as_such():
    """Control: a quiet one."""
    kept(Machines(), others=0.0)
    assert "busy" not in Machines().describe(HERE)
    kept(Machines(), others=1.3)
    assert "while others kept 1.3 cores busy" in Machines().describe(HERE)
