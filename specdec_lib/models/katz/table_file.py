"""An n-gram table as a compressed .npz file of small integers, as byte planes, to pack better."""

import zipfile
import zlib
from collections.abc import Sequence
from io import BytesIO
from itertools import zip_longest
from pathlib import Path

import numpy as np

from specdec_lib.models.katz.counts import MOST_TOKENS, Level, offsets

REMEDY = "`specdec distil ngrams` counts it anew"
MOST_BYTES = 2**28  # the ladder's own table has 4 million
DAMAGE = (
    *(OSError, EOFError, KeyError, ValueError, TypeError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)


def packed(levels: Sequence[Level], taken: np.ndarray) -> bytes:
    """The content of a table's file; the same table gives the same bytes."""
    arrays = {"order": np.array(len(levels)), "taken": taken}
    for depth, level in enumerate(levels):
        if depth:
            arrays[f"tokens_{depth}"] = _planes(level.tokens)
        arrays[f"counts_{depth}"] = _planes(level.counts)
        if depth + 1 < len(levels):
            arrays[f"fans_{depth}"] = _planes(np.diff(level.offsets))
            arrays[f"ends_{depth}"] = _planes(level.ends)
    stream = BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def read(path: Path) -> tuple[tuple[Level, ...], np.ndarray]:
    """The levels and taken counts of a table file.  Raises ValueError if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            _check_unpacked(arrays)
            levels = tuple(_level(arrays, depth) for depth in range(int(arrays["order"])))
            taken = arrays["taken"]
        for depth, (level, following) in enumerate(zip_longest(levels, levels[1:], fillvalue=())):
            lengths = {len(level.counts), len(level.ends), len(level)}
            fitting = len(lengths) == 1 and level.offsets[-1] == len(following)
            if not fitting or len(taken) != len(levels) - 1:
                raise ValueError(f"its arrays do not fit each other at level {depth}")
    except FileNotFoundError as missing:
        raise ValueError(f"no n-gram table at {path}: {REMEDY}") from missing
    except DAMAGE as damage:
        raise ValueError(f"the n-gram table {path} is damaged ({damage}): {REMEDY}") from damage
    return levels, taken


def _check_unpacked(arrays: "np.lib.npyio.NpzFile") -> None:
    unpacked = sum(member.file_size for member in arrays.zip.infolist())
    if unpacked > MOST_BYTES:
        raise ValueError(f"it unpacks to {unpacked:,} bytes, allowed are {MOST_BYTES:,}")
    if (tokens := arrays["counts_0"].shape[-1]) > MOST_TOKENS:
        raise ValueError(f"it has {tokens:,} tokens, allowed are {MOST_TOKENS:,}")


def _level(arrays: "np.lib.npyio.NpzFile", depth: int) -> Level:
    counts = _whole(arrays[f"counts_{depth}"]).astype(np.int64)
    tokens = _whole(arrays[f"tokens_{depth}"]) if depth else np.arange(len(counts))
    fans = ends = np.zeros(len(counts), np.int64)
    if depth + 1 < int(arrays["order"]):
        fans, ends = (_whole(arrays[f"{name}_{depth}"]) for name in ("fans", "ends"))
    return Level(tokens.astype(np.int32), counts, ends.astype(np.int64), offsets(fans))


def _planes(values: np.ndarray) -> np.ndarray:
    small = values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
    return np.ascontiguousarray(small.view(np.uint8).reshape(len(small), small.itemsize).T)


def _whole(planes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}").reshape(-1)
