"""Executes one notebook: its figures are made and its manifest written, or its failure told."""

import contextlib
import dataclasses
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from specdec_lib.core.files import file_digest, partial
from specdec_lib.suite.gallery.manifest import Made, Manifest, read_manifest
from specdec_lib.suite.notebook import as_template
from specdec_lib.suite.reproduce.plan import NotebookRun
from specdec_lib.suite.reproduce.storing import store_outputs

KERNEL = "python3"
START_SECONDS = 120
CELL_SECONDS = 12 * 3600  # a hang, not a slow cell
TRACEBACK_LINES = 6
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    state      "finished", "failed" or "unchanged": an earlier run of this fingerprint stands
    figures    names of the figure files it wrote
    error      empty, or where and why it failed
    """

    name: str
    state: str
    seconds: float
    figures: tuple[str, ...] = ()
    error: str = ""


def say(line: str) -> None:
    """Print a line on standard error, at once, above any bar that is drawn there."""
    tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()


def run_notebook(
    run: NotebookRun,
    *,
    resume: bool = True,
    refresh: bool = False,
    place: str = "",
    bar: bool = False,
) -> Outcome:
    """Execute a notebook, unless `resume` finds that an earlier run stands; one that fails does not
    raise: the outcome says so, and the executed notebook is kept for reading.

    refresh    store the outputs in the notebook itself, if it finishes
    place      said when it begins, such as "[3/6]"
    bar        whether a bar over its cells is drawn
    """
    if resume and not refresh and not run.why():
        earlier = read_manifest(run.manifest)
        return Outcome(run.name, "unchanged", earlier.seconds, tuple(earlier.figures))
    if place:
        say(f"{place} {run.name} …")
    clock = time.monotonic()
    try:
        result = _execute(run, bar=bar)
        if refresh and result.state == "finished":
            store_outputs(run.kept, run.notebook)
    except (OSError, ValueError) as problem:  # a full disk, or outputs too large to store
        error = explain_failure(problem, run)
        return Outcome(run.name, "failed", round(time.monotonic() - clock, 1), (), error)
    return result


def _execute(run: NotebookRun, *, bar: bool) -> Outcome:
    """Run a notebook between two manifests: the first lets a killed run be known as one, and has
    the fingerprint of the notebook as it is now, which may be edited meanwhile.
    """
    run.kept.parent.mkdir(parents=True, exist_ok=True)
    made, parameters = Made.now(), dict(run.parameters)
    begun = Manifest(run.profile, parameters, run.fingerprint, "running", made)
    begun.write(run.manifest)
    before, clock = _figure_files(run), time.monotonic()
    error = _papermill(run, bar=bar)
    after, seconds = _figure_files(run), round(time.monotonic() - clock, 1)
    figures = {path.name: file_digest(path) for path in after if after[path] != before.get(path)}
    state = "failed" if error else "finished"
    ended = {"state": state, "seconds": seconds, "figures": figures, "error": error}
    dataclasses.replace(begun, **ended).write(run.manifest)
    return Outcome(run.name, state, seconds, tuple(figures), error)


def _papermill(run: NotebookRun, *, bar: bool) -> str:
    """Run the notebook in its own folder, as JupyterLab does; "" or what went wrong."""
    import papermill  # late: it takes seconds to import, and nothing but a run needs it
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    variables = {
        "SPECDEC_FIGURES": str(run.figures),
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"),
        "PLOTLY_RENDERER": "plotly_mimetype",
        "JUPYTER_PREFER_ENV_PATH": "1",  # this interpreter's kernel, not another one's
    }
    try:
        with _environment(variables), _kept_whole(run) as unfinished:
            papermill.execute_notebook(
                as_template(run.notebook),
                as_template(unfinished),
                parameters=dict(run.parameters),
                kernel_name=KERNEL,
                progress_bar={"leave": False, "desc": run.name} if bar else False,
                start_timeout=START_SECONDS,
                execution_timeout=CELL_SECONDS,
                cwd=str(run.notebook.parent),
                store_widget_state=False,
                shutdown_kernel="immediate",  # so that Ctrl-C does not wait for a busy kernel
                config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            )
    except (PapermillExecutionError, CellTimeoutError, RuntimeError, KeyError) as problem:
        return explain_failure(problem, run)  # of a cell, or the kernel died
    return ""


@contextlib.contextmanager
def _kept_whole(run: NotebookRun) -> Iterator[Path]:
    """Where the executed notebook is written meanwhile; at the end it gets its own name."""
    unfinished = partial(run.kept, ".ipynb")
    try:
        yield unfinished
    except OSError:  # a full disk: what an earlier run kept is worth more
        unfinished.unlink(missing_ok=True)
        raise
    finally:
        if unfinished.exists():
            unfinished.replace(run.kept)


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the kernel, which inherits them; restored afterwards."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _figure_files(run: NotebookRun) -> dict[Path, tuple[int, int]]:
    """The notebook's figure files, each with what changes when it is written anew, whatever the
    clock says: its inode, and the time of writing.
    """
    paths = sorted(run.figures.glob(f"{run.name[:2]}_*"))
    found = {path: path.stat() for path in paths if path.suffix in (".html", ".png", ".csv")}
    return {path: (one.st_ino, one.st_mtime_ns) for path, one in found.items()}


def explain_failure(problem: Exception, run: NotebookRun) -> str:
    """The notebook, the cell, the reason, the parameters and the end of the traceback, as lines."""
    reason, trace = f"{type(problem).__name__}: {problem}", []
    if "ename" in vars(problem):  # papermill's error with the kernel's own exception
        reason = f"{problem.ename}: {problem.evalue}"
        trace = COLOURS.sub("", "\n".join(problem.traceback)).splitlines()
    lines = [
        f"{run.notebook.name}{_failed_cell(run.kept)}: {reason.strip().splitlines()[0]}",
        f"    parameters: {f'{run.given}; the rest' if run.given else 'all'} as in the notebook",
        *[f"    | {line}" for line in trace if line.strip(" -")][-TRACEBACK_LINES:],
        f"    the run is kept in {run.kept}" if run.kept.exists() else "    nothing was kept",
    ]
    return "\n".join(lines)


def _failed_cell(kept: Path) -> str:
    """The code cell that failed or was running: its number, its count and its first line; "" if the
    executed notebook is missing or cut off.
    """
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError):
        return ""
    code = [cell for cell in found if cell["cell_type"] == "code"]
    code = [one for one in code if "injected-parameters" not in one["metadata"].get("tags", [])]
    for number, cell in enumerate(code, 1):
        if cell["metadata"].get("papermill", {}).get("status") in ("running", "failed"):
            first = next(filter(str.strip, "".join(cell["source"]).splitlines()), "").strip()
            count = cell.get("execution_count") or " "
            return f", code cell {number} of {len(code)} (In [{count}]), which begins {first!r}"
    return ""
