"""Notebooks that run side by side, each in a process of its own; those that time this machine run
before them, alone.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from specdec_lib.suite.notebook import read_tags
from specdec_lib.suite.reproduce.plan import NotebookRun

TIMED = "timed"  # tag of a cell that times this machine
USUAL = 2  # notebooks at once: each takes about two gigabytes


def usual_jobs() -> int:
    """How many notebooks run at once unless a number is given: two, or one with a single core."""
    return min(USUAL, os.cpu_count() or 1)


def run_each(
    work: Callable[[NotebookRun], str], runs: Sequence[NotebookRun], jobs: int
) -> Iterator[str]:
    """Yield what `work` says of each run, at most `jobs` of them at once: those whose notebook has
    a cell tagged `timed` first, one after another, then the others as they finish.

    work    can be pickled, unless there is one job; a process that dies is told of in a line
    """
    alone = [run for run in runs if jobs == 1 or TIMED in read_tags(run.notebook)]
    others = [run for run in runs if run not in alone]
    if len(others) < 2:
        alone, others = [*alone, *others], []
    yield from map(work, alone)
    if others:
        yield from _at_once(work, others, min(jobs, len(others)))


def _at_once(
    work: Callable[[NotebookRun], str], runs: Sequence[NotebookRun], jobs: int
) -> Iterator[str]:
    earlier = {*multiprocessing.active_children()}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_leave_interrupts) as pool:
        asked = {pool.submit(work, run): run for run in runs}
        try:
            for done in as_completed(asked):
                try:
                    yield done.result()
                except BrokenProcessPool as problem:
                    yield f"{asked[done].notebook.name}: {problem}"
        except BaseException:  # such as Ctrl-C
            pool.shutdown(wait=False, cancel_futures=True)
            for child in {*multiprocessing.active_children()} - earlier:
                child.kill()  # its kernel, which watches it, ends by itself
            raise


def _leave_interrupts() -> None:
    """In a process of the pool: Ctrl-C is for the one that started it, which ends them all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
