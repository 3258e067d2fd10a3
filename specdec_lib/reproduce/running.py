"""One run: a notebook executed, its figures made, a manifest written."""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import papermill
from nbclient.exceptions import CellTimeoutError
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from specdec_lib.reproduce.plan import Run
from specdec_lib.reproduce.storing import store

KERNEL = "python3"
START_SECONDS = 120
CELL_SECONDS = 12 * 3600  # a hang, not a slow cell


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    state       "finished", "unchanged" (an earlier run with the same fingerprint stands) or "failed"
    figures     names of the figure files it wrote
    error       empty, or where and why it failed
    """

    name: str
    state: str
    seconds: float
    figures: tuple[str, ...] = ()
    error: str = ""


def outcome(run: Run, *, resume: bool = True, progress: bool = False) -> Outcome:
    """Execute a notebook, unless `resume` finds that it was already, with the same fingerprint and with its figures still there.

    A notebook that fails does not raise: the outcome says so, and the executed notebook is kept for reading.
    """
    if resume and (earlier := _earlier(run)):
        return earlier
    fingerprint = run.fingerprint  # of the notebook as it is now, before anybody edits it
    run.kept.parent.mkdir(parents=True, exist_ok=True)
    run.manifest.unlink(missing_ok=True)
    started, clock = time.time_ns(), time.monotonic()
    error = _execute(run, progress)
    seconds = round(time.monotonic() - clock, 1)
    result = Outcome(run.name, "failed" if error else "finished", seconds, _written(run, started), error)
    _remember(run, fingerprint, result)
    return result


def refreshed(run: Run, *, progress: bool = False) -> Outcome:
    """Execute a notebook with its defaults and store the outputs in the notebook itself; one that fails stays as it was."""
    result = outcome(run, resume=False, progress=progress)
    if result.state != "finished":
        return result
    try:
        store(run.kept, run.notebook)
    except ValueError as problem:
        return Outcome(run.name, "failed", result.seconds, result.figures, str(problem))
    return result


def _execute(run: Run, progress: bool) -> str:
    """Run the notebook in its own folder, as Lab does; "" or what went wrong."""
    surroundings = {
        "SPECDEC_FIGURES": str(run.figures),
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"),
        "PLOTLY_RENDERER": "plotly_mimetype",
        "JUPYTER_PREFER_ENV_PATH": "1",  # this interpreter's kernel, not one that the user installed for another
    }
    try:
        with _environment(surroundings):
            papermill.execute_notebook(
                str(run.notebook),
                str(run.kept),
                parameters=dict(run.parameters),
                kernel_name=KERNEL,
                progress_bar={"leave": False, "desc": run.name} if progress else False,
                start_timeout=START_SECONDS,
                execution_timeout=CELL_SECONDS,
                cwd=str(run.notebook.parent),
                store_widget_state=False,
                config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            )
    except PapermillExecutionError as problem:
        reason = f"{problem.ename}: {problem.evalue}".splitlines()[0]
        return f"{run.notebook.name}, cell In [{problem.exec_count}]: {reason}; the run is kept in {run.kept}"
    except (CellTimeoutError, RuntimeError, KeyError) as problem:  # a cell that hangs, a kernel that died, no kernel
        return f"{run.notebook.name}: {type(problem).__name__}: {problem}; the run is kept in {run.kept}"
    return ""


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables for the kernel, which inherits them; as before afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _written(run: Run, started: int) -> tuple[str, ...]:
    """Figure files with the notebook's number that were written since `started`, in nanoseconds of the epoch."""
    files = (path for path in run.figures.glob(f"{run.name[:2]}_*") if path.suffix in (".html", ".png", ".csv"))
    slack = 2 * 10**9  # a file system may keep whole seconds only
    return tuple(sorted(path.name for path in files if path.stat().st_mtime_ns >= started - slack))


def _remember(run: Run, fingerprint: str, result: Outcome) -> None:
    told = {"notebook": run.notebook.name, "profile": run.profile, "parameters": dict(run.parameters), "fingerprint": fingerprint}
    told |= {"state": result.state, "seconds": result.seconds, "figures": result.figures, "error": result.error}
    partial = run.manifest.with_suffix(".partial")
    partial.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    os.replace(partial, run.manifest)


def _earlier(run: Run) -> Outcome | None:
    """The finished run that makes this one superfluous."""
    try:
        told = json.loads(run.manifest.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    same = told.get("fingerprint") == run.fingerprint and told.get("state") == "finished"
    if not same or not all(Path(run.figures, name).exists() for name in told["figures"]):
        return None
    return Outcome(run.name, "unchanged", told["seconds"], tuple(told["figures"]))
