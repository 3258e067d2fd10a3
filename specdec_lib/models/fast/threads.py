"""The compiled calls on one thread or on many: no bit of a result depends on their number."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numba
import torch

from specdec_lib.models.fast import compiled_trees, kernels

SMALL = 16_000_000  # bytes of weights up to which one thread is best


@dataclass(frozen=True)
class Threads:
    """A number of threads, and the compiled pass and growth of a tree on so many."""

    count: int
    run_pass: Callable[..., None]
    grow: Callable[..., tuple]

    @classmethod
    def of(cls, count: int | None, nbytes: int) -> "Threads":
        """At most so many threads; None is PyTorch's number, or one for a small model.  Raises
        ValueError for fewer than one.
        """
        if count is None:
            count = torch.get_num_threads() if nbytes > SMALL else 1
        if count < 1:
            raise ValueError(f"a pass runs on at least 1 thread, got {count}")
        count = min(count, numba.config.NUMBA_NUM_THREADS)
        if count == 1:
            return cls(count, kernels.one_thread, compiled_trees.grow_on_one_thread)
        _start_threads()
        return cls(count, kernels.many_threads, compiled_trees.grow_on_many_threads)

    def start(self) -> float:
        """The time at which a compiled call on these threads begins."""
        if 1 < self.count != numba.get_num_threads():
            numba.set_num_threads(self.count)
        return time.perf_counter()


@functools.cache
def _start_threads() -> None:
    """Start Numba's threads, which sets the number of PyTorch's, and restore that."""
    threads = torch.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    torch.set_num_threads(threads)
