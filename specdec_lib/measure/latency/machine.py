"""What this machine moves and computes at best, by two short kernels, and what a pass would take if
nothing else bounded it.
"""

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.processor import processor_name
from specdec_lib.measure.race.contenders import Clock
from specdec_lib.measure.sweep.traffic import model_shape
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import Machine, ModelShape, roofline_seconds

if TYPE_CHECKING:
    from pandas import DataFrame

COPIED = 64 * 2**20  # numbers: 256 MB in float32, far more than any cache
MULTIPLIED = 1536  # rows and columns of the matrices that are multiplied


def machine_name(device: str = "cpu") -> str:
    """A name for file names: of the GPU if the models are on one, else of the processor, with
    torch's threads: "amd-epyc-avx2-2-threads".
    """
    words = (
        torch.cuda.get_device_name(device)
        if device.startswith("cuda")
        else f"{processor_name()} {torch.get_num_threads()} threads"
    )
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def measure_machine(*, repeats: Integral = 7, clock: Clock = time.perf_counter) -> Machine:
    """This machine, with the threads that torch has now: bytes read and written per second by the
    fastest copy of a tensor that fits into no cache, and operations per second of the fastest
    product of two large matrices in float32.
    """
    source = torch.ones(COPIED)
    copied = partial(torch.empty_like(source).copy_, source)
    matrix = torch.ones(MULTIPLIED, MULTIPLIED)
    multiplied = partial(torch.matmul, matrix, matrix, out=torch.empty_like(matrix))
    moved = 2 * source.nbytes / _least_seconds(copied, int(repeats), clock)
    computed = 2 * MULTIPLIED**3 / _least_seconds(multiplied, int(repeats), clock)
    return Machine(machine_name(), moved, computed)


def _least_seconds(run: Callable[[], object], repeats: int, clock: Clock) -> float:
    run()
    found = []
    for _ in range(repeats):
        started = clock()
        run()
        found.append(clock() - started)
    return min(found)


def with_roofline(
    table: "DataFrame", models: Sequence[CachedModel | FastModel], machine: Machine
) -> "DataFrame":
    """The table of `curves` of these models with `roofline_seconds`: weights, keys and values, and
    activations over the bandwidth, or operations over the peak.

    A number has as many bytes as in the model's weights, packed ones where it has them.
    """
    shapes = {(model.name, model.runtime): _shape(model) for model in models}
    seconds = [
        roofline_seconds(
            shapes[row.model, row.runtime], machine, rows=row.rows, context=row.context_tokens
        )
        for row in table.itertuples()
    ]
    return table.assign(roofline_seconds=seconds)


def _shape(model: CachedModel | FastModel) -> ModelShape:
    size = float(model.model.dtype.itemsize)
    if isinstance(model, FastModel):  # its weights are packed
        width = model.model.config.get_text_config().hidden_size
        size = model.weights.head[0].nbytes / (model.weights.columns * width)
    return model_shape(model, bytes_per_number=size)
