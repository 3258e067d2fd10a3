"""The command line: choose, check, run, report."""

import argparse
import dataclasses
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from tqdm import tqdm

from specdec_lib.core.files import (
    NOTEBOOKS,
    REPOSITORY,
    check_writable,
    figures_folder,
    sweep_partial,
)
from specdec_lib.suite.gallery import build, remembered
from specdec_lib.suite.notebook import parameters
from specdec_lib.suite.reproduce.checking import differences
from specdec_lib.suite.reproduce.options import check_options, options
from specdec_lib.suite.reproduce.plan import Run, chosen, planned
from specdec_lib.suite.reproduce.progress import Progress, told
from specdec_lib.suite.reproduce.running import Outcome, outcome, refreshed
from specdec_lib.suite.reproduce.settings import expected_times

REFUSED, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None, *, notebooks: Path = NOTEBOOKS) -> int:
    """Run the notebooks, lay out the figures and print a table.

    0 if all went well, 1 if a notebook failed or a checked table differs, 2 if the request was
    refused before anything ran, 130 if interrupted; what is finished then stays, and the same
    command goes on from there.
    """
    asked = options(arguments)
    try:
        check_options(asked)
        paths = chosen(notebooks, asked.only)
        if asked.list:
            return _list(paths)
        folder = asked.out.expanduser().resolve() if asked.out else figures_folder()
        runs = planned(paths, folder, profile=asked.profile, settings=asked.set)
        if asked.dry_run:
            return _explain(runs, asked)
        _announce(runs, asked)
        if asked.check:
            return _check(runs, asked)
        _prepare(folder, notebooks)
    except ValueError as problem:
        print(f"refused: {problem}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return _run(runs, asked, notebooks)


def _run(runs: Sequence[Run], asked: argparse.Namespace, notebooks: Path) -> int:
    folder, outcomes, interrupted = runs[0].figures, [], False
    try:
        for result in _shown(runs, asked):
            outcomes.append(result)
    except KeyboardInterrupt:
        interrupted = True
        told("interrupted: what is finished stays, and the same command goes on from here")
    try:
        page = build(folder, notebooks=notebooks)
        done = sum(result.state != "failed" for result in outcomes)
        told(
            f"{done} of {len(runs)} notebooks"
            f" done{f', {len(outcomes) - done} failed' if done < len(outcomes) else ''}; all"
            f" figures: {page}"
        )
        laid_out = True
    except (OSError, ValueError) as problem:
        told(
            f"error: the figures are there, but {folder / 'index.html'} was not written: {problem}"
        )
        laid_out = False
    status = _report(sorted(outcomes, key=lambda result: result.name))
    return INTERRUPTED if interrupted else status or int(not laid_out)


def _prepare(folder: Path, notebooks: Path) -> None:
    """Refuse a folder that cannot be written to, before hours of work; sweep up after runs that
    were killed.
    """
    try:
        for place in (folder, folder / "runs"):
            check_writable(place)
    except ValueError as problem:
        raise ValueError(f"{problem}, with --out DIR") from problem
    for place in (folder, folder / "runs", notebooks):
        for name in sweep_partial(place):
            told(f"removed {place / name}, half-written by a run that was killed")


def _announce(runs: Sequence[Run], asked: argparse.Namespace) -> None:
    """What a person may want to know beforehand: how long it takes, and which files it will
    replace.
    """
    times = [
        f"    {run.name}: {time}"
        for run in runs
        for time in expected_times(run.notebook, asked.profile)
    ]
    if times:
        told("\n".join(["the full profile takes long, by what its files say:", *times]))
    if (
        runs[0].figures == REPOSITORY / "figures"
        and (asked.set or asked.profile != "smoke")
        and not asked.check
    ):
        told(
            "note: figures of other parameters replace those in figures/, which git tracks; --out"
            " DIR puts them elsewhere"
        )


def _shown(runs: Sequence[Run], asked: argparse.Namespace) -> Iterator[Outcome]:
    """Each outcome as it comes, and a line about it."""
    with tqdm(total=len(runs), unit="notebook", disable=None) as bar:
        for result in _outcomes(runs, asked):
            bar.write(_line(result), file=sys.stderr)
            bar.update()
            yield result


def _outcomes(runs: Sequence[Run], asked: argparse.Namespace) -> Iterator[Outcome]:
    """Each outcome as it comes; with several jobs each run has a process of its own, since a
    working directory belongs to a process.
    """
    work, more = (refreshed, {}) if asked.refresh else (outcome, {"resume": asked.resume})
    kind = "bar" if asked.jobs == 1 and sys.stderr.isatty() else "lines"
    steps = [(run, Progress(f"[{number}/{len(runs)}]", kind)) for number, run in enumerate(runs, 1)]
    if asked.jobs == 1:
        for run, progress in steps:
            yield work(run, progress=progress, **more)
        return
    pool = ProcessPoolExecutor(
        asked.jobs, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
    )
    try:
        futures = {
            pool.submit(work, run, progress=progress, **more): run for run, progress in steps
        }
        for future in as_completed(futures):
            yield _result(future, futures[future])
    finally:
        pool.shutdown(cancel_futures=True)


def _result(future: Future, run: Run) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        error = f"{run.notebook.name}: a process died, killed perhaps for want of memory, and took this run along; the same command tries again"
        return Outcome(run.name, "failed", 0.0, (), error)


def _line(result: Outcome) -> str:
    match result.state:
        case "unchanged":
            return f"{result.name}: unchanged since its last run, skipped (--fresh runs it again)"
        case "failed":
            return f"{result.name}: failed after {result.seconds:.1f} s"
    return f"{result.name}: finished in {result.seconds:.1f} s"


def _report(outcomes: Sequence[Outcome]) -> int:
    """The errors, then the table, last."""
    failures = [result for result in outcomes if result.state == "failed"]
    for result in failures:
        print(f"error: {result.error}", file=sys.stderr)
    wide = max((len(result.name) for result in outcomes), default=8)
    print(f"{'notebook':{wide}}  {'state':9}  seconds  figures")
    for result in outcomes:
        made = len({Path(name).stem for name in result.figures})
        print(f"{result.name:{wide}}  {result.state:9}  {result.seconds:7.1f}  {made:7}")
    return 1 if failures else 0


def _check(runs: Sequence[Run], asked: argparse.Namespace) -> int:
    """Run into a temporary folder and compare with the figures that are there."""
    for run in runs:
        kept = remembered(run.manifest)
        if kept and dict(kept.parameters) != dict(run.parameters):
            words = (
                " ".join(f"{name}={value!r}" for name, value in kept.parameters.items())
                or "the defaults"
            )
            raise ValueError(
                f"the figures of {run.name} in {run.figures} were made with {words}; --check needs"
                " the same, by --set or --profile"
            )
    with tempfile.TemporaryDirectory(prefix="specdec-check-") as place:
        outcomes = list(
            _shown([dataclasses.replace(run, figures=Path(place)) for run in runs], asked)
        )
        found = [
            line for run in runs for line in differences(run.figures, Path(place), run.name[:2])
        ]
    status = _report(sorted(outcomes, key=lambda result: result.name))
    print(
        "\n".join(found) or f"the tables are those in {runs[0].figures}, all but columns of seconds"
    )
    return 1 if found else status


def _explain(runs: Sequence[Run], asked: argparse.Namespace) -> int:
    for run in runs:
        why = run.why() or ("" if asked.resume and not asked.refresh else "asked to run again")
        given = ", ".join(f"{name}={value!r}" for name, value in run.parameters.items())
        print(
            f"{run.name}: {f'would run: {why}' if why else 'unchanged, would be skipped'}{f'; with {given}' if given else ''}"
        )
    return 0


def _list(paths: Sequence[Path]) -> int:
    for path in paths:
        print(path.stem)
        for name, one in parameters(path).items():
            print(f"    {name}: {one.annotation} = {one.default}  {one.help}".rstrip())
    return 0
