"""The compiled passes on as many threads as a model's size makes worthwhile."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import torch
from transformers import PreTrainedModel

from specdec_lib.models.fast import compiled_trees, kernels
from specdec_lib.models.fast.tiles import THREADS

SMALL = 4_000_000  # parameters up to which one thread is best


class CompiledPasses(NamedTuple):
    """One pass, and the passes that grow a tree, on a number of threads."""

    run: Callable[..., Any]
    grow: Callable[..., Any]
    threads: int


def passes_for(model: PreTrainedModel, threads: int) -> CompiledPasses:
    """The compiled passes for a model: on so many threads for a large one."""
    threads = min(threads, THREADS)
    if threads == 1 or model.num_parameters() <= SMALL:
        return CompiledPasses(kernels.one_thread, compiled_trees.grow_on_one_thread, 1)
    _start_threads()
    return CompiledPasses(kernels.many_threads, compiled_trees.grow_on_many_threads, threads)


@functools.cache
def _start_threads() -> None:
    """Start Numba's threads, which sets the number of PyTorch's, and restore that."""
    threads = torch.get_num_threads()
    numba.set_num_threads(THREADS)
    torch.set_num_threads(threads)
