"""One run: a notebook executed, its figures made, a manifest written."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from specdec_lib.core.files import partial
from specdec_lib.suite.gallery.manifest import Manifest, Origin, digest, remembered
from specdec_lib.suite.gallery.surroundings import surroundings
from specdec_lib.suite.reproduce.failing import explained
from specdec_lib.suite.reproduce.plan import Run
from specdec_lib.suite.reproduce.progress import Progress
from specdec_lib.suite.reproduce.storing import store

KERNEL = "python3"
START_SECONDS = 120
CELL_SECONDS = 12 * 3600  # a hang, not a slow cell
QUIET = Progress()


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    state       "finished", "unchanged" (an earlier run with the same fingerprint stands) or
                "failed"
    figures     names of the figure files it wrote
    error       empty, or where and why it failed
    """

    name: str
    state: str
    seconds: float
    figures: tuple[str, ...] = ()
    error: str = ""


def outcome(run: Run, *, resume: bool = True, progress: Progress = QUIET) -> Outcome:
    """Execute a notebook, unless `resume` finds that it was already, with the same fingerprint and
    with its figures as it left them.

    A notebook that fails does not raise: the outcome says so, the executed notebook is kept for
    reading, and what other runs made stays.
    """
    earlier = remembered(run.manifest)
    if resume and earlier and not run.why():
        return Outcome(run.name, "unchanged", earlier.seconds, tuple(earlier.figures))
    progress.begin(run.name)
    clock = time.monotonic()
    try:
        return _done(run, _begun(run, earlier), progress)
    except OSError as problem:  # a disk that is full, a folder that is gone
        error = explained(problem, notebook=run.notebook, kept=run.kept, parameters=run.parameters)
        return Outcome(run.name, "failed", round(time.monotonic() - clock, 1), (), error)


def refreshed(run: Run, *, progress: Progress = QUIET) -> Outcome:
    """Execute a notebook with its defaults and store the outputs in the notebook itself; one that
    fails stays as it was.
    """
    result = outcome(run, resume=False, progress=progress)
    if result.state != "finished":
        return result
    try:
        store(run.kept, run.notebook)
    except (ValueError, OSError) as problem:
        return Outcome(run.name, "failed", result.seconds, result.figures, str(problem))
    return result


def _begun(run: Run, earlier: Manifest | None) -> Manifest:
    """The manifest of a run that is about to begin, kept at once: a run that is killed is known to
    have been.
    """
    run.kept.parent.mkdir(parents=True, exist_ok=True)
    older = earlier.origins() if earlier else {}
    begun = Manifest(
        notebook=run.notebook.name,
        profile=run.profile,
        parameters=dict(run.parameters),
        values=run.values,
        fingerprint=run.fingerprint,  # of the notebook as it is now, before anybody edits it
        state="running",
        made=surroundings(),
        older=older,
    )
    begun.write(run.manifest)
    return begun


def _done(run: Run, begun: Manifest, progress: Progress) -> Outcome:
    started, clock = time.time_ns(), time.monotonic()
    error = _execute(run, progress)
    seconds, state = round(time.monotonic() - clock, 1), "failed" if error else "finished"
    figures = _written(run, started)
    older: dict[str, Origin] = (
        {name: one for name, one in begun.older.items() if name not in figures} if error else {}
    )
    dataclasses.replace(
        begun, state=state, seconds=seconds, figures=figures, older=older, error=error
    ).write(run.manifest)
    return Outcome(run.name, state, seconds, tuple(figures), error)


def _execute(run: Run, progress: Progress) -> str:
    """Run the notebook in its own folder, as Lab does; "" or what went wrong."""
    import papermill  # late: it takes seconds to import, and nothing but a run needs it
    from nbclient.exceptions import CellTimeoutError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    surroundings = {
        "SPECDEC_FIGURES": str(run.figures),
        "HF_HUB_OFFLINE": os.environ.get("HF_HUB_OFFLINE", "1"),
        "PLOTLY_RENDERER": "plotly_mimetype",
        # this interpreter's kernel, not one that the user installed for another
        "JUPYTER_PREFER_ENV_PATH": "1",
    }
    try:
        with _environment(surroundings), _kept_whole(run) as unfinished:
            papermill.execute_notebook(
                str(run.notebook),
                unfinished,
                parameters=dict(run.parameters),
                kernel_name=KERNEL,
                progress_bar=progress.bar(run.name),
                start_timeout=START_SECONDS,
                execution_timeout=CELL_SECONDS,
                cwd=str(run.notebook.parent),
                store_widget_state=False,
                # nothing is left to do then, and a busy one would keep whoever pressed Ctrl-C
                # waiting
                shutdown_kernel="immediate",
                config=Config({"KernelManager": {"transport_encryption": "auto"}}),
            )
    except (
        PapermillExecutionError,
        CellTimeoutError,
        RuntimeError,
        KeyError,
    ) as problem:  # or a cell that hangs, a dead kernel, none at all
        return explained(problem, notebook=run.notebook, kept=run.kept, parameters=run.parameters)
    return ""


@contextlib.contextmanager
def _kept_whole(run: Run) -> Iterator[str]:
    """Where the executed notebook is written while it runs; at the end, however that comes, it gets
    its name.
    """
    unfinished = partial(run.kept, ".ipynb")
    try:
        yield str(unfinished)
    finally:
        if unfinished.exists():
            os.replace(unfinished, run.kept)


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


def _written(run: Run, started: int) -> dict[str, str]:
    """Figure files with the notebook's number that were written since `started`, in nanoseconds of
    the epoch, and their digests.
    """
    files = (
        path
        for path in run.figures.glob(f"{run.name[:2]}_*")
        if path.suffix in (".html", ".png", ".csv")
    )
    slack = 2 * 10**9  # a file system may keep whole seconds only
    return {
        path.name: digest(path)
        for path in sorted(files)
        if path.stat().st_mtime_ns >= started - slack
    }
