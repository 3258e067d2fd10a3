"""What the measurements share: devices and their peaks, models of given shapes, timing, and tables that keep what was measured."""

import argparse
import csv
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from transformers import GPT2LMHeadModel

from specdec_lib.bench.table import versions, write
from specdec_lib.ladder.training import Recipe, build
from specdec_lib.latency import machine_name
from specdec_lib.theory import Machine, ModelShape
from specdec_lib.workload import DATA, DTYPES

VOCABULARY = 50257  # GPT-2's, to which the vocabulary of 4,096 tokens is padded: a head of the paper's size
SHAPES = {  # layers, width, heads
    "target": (36, 1280, 20),  # GPT-2 large
    "draft of 2 layers": (2, 640, 10),
    "draft of 5 layers": (5, 512, 8),
    "draft of 8 layers": (8, 448, 7),
}
TINY = {"target": (3, 32, 2), "draft of 2 layers": (2, 16, 2), "draft of 5 layers": (2, 16, 2), "draft of 8 layers": (2, 16, 2)}
MULTIPLIED, TINY_MULTIPLIED = 8192, 128
COPIED, TINY_COPIED = 2**30, 2**18  # bytes

Row = dict[str, object]


def parser(name: str, description: str) -> argparse.ArgumentParser:
    """What every command takes."""
    made = argparse.ArgumentParser(prog=f"python -m specdec_lib.gpu.{name}", description=description)
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--folder", type=Path, help="where the table goes: data/measured, or for --tiny a temporary folder")
    made.add_argument("--tiny", action="store_true", help="tiny models and few repeats: shows that it runs")
    return made


def table_path(given: argparse.Namespace, kind: str) -> Path:
    """Where the table of this kind, machine and size goes."""
    folder = given.folder or (Path(tempfile.gettempdir()) / "specdec-tiny" if given.tiny else DATA / "measured")
    return folder / f"{kind}_{machine_name(given.device)}.csv"


def recipe(name: str, *, tiny: bool, positions: int, vocabulary: int = VOCABULARY) -> Recipe:
    """The shape of one of the models, with nothing to train on."""
    layers, width, heads = (TINY if tiny else SHAPES)[name]
    return Recipe(layers, width, heads, tokens=0, positions=positions, vocabulary=vocabulary)


def random_model(shape: Recipe, device: str, dtype: str) -> GPT2LMHeadModel:
    """A model of this shape with random weights, made where it is to run."""
    with torch.device(device):
        return build(shape).to(DTYPES[dtype]).eval()


def wait(device: str) -> None:
    """Until the device has done what was asked of it."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def seconds_of(runs: Mapping[str, Callable[[], object]], device: str, *, repeats: int, inner: int = 1) -> dict[str, list[float]]:
    """Seconds of each run, `inner` of them between two looks at the clock; everybody in turn, after one turn that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(-1, repeats):
        for name, run in runs.items():
            wait(device)
            started = time.perf_counter()
            for _ in range(inner):
                run()
            wait(device)
            if repeat >= 0:
                found[name].append((time.perf_counter() - started) / inner)
    return found


def spread(seconds: Sequence[float]) -> Row:
    """The median and the quartiles."""
    low, middle, high = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else (seconds[0],) * 3
    return {"seconds": middle, "low_seconds": low, "high_seconds": high, "repeats": len(seconds)}


def peaks(device: str, dtype: str, *, tiny: bool) -> Machine:
    """This machine by a long copy and a large product."""
    side, copied = (TINY_MULTIPLIED, TINY_COPIED) if tiny else (MULTIPLIED, COPIED)
    source = torch.ones(copied, dtype=torch.uint8, device=device)
    matrix = torch.ones(side, side, dtype=DTYPES[dtype], device=device)
    to, product = torch.empty_like(source), torch.empty_like(matrix)
    runs = {"copy": lambda: to.copy_(source), "product": lambda: torch.matmul(matrix, matrix, out=product)}
    seconds = {name: min(found) for name, found in seconds_of(runs, device, repeats=5, inner=4).items()}
    return Machine(machine_name(device), 2 * copied / seconds["copy"], 2 * side**3 / seconds["product"])


def shape_of(model: GPT2LMHeadModel) -> ModelShape:
    """What theory charges a pass of this model for."""
    config = model.config
    return ModelShape(config.n_layer, config.n_embd, config.vocab_size, float(model.dtype.itemsize))


class Kept:
    """A table in a file that grows while it is measured: whole at any time, and what it holds is not measured again.

    keys    the columns that name a row
    """

    def __init__(self, path: Path, columns: Sequence[str], keys: Sequence[str]) -> None:
        self.path, self.columns, self._keys = path, (*columns, "machine", "versions"), keys
        self.rows: list[Row] = []
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))

    def has(self, **key: object) -> bool:
        """Whether rows of this key are there."""
        return any(all(str(row[name]) == str(value) for name, value in key.items()) for row in self.rows)

    def add(self, rows: Sequence[Row], device: str) -> None:
        """Write these rows, in place of those of the same keys."""
        added = [row | {"machine": machine_name(device), "versions": versions()} for row in rows]
        names = {tuple(str(row[key]) for key in self._keys) for row in added}
        self.rows = [row for row in self.rows if tuple(str(row[key]) for key in self._keys) not in names] + added
        write(self.path, self.rows, self.columns)


def show(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Some columns of a table, for a terminal."""
    lines = [list(columns)] + [[_short(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _short(value: object) -> str:
    try:
        number = float(str(value))
    except ValueError:
        return str(value)
    if math.isnan(number):
        return ""
    return str(int(number)) if number.is_integer() and abs(number) < 1e6 else f"{number:.4g}"
