"""An n-gram table as a compressed .npz file of small integers, as byte planes, to pack better."""

import zipfile
import zlib
from collections.abc import Sequence
from io import BufferedIOBase, BytesIO
from pathlib import Path

import numpy as np

from specdec_lib.core.files import write_whole
from specdec_lib.models.katz.counts import MOST_TOKENS, Level, offsets

REMEDY = "`specdec distil ngrams` counts it anew"
MOST_BYTES = 2**28  # the ladder's own table has 4 million
DAMAGE = (
    *(OSError, EOFError, KeyError, ValueError, TypeError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)


def write_stream(stream: BufferedIOBase, levels: Sequence[Level], taken: np.ndarray) -> None:
    """Write a table to an open binary stream; the same table gives the same bytes."""
    arrays = {"order": np.array(len(levels)), "taken": taken, "counts_0": _planes(levels[0].counts)}
    for depth, level in enumerate(levels):
        if depth:
            arrays |= {
                f"tokens_{depth}": _planes(level.tokens),
                f"counts_{depth}": _planes(level.counts),
            }
        if depth + 1 < len(levels):
            arrays |= {
                f"fans_{depth}": _planes(np.diff(level.offsets)),
                f"ends_{depth}": _planes(level.ends),
            }
    np.savez_compressed(stream, allow_pickle=False, **arrays)


def write(path: Path, levels: Sequence[Level], taken: np.ndarray) -> None:
    """Write a table whole or not at all."""
    stream = BytesIO()
    write_stream(stream, levels, taken)
    write_whole(path, stream.getvalue())


def read(path: Path) -> tuple[tuple[Level, ...], np.ndarray]:
    """The levels and taken counts of a table file.  Raises ValueError if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            _check_unpacked(arrays)
            levels = tuple(_level(arrays, depth) for depth in range(int(arrays["order"])))
            taken = arrays["taken"]
    except FileNotFoundError as missing:
        raise ValueError(f"no n-gram table at {path}: {REMEDY}") from missing
    except DAMAGE as damage:
        raise ValueError(f"the n-gram table {path} is damaged ({damage}): {REMEDY}") from damage
    for depth, level in enumerate(levels):
        following = len(levels[depth + 1]) if depth + 1 < len(levels) else 0
        if not (
            len(level.counts) == len(level.ends) == len(level)
            and level.offsets[-1] == following
            and len(taken) == len(levels) - 1
        ):
            damage = f"its arrays do not fit each other at level {depth}"
            raise ValueError(f"the n-gram table {path} is damaged ({damage}): {REMEDY}")
    return levels, taken


def _check_unpacked(arrays: "np.lib.npyio.NpzFile") -> None:
    unpacked = sum(member.file_size for member in arrays.zip.infolist())
    if unpacked > MOST_BYTES:
        raise ValueError(f"it unpacks to {unpacked:,} bytes, allowed are {MOST_BYTES:,}")
    if (tokens := arrays["counts_0"].shape[-1]) > MOST_TOKENS:
        raise ValueError(f"it has {tokens:,} tokens, allowed are {MOST_TOKENS:,}")


def _level(arrays: "np.lib.npyio.NpzFile", depth: int) -> Level:
    counts = _whole(arrays[f"counts_{depth}"]).astype(np.int64)
    nothing = np.zeros(len(counts), np.int64)
    tokens = _whole(arrays[f"tokens_{depth}"]) if depth else np.arange(len(counts))
    last = depth + 1 == int(arrays["order"])
    fans = nothing if last else _whole(arrays[f"fans_{depth}"])
    return Level(
        tokens.astype(np.int32),
        counts,
        nothing if last else _whole(arrays[f"ends_{depth}"]).astype(np.int64),
        offsets(fans),
    )


def _planes(values: np.ndarray) -> np.ndarray:
    small = values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
    return np.ascontiguousarray(small.view(np.uint8).reshape(len(small), small.itemsize).T)


def _whole(planes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(planes.T).view(f"<u{len(planes)}").reshape(-1)
