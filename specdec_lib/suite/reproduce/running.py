"""The notebooks run by papermill, every figure made, all laid out as one page."""

import contextlib
import dataclasses
import functools
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdec_lib.core.files import (
    check_writable,
    figures_folder,
    file_digest,
    partial,
    sweep_partial,
)
from specdec_lib.core.locking import only_process
from specdec_lib.suite.gallery.building import KINDS, build
from specdec_lib.suite.gallery.manifest import Manifest, made_here, read_manifest
from specdec_lib.suite.notebook import (
    NOTEBOOKS,
    as_template,
    number_of,
    read_parameters,
    store_outputs,
)
from specdec_lib.suite.reproduce.checking import SAME, compared_tables
from specdec_lib.suite.reproduce.plan import NotebookRun, choose_notebooks, plan_runs
from specdec_lib.suite.reproduce.side_by_side import run_each

INTERRUPTED = 130
START_SECONDS = 120
CELL_SECONDS = 12 * 3600  # a hang, not a slow cell
MODES = ("list", "dry-run", "check", "refresh")


@dataclass(frozen=True)
class RunRequest:
    """What `specdec reproduce` is asked for.

    only        numbers or names of notebooks; all if there are none
    settings    "name=value", for every notebook that has the parameter
    profile     "smoke", the defaults, or "full", notebooks/full/NN.yml
    out         the folder of the figures; None is the one that SPECDEC_FIGURES names, else figures/
    mode        one of `MODES`, or "" to run
    fresh       run again what is unchanged since its last run
    notebooks   their folder
    jobs        notebooks that run at once, at most; those that time this machine run alone

    Raises ValueError if there are fewer jobs than one, or a refresh has settings or a profile.
    """

    only: Sequence[str] = ()
    settings: Sequence[str] = ()
    profile: str = "smoke"
    out: Path | None = None
    mode: str = ""
    fresh: bool = False
    notebooks: Path = NOTEBOOKS
    jobs: int = 1

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"jobs counts from 1, got {self.jobs}")
        if self.mode == "refresh" and (self.settings or self.profile != "smoke"):
            raise ValueError(
                "--refresh stores what the defaults give; it goes with neither --set nor"
                " --profile full"
            )


def reproduce_figures(asked: RunRequest) -> int:
    """Run the notebooks and lay out the figures; the exit status comes back. What is finished when
    the run is interrupted stays, and the same command goes on from there.

    Raises ValueError, before anything runs, if the request is wrong.
    """
    folder = asked.out.expanduser().resolve() if asked.out else figures_folder()
    paths = choose_notebooks(asked.notebooks, asked.only)
    runs = plan_runs(paths, folder, profile=asked.profile, settings=asked.settings)
    if asked.mode == "list":
        return _list(paths)
    if asked.mode == "dry-run":
        _due(runs, asked)
        return 0
    if asked.mode == "check":
        return _check(runs, asked.jobs)
    for place in (folder, folder / "runs"):
        check_writable(place)
    with only_process(folder / "runs"):
        for place in (folder, folder / "runs", asked.notebooks):
            for name in sweep_partial(place):
                say(f"removed {place / name}, half-written by a run that was killed")
        status = _run(_due(runs, asked), asked.jobs, refresh=asked.mode == "refresh")
        say(f"all figures: {build(folder, notebooks=asked.notebooks)}")
        return status


def _due(runs: Sequence[NotebookRun], asked: RunRequest) -> list[NotebookRun]:
    """The runs that have to be done; what is done with each, and why, is printed."""
    due = []
    for run in runs:
        again = "asked to run again" if asked.fresh or asked.mode == "refresh" else ""
        why = run.why() or again
        given = f"; with {run.given}" if run.given else ""
        print(f"{run.name}: {f'runs, {why}' if why else 'unchanged since its last run'}{given}")
        if why:
            due.append(run)
    return due


def _run(runs: Sequence[NotebookRun], jobs: int, *, refresh: bool) -> int:
    """Execute notebooks and, at the end, print what went wrong; the exit status comes back."""
    problems: list[str] = []
    try:
        work = functools.partial(run_notebook, refresh=refresh)
        with contextlib.closing(run_each(work, runs, jobs)) as told:
            for problem in told:
                problems += [problem] if problem else []  # also those before an interrupt
    except KeyboardInterrupt:
        say("interrupted: what is finished stays, and the same command goes on from here")
        return INTERRUPTED
    finally:
        for problem in problems:
            say(f"error: {problem}")
    return int(bool(problems))


def _check(runs: Sequence[NotebookRun], jobs: int) -> int:
    """Run into a temporary folder, print a line for each table of the notebooks that finished:
    whether it is the one that is there; the exit status comes back. Nothing is stored.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="specdec-check-") as place:
        apart = [dataclasses.replace(run, figures=Path(place)) for run in runs]
        status = _run(apart, jobs, refresh=False)
        if status == INTERRUPTED:
            return status
        for run, again in zip(runs, apart, strict=True):
            manifest = read_manifest(again.manifest)
            if manifest is not None and manifest.state == "finished":
                found += compared_tables(run.figures, again.figures, number_of(run.name))
    for name, difference in found:
        print(f"{name}: {difference}")
    same = sum(difference == SAME for _, difference in found)
    print(f"{same} of {len(found)} tables are those in {runs[0].figures}, all but measured times")
    return status or int(same < len(found))


def _list(paths: Sequence[Path]) -> int:
    for path in paths:
        print(path.stem)
        for name, one in read_parameters(path).items():
            default = f"{one['inferred_type_name']} = {one['default']}"
            print(f"    {name}: {default}  {one['help']}".rstrip())
    return 0


def say(line: str) -> None:
    """Print a line on standard error, at once."""
    print(line, file=sys.stderr, flush=True)


def run_notebook(run: NotebookRun, *, refresh: bool = False) -> str:
    """Execute a notebook; "" or, if it fails, where and why. The executed one is kept for reading,
    and if it finishes, `refresh` stores its outputs in the notebook itself.
    """
    say(f"{run.name} …")
    clock = time.monotonic()
    try:
        error = _execute(run)
        if refresh and not error:
            store_outputs(run.kept, run.notebook, run.figures)
    except (OSError, ValueError) as problem:  # such as a full disk
        error = explain_failure(problem, run)
    say(f"{run.name}: {'failed' if error else 'finished'} after {time.monotonic() - clock:.1f} s")
    return error


def _execute(run: NotebookRun) -> str:
    """Run a notebook between two manifests: the first lets a killed run be known as one, and has
    the fingerprint of the notebook as it is now, which may be edited meanwhile.
    """
    run.kept.parent.mkdir(parents=True, exist_ok=True)
    begun = Manifest(run.profile, run.parameters, run.fingerprint, "running", made_here())
    begun.write(run.manifest)
    before = _figure_files(run)
    clock = time.monotonic()
    error = _papermill(run)
    seconds = round(time.monotonic() - clock, 1)
    written = sorted(_figure_files(run) - before)
    ended = dataclasses.replace(
        begun,
        error=error,
        state="failed" if error else "finished",
        seconds=seconds,
        figures={path.name: file_digest(path) for path, *_ in written},
    )
    ended.write(run.manifest)
    return error


def _papermill(run: NotebookRun) -> str:
    """Run the notebook in its own folder, as JupyterLab does; "" or what went wrong."""
    import papermill  # late: it takes seconds to import, and nothing but a run needs it
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    unfinished = partial(run.kept, ".ipynb")
    failure = None
    try:
        with _environment(run.figures):
            papermill.execute_notebook(
                as_template(run.notebook),
                as_template(unfinished),
                parameters=run.parameters,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=START_SECONDS,
                execution_timeout=CELL_SECONDS,
                cwd=str(run.notebook.parent),
                store_widget_state=False,
                shutdown_kernel="immediate",  # so that Ctrl-C does not wait for a busy kernel
                config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            )
    except (PapermillExecutionError, CellTimeoutError, RuntimeError, KeyError) as problem:
        failure = problem  # of a cell, or the kernel died
    if unfinished.exists():
        unfinished.replace(run.kept)
    return "" if failure is None else explain_failure(failure, run)


@contextlib.contextmanager
def _environment(figures: Path) -> Iterator[None]:
    """The environment of the kernel, which inherits it; restored afterwards."""
    before = dict(os.environ)
    os.environ |= {"SPECDEC_FIGURES": str(figures), "PLOTLY_RENDERER": "plotly_mimetype"}
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # this interpreter's kernel, not another one's
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _figure_files(run: NotebookRun) -> set[tuple[Path, int, int]]:
    """The notebook's figure files, each with what changes when it is written anew."""
    paths = run.figures.glob(f"{number_of(run.name)}_*")
    found = [(path, path.stat()) for path in paths if path.suffix in KINDS]
    return {(path, one.st_ino, one.st_mtime_ns) for path, one in found}


def explain_failure(problem: Any, run: NotebookRun) -> str:
    """The notebook, the cell, the reason, the parameters and where the run is kept, as lines."""
    name = type(problem).__name__
    said = str(problem)
    cell = ""
    if "ename" in vars(problem):  # papermill's error with the kernel's own exception
        name = problem.ename
        said = problem.evalue
        first = problem.source.strip().partition("\n")[0]
        cell = f", code cell In [{problem.exec_count}], which begins {first!r}"
    lines = [f"{run.notebook.name}{cell}: {name}: {said}".splitlines()[0]]
    lines += [f"with {run.given}"] if run.given else []
    lines += [f"the run is kept in {run.kept}"] if run.kept.exists() else []
    return "\n    ".join(lines)
