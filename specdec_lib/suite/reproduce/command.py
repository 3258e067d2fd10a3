"""`specdec reproduce`: runs the notebooks, makes every figure and lays them out as one page."""

import argparse
import dataclasses
import functools
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import NOTEBOOKS, check_writable, figures_folder, sweep_partial
from specdec_lib.core.locking import only_process
from specdec_lib.suite.gallery.building import build
from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce.plan import PROFILES, NotebookRun, choose_notebooks, plan_runs
from specdec_lib.suite.reproduce.running import run_notebook, say

INTERRUPTED = 130
TIMED = re.compile(r"seconds|per_second|by_the_clock|(^|_)ms(_|$)")  # in the name of a column
DESCRIPTION = (
    "Run the notebooks; every figure is made anew, and figures/index.html shows them all. Exit"
    " status: 0 all went well, 1 a notebook failed or a table differs, 2 refused, 130 interrupted."
)
MODES = {
    "--list": "only show the notebooks and their parameters",
    "--dry-run": "only show what would run, and why",
    "--check": "run into a temporary folder and compare the tables, all but columns of seconds",
    "--refresh": "run with the defaults and store the outputs in the notebooks themselves",
}
SEVERAL = {"nargs": "+", "default": [], "action": "extend"}


def main(arguments: Sequence[str] | None = None, *, notebooks: Path = NOTEBOOKS) -> int:
    """Run the notebooks and lay out the figures; the exit status comes back.

    0 if all went well, 1 if a notebook failed or a checked table differs, 130 if interrupted; what
    is finished then stays, and the same command goes on from there.
    Raises ValueError, before anything runs, if the request is wrong.
    """
    asked = parse_options(arguments)
    folder = asked.out.expanduser().resolve() if asked.out else figures_folder()
    paths = choose_notebooks(notebooks, asked.only)
    runs = plan_runs(paths, folder, profile=asked.profile, settings=asked.set)
    if asked.list:
        return _list(paths)
    if asked.check:
        return _check(runs, asked)
    if asked.dry_run:
        _due(runs, asked)
        return 0
    for place in (folder, folder / "runs"):
        check_writable(place)
    with only_process(folder / "runs"):
        for place in (folder, folder / "runs", notebooks):
            for name in sweep_partial(place):
                say(f"removed {place / name}, half-written by a run that was killed")
        status = _run(_due(runs, asked), asked)
        try:
            say(f"all figures: {build(folder, notebooks=notebooks)}")
        except (OSError, ValueError) as problem:
            say(f"error: the page that shows the figures is as it was: {problem}")
            return status or 1
        return status


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; raises ValueError for an unknown one, or some that do not go together."""
    parser = Parser("reproduce", DESCRIPTION, writes=None)
    modes = parser.add_mutually_exclusive_group()
    for name, what in MODES.items():
        modes.add_argument(name, action="store_true", help=what)
    add, each = parser.add_argument, "parameters, for every notebook that has them"
    add("--only", metavar="NN", help="numbers or names of notebooks; all without", **SEVERAL)
    add("--set", metavar="name=value", help=each, **SEVERAL)
    what = "smoke: the defaults; full: notebooks/full/NN.yml"
    add("--profile", choices=PROFILES, default="smoke", help=what)
    note = "without, the one SPECDEC_FIGURES names, else figures/"
    parser.add_common("--out", note=note)
    add("--fresh", action="store_true", help="run again what is unchanged since its last run")
    add("--jobs", type=int, default=1, help="notebooks at a time; timings are right only with 1")
    given = parser.parse_args(arguments)
    if given.refresh and (given.set or given.profile != "smoke"):
        raise ValueError(
            "--refresh stores what the defaults give; it goes with neither --set nor --profile full"
        )
    return given


def _due(runs: Sequence[NotebookRun], asked: argparse.Namespace) -> list[NotebookRun]:
    """The runs that have to be done; what is done with each, and why, is printed."""
    due = []
    for run in runs:
        why = run.why() or ("asked to run again" if asked.fresh or asked.refresh else "")
        given = f"; with {run.given}" if run.given else ""
        print(f"{run.name}: {f'runs, {why}' if why else 'unchanged since its last run'}{given}")
        due += [run] if why else []
    return due


def _run(runs: Sequence[NotebookRun], asked: argparse.Namespace) -> int:
    """Execute notebooks and, at the end, print what went wrong; the exit status comes back."""
    begin, problems = functools.partial(run_notebook, refresh=asked.refresh), []
    try:
        found = map(begin, runs) if asked.jobs == 1 else _in_processes(begin, runs, asked.jobs)
        problems.extend(filter(None, found))
    except KeyboardInterrupt:
        say("interrupted: what is finished stays, and the same command goes on from here")
        return INTERRUPTED
    finally:
        for problem in problems:
            say(f"error: {problem}")
    return int(bool(problems))


def _in_processes(
    begin: Callable[[NotebookRun], str], runs: Sequence[NotebookRun], jobs: int
) -> Iterator[str]:
    """Each run in a process of its own, since a working directory belongs to a process."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1)
    try:
        futures = {pool.submit(begin, run): run.name for run in runs}
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                why = "a process died, perhaps for want of memory; the same command tries again"
                yield f"{futures[future]}.ipynb: {why}"
    except (KeyboardInterrupt, GeneratorExit):
        for process in active_children():  # Ctrl-C reaches them too, a signal to this one does not
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _check(runs: Sequence[NotebookRun], asked: argparse.Namespace) -> int:
    """Run into a temporary folder and compare with the figures that are there."""
    with tempfile.TemporaryDirectory(prefix="specdec-check-") as place:
        apart = [dataclasses.replace(run, figures=Path(place)) for run in runs]
        status, found = _run(apart, asked), []
        for run in runs:
            found += table_differences(run.figures, Path(place), run.name[:2])
    print("\n".join(found) or f"the tables are those in {runs[0].figures}, all but seconds")
    return status or int(bool(found))


def table_differences(before: Path, after: Path, number: str) -> Iterator[str]:
    """A line for each table of one notebook that differs in two folders, but for columns of
    measured time.
    """
    import pandas as pd  # late: `--help` needs none

    both = (before, after)
    for name in sorted({path.name for one in both for path in one.glob(f"{number}_*.csv")}):
        there = [one for one in both if (one / name).exists()]
        if len(there) == 1:
            yield f"{name} is only in {there[0]}"
            continue
        old, new = (pd.read_csv(one / name, dtype=str, keep_default_na=False) for one in both)
        timed = [column for column in old if column in new and TIMED.search(column)]
        try:
            pd.testing.assert_frame_equal(old.drop(columns=timed), new.drop(columns=timed))
        except AssertionError as problem:
            yield f"{name}: {'; '.join(filter(None, str(problem).splitlines()))}"


def _list(paths: Sequence[Path]) -> int:
    for path in paths:
        print(path.stem)
        for name, one in read_parameters(path).items():
            default = f"{one['inferred_type_name']} = {one['default']}"
            print(f"    {name}: {default}  {one['help']}".rstrip())
    return 0
