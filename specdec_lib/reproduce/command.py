"""The command line: choose, check, run, report."""

import argparse
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tqdm import tqdm

from specdec_lib.figures import folder
from specdec_lib.reproduce.plan import NOTEBOOKS, PROFILES, Run, chosen, declared, planned
from specdec_lib.reproduce.running import Outcome, outcome, refreshed

REFUSED = 2


def main(arguments: Sequence[str] | None = None, *, notebooks: Path = NOTEBOOKS) -> int:
    """Run the notebooks and print a table; 0 if all went well, 1 if one failed, 2 if the request was refused before anything ran."""
    asked = _parser().parse_args(arguments)
    try:
        paths = chosen(notebooks, asked.only)
        if asked.list:
            _list(paths)
            return 0
        if asked.refresh and (asked.set or asked.profile != "smoke"):
            raise ValueError("--refresh stores what the defaults give; it goes with neither --set nor --profile full")
        if asked.jobs < 1:
            raise ValueError(f"--jobs counts from 1, got {asked.jobs}")
        runs = planned(paths, folder(), profile=asked.profile, settings=asked.set)
    except ValueError as problem:
        print(f"refused: {problem}", file=sys.stderr)
        return REFUSED
    outcomes = []
    with tqdm(total=len(runs), unit="notebook", disable=None) as bar:
        for result in _outcomes(runs, asked):
            bar.write(_line(result), file=sys.stderr)
            bar.update()
            outcomes.append(result)
    return _report(sorted(outcomes, key=lambda result: result.name))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m specdec_lib.reproduce", description="Run the notebooks; every figure is made anew.")
    parser.add_argument("--list", action="store_true", help="show the notebooks and their parameters, run nothing")
    parser.add_argument("--only", nargs="+", default=[], metavar="NN", help="numbers or names of notebooks; all without")
    parser.add_argument("--set", nargs="+", default=[], metavar="name=value", action="extend", help="parameters, for every notebook that has them")
    parser.add_argument("--profile", choices=PROFILES, default="smoke", help="smoke: the defaults; full: notebooks/full/NN.yml")
    parser.add_argument("--fresh", dest="resume", action="store_false", help="run again what is unchanged since its last run")
    parser.add_argument("--resume", dest="resume", action="store_true", default=True, help="skip what is unchanged since its last run (the default)")
    parser.add_argument("--refresh", action="store_true", help="run with the defaults and store the outputs in the notebooks themselves")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="notebooks at a time; timings are only right with 1 (the default)")
    return parser


def _outcomes(runs: Sequence[Run], asked: argparse.Namespace) -> Iterator[Outcome]:
    """Each outcome as it comes; with several jobs each run has a process of its own, since a working directory belongs to a process."""
    work, options = (refreshed, {}) if asked.refresh else (outcome, {"resume": asked.resume})
    if asked.jobs == 1:
        for run in runs:
            yield work(run, progress=sys.stderr.isatty(), **options)
        return
    with ProcessPoolExecutor(asked.jobs, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(work, run, **options) for run in runs]):
            yield future.result()


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
    wide = max(len(result.name) for result in outcomes)
    print(f"{'notebook':{wide}}  {'state':9}  seconds  figures")
    for result in outcomes:
        made = len({Path(name).stem for name in result.figures})
        print(f"{result.name:{wide}}  {result.state:9}  {result.seconds:7.1f}  {made:7}")
    return 1 if failures else 0


def _list(paths: Sequence[Path]) -> None:
    for path in paths:
        print(path.stem)
        for name, one in declared(path).items():
            print(f"    {name}: {one['inferred_type_name']} = {one['default']}  {one['help']}".rstrip())
