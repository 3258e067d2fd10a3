"""An n-gram table as a compressed .npz file of small integers, as byte planes, to pack better."""

from collections.abc import Sequence
from io import BytesIO
from itertools import zip_longest
from pathlib import Path

import numpy as np

from specdec_lib.models.katz.counts import Level


def packed(levels: Sequence[Level], taken: np.ndarray) -> bytes:
    """The content of a table's file; the same table gives the same bytes."""
    arrays = {"order": np.array(len(levels)), "taken": taken}
    for depth, (level, longer) in enumerate(zip_longest(levels, levels[1:])):
        if depth:
            arrays[f"tokens_{depth}"] = _planes(level.tokens)
        arrays[f"counts_{depth}"] = _planes(level.counts)
        if longer is not None:
            arrays[f"fans_{depth}"] = _planes(level.fans(longer))
            arrays[f"ends_{depth}"] = _planes(level.ends)
    stream = BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def read(path: Path) -> tuple[tuple[Level, ...], np.ndarray]:
    """The levels and taken counts of a table file.  Raises ValueError if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _levels(arrays, int(arrays["order"])), arrays["taken"]
    except Exception as damage:  # of numpy, the zip file or its compression
        remedy = "`specdec distil ngrams` counts it anew"
        problem = f"the n-gram table {path} is missing or damaged ({damage})"
        raise ValueError(f"{problem}: {remedy}") from damage


def _levels(arrays: "np.lib.npyio.NpzFile", order: int) -> tuple[Level, ...]:
    if order < 1:
        raise ValueError(f"it has {order} levels")
    levels: list[Level] = []
    for depth in range(order):
        counts = _whole(arrays[f"counts_{depth}"]).astype(np.int64)
        tokens, parents = np.arange(len(counts), dtype=np.int32), np.zeros(len(counts), np.int64)
        if depth:
            tokens = _whole(arrays[f"tokens_{depth}"]).astype(np.int32)
            parents = np.repeat(np.arange(len(levels[-1])), _whole(arrays[f"fans_{depth - 1}"]))
        last = depth + 1 == order
        ends = np.zeros(len(counts)) if last else _whole(arrays[f"ends_{depth}"])
        if len({len(tokens), len(counts), len(ends), len(parents)}) > 1:
            raise ValueError(f"its arrays do not fit each other at level {depth}")
        levels.append(Level(tokens, counts, ends.astype(np.int64), parents))
    return tuple(levels)


def _planes(values: np.ndarray) -> np.ndarray:
    small = values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
    return np.ascontiguousarray(small.view(np.uint8).reshape(len(small), small.itemsize).T)


def _whole(planes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}").reshape(-1)
