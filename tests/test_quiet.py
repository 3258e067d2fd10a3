"""A clock that watches its machine: refused where other programs run, and timed again."""

import pytest

from specdec_lib.measure import quiet
from specdec_lib.measure.quiet import Quiet, watch

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def machine(monkeypatch):
    """A machine of four cores, whose clocks the test moves: seconds, all cores' and our own."""

    class Machine:
        now = every = own = others = 0.0

        def work(self, seconds: float, others: float) -> None:
            self.now += seconds
            self.own += seconds
            self.every += seconds * (1 + others)

        def sleep(self, seconds: float) -> None:
            self.now += seconds
            self.every += seconds * self.others

    one = Machine()
    monkeypatch.setattr(quiet.time, "perf_counter", lambda: one.now)
    monkeypatch.setattr(quiet.time, "sleep", one.sleep)
    monkeypatch.setattr(quiet, "_busy_seconds", lambda: one.every)
    monkeypatch.setattr(quiet, "_own_seconds", lambda: one.own)
    return one


def test_the_cores_of_a_piece_of_work_are_told_from_those_of_others(machine):
    def run() -> str:
        machine.work(2, others=0.75)
        return "found"

    watched = watch(run)
    assert (watched.found, watched.cores, watched.others) == ("found", 1.75, 0.75)


def test_a_busy_machine_is_refused_unless_it_is_borne(machine):
    machine.others = 0.5
    with pytest.raises(ValueError, match=r"other programs keep 0.50 of \d+ cores busy, 0.2 are"):
        Quiet().check()
    Quiet(busy=True).check()
    machine.others = 0.1
    Quiet().check()


def test_what_others_disturb_is_timed_again_once_it_is_quiet(machine, monkeypatch):
    told = []
    loads = iter([0.9, 0.3, 0.1])

    def run() -> float:
        load = next(loads)
        machine.work(1, others=load)
        return load

    waits = iter([0.8, 0.6, 0.0, 0.0])

    def sleep(seconds: float) -> None:
        machine.now += seconds
        machine.every += seconds * next(waits)

    monkeypatch.setattr(quiet.time, "sleep", sleep)
    watched = Quiet().timed(run, say=told.append)
    assert watched.found == 0.1 and len(told) == 2 and "0.90 cores" in told[0]
    assert next(waits, None) is None  # it waited as long as others worked
    loads = iter([0.9])
    assert Quiet(busy=True).timed(run).found == 0.9  # borne, so never again


def test_the_clocks_of_this_machine_count_work():
    def run() -> int:
        return sum(number * number for number in range(3_000_000))

    watched = watch(run)
    assert 0.3 < watched.cores and 0 <= watched.others <= watched.cores
