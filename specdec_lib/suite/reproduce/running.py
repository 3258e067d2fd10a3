"""Executes one notebook: its figures are made and its manifest written, or its failure told."""

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from specdec_lib.core.files import file_digest, partial
from specdec_lib.suite.gallery.manifest import Manifest, made_here
from specdec_lib.suite.notebook import as_template
from specdec_lib.suite.reproduce.plan import NotebookRun
from specdec_lib.suite.reproduce.storing import store_outputs

START_SECONDS = 120
CELL_SECONDS = 12 * 3600  # a hang, not a slow cell


def say(line: str) -> None:
    """Print a line on standard error, at once."""
    print(line, file=sys.stderr, flush=True)


def run_notebook(run: NotebookRun, *, refresh: bool = False) -> str:
    """Execute a notebook; "" or, if it fails, where and why. The executed one is kept for reading.

    refresh    store the outputs in the notebook itself, if it finishes
    """
    say(f"{run.name} …")
    clock = time.monotonic()
    try:
        error = _execute(run)
        if refresh and not error:
            store_outputs(run.kept, run.notebook)
    except (OSError, ValueError) as problem:  # such as a full disk
        error = explain_failure(problem, run)
    say(f"{run.name}: {'failed' if error else 'finished'} after {time.monotonic() - clock:.1f} s")
    return error


def _execute(run: NotebookRun) -> str:
    """Run a notebook between two manifests: the first lets a killed run be known as one, and has
    the fingerprint of the notebook as it is now, which may be edited meanwhile.
    """
    run.kept.parent.mkdir(parents=True, exist_ok=True)
    given = dict(run.parameters)
    begun = Manifest(run.profile, given, run.fingerprint, "running", made_here())
    begun.write(run.manifest)
    before, clock = _figure_files(run), time.monotonic()
    error = _papermill(run)
    seconds, after = round(time.monotonic() - clock, 1), _figure_files(run)
    figures = {path.name: file_digest(path) for path, *_ in sorted(after - before)}
    ended = {"state": "failed" if error else "finished", "seconds": seconds, "figures": figures}
    dataclasses.replace(begun, error=error, **ended).write(run.manifest)
    return error


def _papermill(run: NotebookRun) -> str:
    """Run the notebook in its own folder, as JupyterLab does; "" or what went wrong. The executed
    notebook gets its name at the end, and none if it could not be written.
    """
    import papermill  # late: it takes seconds to import, and nothing but a run needs it
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    unfinished, failure = partial(run.kept, ".ipynb"), None
    try:
        with _environment(run.figures):
            papermill.execute_notebook(
                as_template(run.notebook),
                as_template(unfinished),
                parameters=dict(run.parameters),
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
    except OSError:  # a full disk: what an earlier run kept is worth more
        unfinished.unlink(missing_ok=True)
        raise
    if unfinished.exists():
        unfinished.replace(run.kept)
    return "" if failure is None else explain_failure(failure, run)


@contextlib.contextmanager
def _environment(figures: Path) -> Iterator[None]:
    """The environment of the kernel, which inherits it; restored afterwards."""
    before = dict(os.environ)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["SPECDEC_FIGURES"] = str(figures)
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # this interpreter's kernel, not another one's
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _figure_files(run: NotebookRun) -> set[tuple[Path, int, int]]:
    """The notebook's figure files, each with what changes when it is written anew, whatever the
    clock says: its inode, and the time of writing.
    """
    paths = run.figures.glob(f"{run.name[:2]}_*")
    found = [(path, path.stat()) for path in paths if path.suffix in (".html", ".png", ".csv")]
    return {(path, one.st_ino, one.st_mtime_ns) for path, one in found}


def explain_failure(problem: Exception, run: NotebookRun) -> str:
    """The notebook, the cell, the reason, the parameters and where the run is kept, as lines."""
    name, said = type(problem).__name__, str(problem)
    if "ename" in vars(problem):  # papermill's error with the kernel's own exception
        name, said = problem.ename, problem.evalue
    lines = [f"{run.notebook.name}{_failed_cell(run.kept)}: {name}: {said}".splitlines()[0]]
    lines += [f"with {run.given}"] if run.given else []
    lines += [f"the run is kept in {run.kept}"] if run.kept.exists() else []
    return "\n    ".join(lines)


def _failed_cell(kept: Path) -> str:
    """The code cell that failed or was running: its count and its first line; "" if the executed
    notebook is missing or cut off.
    """
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError):
        return ""
    for cell in found:
        if cell["metadata"].get("papermill", {}).get("status") in ("running", "failed"):
            first = next(filter(str.strip, "".join(cell["source"]).splitlines()), "").strip()
            count = cell.get("execution_count") or " "
            return f", code cell In [{count}], which begins {first!r}"
    return ""
