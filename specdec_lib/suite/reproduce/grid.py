"""A notebook over a grid of parameters, here or on the workers of a Dask client: every run's files
come back, and what they have in tables stands side by side in one.
"""

import base64
import math
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from specdec_lib.core.files import cache_folder, check_writable, write_whole
from specdec_lib.core.locking import only_process
from specdec_lib.measure.cluster import Cluster, opened, spread_rows
from specdec_lib.measure.fingerprints import fingerprint, short_digest
from specdec_lib.measure.options import write_csv
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce.plan import (
    NotebookRun,
    check_parameters,
    choose_notebooks,
    plan_runs,
)
from specdec_lib.suite.reproduce.running import RunRequest, run_notebook, say

MOST = 1000  # runs of a grid


def read_grid(file: Path, base: NotebookRun) -> list[dict[str, Any]]:
    """The parameters of each run of a grid, a YAML file with a list of values by parameter, which
    are combined in every way: the first parameter changes slowest.

    base    a run of the notebook, with what is the same in all runs

    Raises ValueError for a file that cannot be read so, a name that the notebook does not declare
    or that the base sets, a value of another type, or more than 1,000 runs.
    """
    import yaml

    try:
        given = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise ValueError(f"the grid {file} cannot be read: {problem}") from problem
    lists = isinstance(given, dict) and all(isinstance(one, list) and one for one in given.values())
    if not given or not lists:
        raise ValueError(
            "a grid is a YAML file with a list of values for each parameter, such as"
            f" `temperature: [0.0, 0.7]`; got {file}"
        )
    kinds = {
        name: one["inferred_type_name"] for name, one in read_parameters(base.notebook).items()
    }
    unknown = sorted(map(str, given.keys() - kinds.keys()))
    if unknown:
        raise ValueError(
            f"{file}: {base.name} has no parameter {', '.join(unknown)};"
            f" there are {', '.join(sorted(kinds))}"
        )
    both = sorted(given.keys() & base.parameters.keys())
    if both:
        names = ", ".join(both)
        raise ValueError(f"{file}: {names} is set for all runs too, by --set or --profile")
    size = math.prod(map(len, given.values()))
    if size > MOST:
        raise ValueError(f"{file}: a grid has at most {MOST:,} runs, got {size:,}")
    points = [dict(zip(given, point, strict=True)) for point in product(*given.values())]
    for point in points:
        check_parameters(point, kinds, base.notebook, str(file))
    return points


def reproduce_grid(asked: RunRequest, file: Path, scheduler: str | None = None) -> int:
    """Run one notebook over the grid of a file, on the workers of a scheduler if one is given; the
    exit status comes back. Raises ValueError, before anything runs, if the request is wrong.
    """
    if asked.out is None or asked.mode or asked.fresh:
        raise ValueError("--grid needs a folder --out, and goes with neither a mode nor --fresh")
    paths = choose_notebooks(asked.notebooks, asked.only)
    if len(paths) != 1:
        names = ", ".join(path.stem for path in paths)
        raise ValueError(f"--grid is about one notebook: name it with --only, one of {names}")
    out = asked.out.expanduser().resolve()
    [base] = plan_runs(paths, out, profile=asked.profile, settings=asked.settings)
    points = read_grid(file, base)
    check_writable(out)
    with only_process(out), opened(scheduler, None) as cluster:
        return run_grid(points, base, out, cluster)


def run_grid(
    points: Sequence[Mapping[str, Any]],
    base: NotebookRun,
    out: Path,
    cluster: Cluster | None = None,
) -> int:
    """Run the notebook with the parameters of every point, write each run's files into a folder of
    its own and all tables side by side into `out`; 1 if a run failed, else 0. Finished runs are
    kept in the cache, and a grid that was stopped goes on there.

    The tables: one of the runs (`grid.csv`: their parameters, seconds and errors), and for each
    table that a run draws from the rows of all runs, their parameters before them.
    """
    same = fingerprint(base.fingerprint)
    cache = RowCache(cache_folder() / "grids" / same)
    items = [(short_digest(repr(point)), {**base.parameters, **point}) for point in points]
    for key, _ in items:
        if any(row["error"] for row in cache.read(key)):
            cache.write(key, [])  # it is tried again
    content = base.notebook.read_text(encoding="utf-8")
    rows = spread_rows(
        notebook_rows,
        items,
        None,
        {"name": base.notebook.name, "content": content, "profile": base.profile},
        cache,
        cluster=cluster,
        label="runs",
    )
    _write_files(out / "runs" / base.name, points, rows)
    tables = _tables(out / "runs" / base.name, points)
    for name, parts in tables.items():
        write_csv(pd.concat(parts, ignore_index=True), out / name)
    told = [
        {**point, "seconds": row["seconds"], "error": row["error"]}
        for point, row in zip(points, rows, strict=True)
    ]
    write_csv(pd.DataFrame(told), out / "grid.csv")
    failed = sum(bool(row["error"]) for row in rows)
    say(f"{len(rows) - failed} of {len(rows)} runs finished; their tables are in {out}")
    return int(failed > 0)


def _write_files(folder: Path, points: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> None:
    """Write each run's files into its folder, and print what went wrong in it."""
    for number, (point, row) in enumerate(zip(points, rows, strict=True)):
        own = folder / label_of(number, point)
        for name, encoded in row["files"].items():
            place = own / name
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, base64.b64decode(encoded))
        if row["error"]:
            say(f"error: {row['error']}\n    the run is kept in {own}")


def _tables(folder: Path, points: Sequence[Mapping[str, Any]]) -> dict[str, list[pd.DataFrame]]:
    """The tables of the runs by file name, each with the run's parameters as its first columns."""
    found: dict[str, list[pd.DataFrame]] = {}
    for number, point in enumerate(points):
        for path in sorted((folder / label_of(number, point)).glob("*.csv")):
            table = pd.read_csv(path)
            for at, (name, value) in enumerate(point.items()):
                column = f"{name} of the run" if name in table else name
                shown = str(value) if isinstance(value, list | dict) else value
                table.insert(at, column, [shown] * len(table))
            found.setdefault(path.name, []).append(table)
    return found


def label_of(number: int, point: Mapping[str, Any]) -> str:
    """The folder of a run: its number, and the parameters as far as a name can hold them."""
    said = "_".join(f"{name}={value}" for name, value in point.items())
    return f"{number:03}_{re.sub(r'[^-+.=,A-Za-z0-9_]+', '', said)[:80]}"


def notebook_rows(
    _: object, parameters: dict[str, object], *, name: str, content: str, profile: str
) -> list[Row]:
    """Run a notebook with these parameters in a folder that is removed afterwards: a row with the
    seconds, what went wrong ("" if nothing did), and its files by name, in base64.
    """
    with tempfile.TemporaryDirectory(prefix="specdec-grid-") as place:
        notebook = Path(place) / name
        notebook.write_text(content, encoding="utf-8")
        run = NotebookRun(notebook, Path(place) / "figures", profile, parameters)
        started = time.monotonic()
        error = run_notebook(run).partition("\n    the run is kept in ")[0]  # it is not
        seconds = round(time.monotonic() - started, 1)
        files = {
            str(path.relative_to(run.figures)): base64.b64encode(path.read_bytes()).decode()
            for path in sorted(run.figures.rglob("*"))
            if path.is_file()
        }
    return [{"error": error, "seconds": seconds, "files": files}]
