"""`specdec reproduce`: runs the notebooks, makes every figure and lays them out as one page."""

import argparse
import dataclasses
import functools
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import (
    NOTEBOOKS,
    check_writable,
    figures_folder,
    sweep_partial,
)
from specdec_lib.core.locking import only_process
from specdec_lib.suite.gallery.building import add_script, build
from specdec_lib.suite.gallery.manifest import read_manifest
from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce.plan import PROFILES, NotebookRun, choose_notebooks, plan_runs
from specdec_lib.suite.reproduce.running import Outcome, run_notebook, say

INTERRUPTED = 130
TIMED = re.compile(r"seconds|per_second|by_the_clock|(^|_)ms(_|$)")  # in the name of a column
DESCRIPTION = (
    "Run the notebooks; every figure is made anew, and figures/index.html shows them all. Exit"
    " status: 0 all went well, 1 a notebook failed or a table differs, 2 refused before anything"
    " ran, 130 interrupted."
)
MODES = {
    "--list": "only show the notebooks and their parameters",
    "--dry-run": "only show what would run, and why",
    "--check": "run into a temporary folder and compare the tables, all but columns of seconds",
    "--refresh": "run with the defaults and store the outputs in the notebooks themselves",
}
SEVERAL = {"nargs": "+", "default": [], "action": "extend"}


def main(arguments: Sequence[str] | None = None, *, notebooks: Path = NOTEBOOKS) -> int:
    """Run the notebooks, lay out the figures and print a table; the exit status comes back.

    0 if all went well, 1 if a notebook failed or a checked table differs, 130 if interrupted; what
    is finished then stays, and the same command goes on from there.
    Raises ValueError, before anything runs, if the request is wrong.
    """
    asked = parse_options(arguments)
    paths = choose_notebooks(notebooks, asked.only)
    if asked.list:
        return _list(paths)
    folder = asked.out.expanduser().resolve() if asked.out else figures_folder()
    runs = plan_runs(paths, folder, profile=asked.profile, settings=asked.set)
    if asked.dry_run:
        return _explain(runs, asked)
    if asked.check:
        return _check(runs, asked)
    for place in (folder, folder / "runs"):
        check_writable(place)
    if asked.set and not asked.out:
        say(f"--set: figures in {folder} are written over; --out FOLDER leaves them as they are")
    with only_process(folder / "runs"):
        for place in (folder, folder / "runs", notebooks):
            for name in sweep_partial(place):
                say(f"removed {place / name}, half-written by a run that was killed")
        add_script(folder)  # now, so that an interrupted run has little left to do
        return _run(runs, asked, notebooks)


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
    others = {name: value for name, value in vars(given).items() if name not in ("list", "only")}
    if given.list and any(value != parser.get_default(name) for name, value in others.items()):
        raise ValueError("--list runs nothing: it goes with --only, and with no other option")
    return given


def _run(runs: Sequence[NotebookRun], asked: argparse.Namespace, notebooks: Path) -> int:
    folder, outcomes, interrupted = runs[0].figures, [], False
    try:
        outcomes.extend(_outcomes(runs, asked))
    except KeyboardInterrupt:
        interrupted = True
        say("interrupted: what is finished stays, and the same command goes on from here")
    failed = sum(result.state == "failed" for result in outcomes)
    done, page = f"{len(outcomes) - failed} of {len(runs)} notebooks done", ""
    try:
        page = build(folder, notebooks=notebooks)
        say(f"{done}; all figures: {page}")
    except (OSError, ValueError) as problem:
        say(f"error: {done}, but the page that shows the figures is as it was: {problem}")
    _report(outcomes)
    return INTERRUPTED if interrupted else int(bool(failed) or not page)


def _outcomes(runs: Sequence[NotebookRun], asked: argparse.Namespace) -> Iterator[Outcome]:
    """Each outcome as it comes, and a line about it."""
    begin = functools.partial(run_notebook, resume=not asked.fresh, refresh=asked.refresh)
    placed = {f"[{number}/{len(runs)}]": run for number, run in enumerate(runs, 1)}
    if asked.jobs == 1:
        bar = sys.stderr.isatty()
        found = (begin(run, place=place, bar=bar) for place, run in placed.items())
    else:
        found = _in_processes(begin, placed, asked.jobs)
    for result in found:
        said = f"{result.state} after {result.seconds:.1f} s"
        if result.state == "unchanged":
            said = "unchanged since its last run, skipped (--fresh runs it again)"
        say(f"{result.name}: {said}")
        yield result


def _in_processes(
    begin: Callable[..., Outcome], placed: Mapping[str, NotebookRun], jobs: int
) -> Iterator[Outcome]:
    """Each run in a process of its own, since a working directory belongs to a process."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1)
    try:
        futures = {pool.submit(begin, run, place=place): run for place, run in placed.items()}
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                name = futures[future].name
                why = "a process died, perhaps for want of memory; the same command tries again"
                yield Outcome(name, "failed", 0.0, (), f"{name}.ipynb: {why}")
    except (KeyboardInterrupt, GeneratorExit):
        for process in active_children():  # Ctrl-C reaches them too, a signal to this one does not
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _report(outcomes: Sequence[Outcome]) -> None:
    """Print the errors, then the table, in the order of the notebooks."""
    outcomes = sorted(outcomes, key=lambda result: result.name)
    for result in outcomes:
        if result.state == "failed":
            print(f"error: {result.error}", file=sys.stderr)
    wide = max((len(result.name) for result in outcomes), default=8)
    print(f"{'notebook':{wide}}  {'state':9}  seconds  figures")
    for result in outcomes:
        made = len({Path(name).stem for name in result.figures})
        print(f"{result.name:{wide}}  {result.state:9}  {result.seconds:7.1f}  {made:7}")


def _check(runs: Sequence[NotebookRun], asked: argparse.Namespace) -> int:
    """Run into a temporary folder and compare with the figures that are there."""
    for run in runs:
        kept = read_manifest(run.manifest)
        if kept and dict(kept.parameters) != dict(run.parameters):
            words = " ".join(f"{name}={value!r}" for name, value in kept.parameters.items())
            raise ValueError(
                f"the figures of {run.name} in {run.figures} were made with"
                f" {words or 'the defaults'}; --check needs the same, by --set or --profile"
            )
    with tempfile.TemporaryDirectory(prefix="specdec-check-") as place:
        apart = [dataclasses.replace(run, figures=Path(place)) for run in runs]
        outcomes, found = list(_outcomes(apart, asked)), []
        for run in runs:
            found += table_differences(run.figures, Path(place), run.name[:2])
    _report(outcomes)
    same = f"the tables are those in {runs[0].figures}, all but columns of seconds"
    print("\n".join(found) or same)
    return int(bool(found) or any(result.state == "failed" for result in outcomes))


def table_differences(before: Path, after: Path, number: str) -> Iterator[str]:
    """A line for each difference between the tables of one notebook in two folders.

    Columns of measured time may differ.
    """
    import pandas as pd  # late: `--help` needs none

    both = (before, after)
    for name in sorted({path.name for one in both for path in one.glob(f"{number}_*.csv")}):
        if not all((one / name).exists() for one in both):
            yield f"{name} is only in {before if (before / name).exists() else after}"
            continue
        look = {"dtype": str, "keep_default_na": False}
        old, new = (pd.read_csv(one / name, **look) for one in both)
        if list(old) != list(new):
            yield f"{name}: columns {', '.join(old)} became {', '.join(new)}"
        elif len(old) != len(new):
            yield f"{name}: {len(old)} rows became {len(new)}"
        else:
            for column in (column for column in old if not TIMED.search(column)):
                changed = old[column].compare(new[column])
                for row, (was, now) in changed[:1].iterrows():
                    where = f"differs in {len(changed)} of {len(old)} rows, first in row {row + 1}"
                    yield f"{name}: {column} {where}: {was} became {now}"


def _explain(runs: Sequence[NotebookRun], asked: argparse.Namespace) -> int:
    for run in runs:
        why = run.why() or ("asked to run again" if asked.fresh or asked.refresh else "")
        what = f"would run: {why}" if why else "unchanged, would be skipped"
        print(f"{run.name}: {what}{f'; with {run.given}' if run.given else ''}")
    return 0


def _list(paths: Sequence[Path]) -> int:
    for path in paths:
        print(path.stem)
        for name, one in read_parameters(path).items():
            default = f"{one['inferred_type_name']} = {one['default']}"
            print(f"    {name}: {default}  {one['help']}".rstrip())
    return 0
