"""Notebooks that run side by side, each in a process of its own; those that time this machine run
before them, alone.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from specdec_lib.suite.notebook import read_tags
from specdec_lib.suite.reproduce.plan import NotebookRun

TIMED = "timed"  # tag of a cell whose clock is drawn or shown
USUAL = 2  # notebooks at once: each takes up to three gigabytes
PATIENCE = 10  # seconds in which processes that were killed have to be gone

Work = Callable[[NotebookRun], str]
End = Any  # of a pipe: a class of its own on each system


def usual_jobs() -> int:
    """How many notebooks run at once unless a number is given: two, or one with a single core."""
    usable = getattr(os, "sched_getaffinity", None)  # where the system has it
    return min(USUAL, len(usable(0)) if usable else os.cpu_count() or 1)


def run_each(work: Work, runs: Sequence[NotebookRun], jobs: int) -> Generator[str, None, None]:
    """Yield what `work` says of each run, at most `jobs` of them at once: those whose notebook has
    a cell tagged `timed` first, one after another, then the others as they finish. With one job
    all run in their order, in this process. Close it to end what still runs.

    work    can be pickled, unless there is one job; a process that dies is told of in a line
    """
    alone = [run for run in runs if jobs == 1 or TIMED in read_tags(run.notebook)]
    others = [run for run in runs if run not in alone]
    if len(others) < 2:
        alone, others = [*alone, *others], []
    yield from map(work, alone)
    yield from _at_once(work, others, jobs)


def _at_once(work: Work, runs: Sequence[NotebookRun], jobs: int) -> Iterator[str]:
    spawn = multiprocessing.get_context("spawn")
    due = list(reversed(runs))
    running: dict[End, tuple[BaseProcess, NotebookRun]] = {}
    try:
        while due or running:
            while due and len(running) < jobs:
                run = due.pop()
                receiver, sender = spawn.Pipe(duplex=False)
                process = spawn.Process(target=_tell, args=(sender, work, run))
                process.start()
                running[receiver] = process, run
                sender.close()  # the process has its own: its end is the end of the pipe
            for receiver in wait(list(running)):
                process, run = running[receiver]
                said = _heard(receiver, process, run)
                del running[receiver]
                yield said
    finally:
        for process, _ in running.values():
            _end(process)


def _tell(sender: End, work: Work, run: NotebookRun) -> None:
    """In a process of its own: send what `work` says. Ctrl-C is for the process that started it,
    and where that one is gone, this one ends too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sender.send(work(run))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # its kernel, which watches it, ends by itself


def _heard(receiver: End, process: BaseProcess, run: NotebookRun) -> str:
    """What the process of a run said, or that it ended without a word."""
    try:
        said = receiver.recv()
    except EOFError:
        said = None
    process.join()
    if said is not None:
        return said
    ended = f"its process ended with status {process.exitcode}"
    return f"{run.notebook.name}: {ended}; --jobs 1 takes less memory"


def _end(process: BaseProcess) -> None:
    """Kill a process and its kernel, and wait until both are gone."""
    import psutil  # late: only what is interrupted needs it

    below = []
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for one in below:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(below, timeout=PATIENCE)
    process.join()
