"""Timed work where nothing else runs: a race refuses a machine on which other programs work, and
runs again what they have disturbed.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import psutil

SPARE = 0.2  # cores that other programs may keep busy
LOOK = 1.0  # seconds over which a machine is looked at before work begins
WAITING = ("idle", "iowait", "guest", "guest_nice")  # the last two are within user's time
Found = TypeVar("Found")
CURE = "stop what else runs, or give --busy, where the times are of a machine that others use too"


@dataclass(frozen=True)
class Quiet:
    """What a clock demands of its machine.

    threads    cores that the timed work may keep busy
    busy       bear whatever else runs
    """

    threads: int
    busy: bool = False

    @property
    def most(self) -> float:
        """Busy cores, on average, beyond which the clock does not count."""
        return self.threads + SPARE

    def check(self, *, seconds: float = LOOK) -> None:
        """Raise ValueError if more cores are busy than the spare ones, before any work."""
        _, cores = cores_while(lambda: time.sleep(seconds))
        if cores > SPARE and not self.busy:
            raise ValueError(
                f"a clock needs a quiet machine: {cores:.2f} of {os.cpu_count()} cores are busy"
                f" before it starts, {SPARE:g} are borne; {CURE}"
            )

    def timed(
        self, run: Callable[[], Found], *, say: Callable[[str], object] = print
    ) -> tuple[Found, float]:
        """What `run` gives and how many cores were busy while it ran; it runs again, once the
        machine is quiet, as long as others disturbed it.
        """
        while True:
            found, cores = cores_while(run)
            if self.busy or cores <= self.most:
                return found, cores
            say(f"{cores:.2f} cores were busy: timed again when the machine is quiet")
            while cores_while(lambda: time.sleep(LOOK))[1] > SPARE:
                pass


def cores_while(run: Callable[[], Found]) -> tuple[Found, float]:
    """What `run` gives, and how many cores of the machine were busy on average while it ran, its
    own among them.
    """
    before, started = _busy_seconds(), time.perf_counter()
    found = run()
    seconds = time.perf_counter() - started
    return found, (_busy_seconds() - before) / max(seconds, 1e-9)


def _busy_seconds() -> float:
    """Seconds that all cores together have worked since the machine started."""
    times = psutil.cpu_times()._asdict()
    return sum(seconds for name, seconds in times.items() if name not in WAITING)
