"""What this machine moves and computes at best, by two short kernels, and what a pass would take if
nothing else bounded it.
"""

import platform
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.race.contenders import Clock
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import Machine, ModelShape, roofline_seconds

if TYPE_CHECKING:
    from pandas import DataFrame

COPIED = 64 * 2**20  # numbers: 256 MB in float32, far more than any cache
MULTIPLIED = 1536  # rows and columns of the matrices that are multiplied


def machine_name(device: str = "cpu") -> str:
    """A name for file names: of the GPU if the models are on one, else of the processor, with
    torch's threads: "amd-epyc-2-threads".
    """
    words = (
        torch.cuda.get_device_name(device)
        if device.startswith("cuda")
        else f"{_processor()} {torch.get_num_threads()} threads"
    )
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    found = (
        re.search(r"^model name\s*:\s*(.+)$", cpus.read_text(encoding="utf-8"), re.MULTILINE)
        if cpus.is_file()
        else None
    )
    return found.group(1) if found else platform.processor() or platform.machine()


def copy_bandwidth(
    *, repeats: Integral = 7, device: str = "cpu", clock: Clock = time.perf_counter
) -> float:
    """Bytes per second, read and written, of the fastest of some copies of a tensor that fits into
    no cache.
    """
    source = torch.ones(COPIED, device=device)
    to = torch.empty_like(source)
    seconds = _least_seconds(lambda: to.copy_(source), int(repeats), device, clock)
    return 2 * source.nbytes / seconds


def peak_flops(
    *, repeats: Integral = 7, device: str = "cpu", clock: Clock = time.perf_counter
) -> float:
    """Operations per second of the fastest of some products of two large matrices in float32."""
    matrix = torch.ones(MULTIPLIED, MULTIPLIED, device=device)
    to = torch.empty_like(matrix)
    multiply = partial(torch.matmul, matrix, matrix, out=to)
    return 2 * MULTIPLIED**3 / _least_seconds(multiply, int(repeats), device, clock)


def measure_machine(*, repeats: Integral = 7, device: str = "cpu") -> Machine:
    """This machine by `copy_bandwidth` and `peak_flops`, with the threads that torch has now."""
    kernels = {"repeats": repeats, "device": device}
    return Machine(machine_name(device), copy_bandwidth(**kernels), peak_flops(**kernels))


def with_roofline(
    table: "DataFrame", models: Sequence[LanguageModel], machine: Machine
) -> "DataFrame":
    """The table of `curves` with `roofline_seconds`: weights, keys and values, and activations over
    the bandwidth, or operations over the peak.

    models    those of the table; a number has as many bytes as in the model's weights, packed ones
              where it has them

    Raises ValueError if a model of the table is not among them, or is no Hugging Face decoder.
    """
    shapes = {(model.name, model.runtime): _shape(model) for model in models}
    seconds = []
    for row in table.fillna({"runtime": ""}).itertuples():
        if (row.model, row.runtime) not in shapes:
            raise ValueError(
                f"{row.model} ({row.runtime}) was timed and is not among"
                f" {', '.join(name for name, _ in shapes)}"
            )
        shape = shapes[row.model, row.runtime]
        seconds.append(roofline_seconds(shape, machine, rows=row.rows, context=row.context_tokens))
    return table.assign(roofline_seconds=seconds)


def _shape(model: LanguageModel) -> ModelShape:
    if not isinstance(model, CachedModel | FastModel):
        raise ValueError(
            f"a roofline needs a Hugging Face decoder, {model.name} is a {type(model).__name__}"
        )
    config, size = model.model.config.get_text_config(), float(model.model.dtype.itemsize)
    if isinstance(model, FastModel):  # its weights are packed
        size = model.weights.head[0].nbytes / (model.vocabulary * config.hidden_size)
    return ModelShape(config.num_hidden_layers, config.hidden_size, model.vocabulary, size)


def _least_seconds(run: Callable[[], object], repeats: int, device: str, clock: Clock) -> float:
    if repeats < 1:
        raise ValueError(f"a peak is the best of at least 1 repeat, got {repeats}")
    least = float("inf")
    for repeat in range(-1, repeats):
        started = clock()
        run()
        if device != "cpu":
            torch.cuda.synchronize()
        seconds = clock() - started
        least = min(least, seconds) if repeat >= 0 else least
    return least
