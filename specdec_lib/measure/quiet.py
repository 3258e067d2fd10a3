"""Timed work where nothing else runs: a race refuses a machine on which other programs work, and
runs again what they have disturbed.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import psutil

SPARE = 0.2  # cores that other programs may keep busy
LOOK = 1.0  # seconds over which a machine is looked at
WAITING = ("idle", "iowait", "guest", "guest_nice")  # the last two are within user's time
Found = TypeVar("Found")


@dataclass(frozen=True)
class Watched(Generic[Found]):
    """What some work gave, and how many cores were busy on average while it ran.

    cores     of the whole machine, the work's own among them
    others    of these, with other programs
    """

    found: Found
    cores: float
    others: float


@dataclass(frozen=True)
class Quiet:
    """What a clock demands of its machine: that others keep at most `SPARE` cores busy.

    busy    bear whatever else runs
    """

    busy: bool = False

    def check(self) -> None:
        """Raise ValueError if other programs run, before any work."""
        others = _others_now()
        if others > SPARE and not self.busy:
            raise ValueError(
                f"a clock needs a quiet machine: other programs keep {others:.2f} of"
                f" {os.cpu_count()} cores busy, {SPARE:g} are borne; stop them, or give --busy,"
                " where the times are of a machine that others use too"
            )

    def timed(
        self, run: Callable[[], Found], *, say: Callable[[str], object] = print
    ) -> Watched[Found]:
        """What `run` gives; it runs again, once the machine is quiet, as long as others disturbed
        it.
        """
        while True:
            watched = watch(run)
            if self.busy or watched.others <= SPARE:
                return watched
            say(f"others kept {watched.others:.2f} cores busy: timed again when it is quiet")
            while _others_now() > SPARE:
                pass


def watch(run: Callable[[], Found]) -> Watched[Found]:
    """What `run` gives, and the cores that were busy meanwhile."""
    every, own, started = _busy_seconds(), _own_seconds(), time.perf_counter()
    found = run()
    seconds = max(time.perf_counter() - started, 1e-9)
    every, own = _busy_seconds() - every, _own_seconds() - own
    return Watched(found, every / seconds, max(0.0, every - own) / seconds)


def _others_now() -> float:
    return watch(lambda: time.sleep(LOOK)).others


def _busy_seconds() -> float:
    """Seconds that all cores together have worked since the machine started."""
    times = psutil.cpu_times()._asdict()
    return sum(seconds for name, seconds in times.items() if name not in WAITING)


def _own_seconds() -> float:
    """Seconds that this process and its ended children have worked."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
