"""Which runtime is fastest for a model on this machine: a short measurement, kept for the next
time.

What wins depends on the processor and on how large the model is: a second thread halves a large
model's pass and slows a small one's.
"""

import hashlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree

ROWS = (1, 8)  # a plain pass, and one over a small tree
REPEATS, WARM_UPS = 9, 2
CONTEXT_TOKENS = 64

Clock = Callable[[], float]


def fastest(
    candidates: Mapping[str, LanguageModel],
    *,
    cache: Path | None = None,
    clock: Clock = time.perf_counter,
) -> str:
    """The candidate whose passes over one row and over eight take the least time together, in
    medians of turns.

    candidates    the same model on several runtimes, by what runs; asked in turn, so that a busy
                  machine slows all of them
    cache         a JSON file that keeps the answer for this machine, these versions and these
                  candidates

    Raises ValueError if there is no candidate.
    """
    if not candidates:
        raise ValueError("a calibration needs at least one runtime to choose from, got none")
    key = _key(candidates)
    known = _read(cache).get(key)
    if known in candidates:
        return known
    taken: dict[tuple[str, int], list[float]] = {
        (name, rows): [] for name in candidates for rows in ROWS
    }
    for repeat in range(REPEATS + WARM_UPS):
        for (name, rows), seconds in taken.items():
            spent = _pass_seconds(candidates[name], rows, repeat, clock)
            if repeat >= WARM_UPS:
                seconds.append(spent)
    found = min(
        candidates, key=lambda name: sum(statistics.median(taken[name, rows]) for rows in ROWS)
    )
    for model in candidates.values():
        model.forget()
    if cache is not None:
        _write(cache, _read(cache) | {key: found})
    return found


def _pass_seconds(model: LanguageModel, rows: int, repeat: int, clock: Clock) -> float:
    """One pass over so many rows, after a context that is read before the clock starts.

    Raises ValueError where so many do not fit.
    """
    size = min(CONTEXT_TOKENS, model.max_positions - rows)
    if size < 2:
        raise ValueError(
            f"a calibration needs {max(ROWS) + 2} positions, {model.name} has {model.max_positions}"
        )
    model.forget()
    start = Context.of([(place + repeat) % model.vocabulary for place in range(size - 1)])
    model.score(start, TokenTree.rooted(start))
    context = start.extended(((size + repeat) % model.vocabulary,))
    tree = TokenTree.rooted(context)
    tree = tree.grown(
        [token % model.vocabulary for token in range(rows - 1)],
        range(rows - 1),
        source="made up",
        scores=(1.0,) * (rows - 1),
    )
    began = clock()
    float(model.score(context, tree)[-1, 0])
    return clock() - began


def _key(candidates: Mapping[str, LanguageModel]) -> str:
    """What the answer depends on: the machine, the versions, and the sizes of the model."""
    code = [
        f"{getattr(model, 'runtime', '')} {getattr(model, 'edition', '')}"
        for model in candidates.values()
    ]
    sizes = [
        repr(getattr(getattr(model, "model", None), "config", model.name))
        for model in candidates.values()
    ][:1]
    parts = [
        platform.machine(),
        _processor(),
        str(os.cpu_count()),
        str(torch.get_num_threads()),
        *map(_version, ("torch", "numba")),
        *candidates,
        *code,
        *sizes,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _processor() -> str:
    """The processor's own name where the system tells it."""
    try:
        lines: Sequence[str] = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.processor(),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _read(cache: Path | None) -> dict[str, str]:
    """What was found before; nothing where the file is missing or damaged, because it can be
    measured again.
    """
    try:
        known = json.loads(cache.read_text(encoding="utf-8")) if cache is not None else {}
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(cache: Path, known: Mapping[str, str]) -> None:
    """Whole or not at all; a folder that cannot be written to costs a measurement the next time, no
    more.
    """
    partial = cache.with_suffix(f".{os.getpid()}.partial")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known, indent=1), encoding="utf-8")
        os.replace(partial, cache)
    except OSError:
        partial.unlink(missing_ok=True)
