"""What this machine moves and computes at best, by two short kernels, and what bounds a pass."""

import re
import time
import timeit
from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd
import torch

from specdec_lib.core.processor import processor_name
from specdec_lib.measure.sweep.traffic import model_shape
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import Machine, ModelShape, roofline_seconds

COPIED = 64 * 2**20  # numbers: 256 MB in float32, far more than any cache
REPEATS = 7
MULTIPLIED = 1536  # rows and columns of the matrices that are multiplied


def machine_name(device: str = "cpu") -> str:
    """For file names: the GPU, or processor and torch's threads: "amd-epyc-avx2-2-threads"."""
    words = f"{processor_name()} {torch.get_num_threads()} threads"
    if device.startswith("cuda"):
        words = torch.cuda.get_device_name(device)
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def measure_machine() -> Machine:
    """This machine, with the threads that torch has now: bytes read and written per second by the
    fastest copy of a large tensor, operations per second of the fastest product of two matrices in
    float32.
    """
    source = torch.ones(COPIED)
    copied = partial(torch.empty_like(source).copy_, source)
    matrix = torch.ones(MULTIPLIED, MULTIPLIED)
    multiplied = partial(torch.matmul, matrix, matrix, out=torch.empty_like(matrix))
    moved = 2 * source.nbytes / _least_seconds(copied)
    computed = 2 * MULTIPLIED**3 / _least_seconds(multiplied)
    return Machine(machine_name(), moved, computed)


def _least_seconds(run: Callable[[], object]) -> float:
    run()
    return min(timeit.repeat(run, timer=time.perf_counter, repeat=REPEATS, number=1))


def with_roofline(
    table: pd.DataFrame, models: Sequence[CachedModel | FastModel], machine: Machine
) -> pd.DataFrame:
    """The table of `curves` with `roofline_seconds`: weights, keys and values, and activations
    over the bandwidth, or operations over the peak; packed weights have fewer bytes.
    """
    shapes = {(model.name, model.runtime): _shape(model) for model in models}
    places = zip(table.model, table.runtime, table.rows, table.context_tokens, strict=True)
    seconds = [
        roofline_seconds(shapes[model, runtime], machine, rows=rows, context=context)
        for model, runtime, rows, context in places
    ]
    return table.assign(roofline_seconds=seconds)


def _shape(model: CachedModel | FastModel) -> ModelShape:
    size = float(model.model.dtype.itemsize)
    if isinstance(model, FastModel):  # its weights are packed
        width = model.model.config.get_text_config().hidden_size
        size = model.weights.head[0].nbytes / (model.weights.columns * width)
    return model_shape(model, bytes_per_number=size)
