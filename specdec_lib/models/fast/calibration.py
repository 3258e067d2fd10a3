"""Which runtime is fastest for a model on this machine: a measurement, kept for the next time."""

import contextlib
import hashlib
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from specdec_lib.core.context import Context
from specdec_lib.core.files import write_whole
from specdec_lib.core.processor import processor_name
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree

ROWS = (1, 8)  # a plain pass, and one over a small tree
REPEATS, WARM_UPS = 9, 2
CONTEXT_TOKENS = 64


def fastest(
    candidates: Mapping[str, LanguageModel],
    *,
    identity: Sequence[str] = (),
    cache: Path,
    clock: Callable[[], float] = time.perf_counter,
) -> str:
    """The candidate with the least median seconds of a pass over one row and one over eight, added
    up; they run in turn, so that a busy machine slows all of them.

    candidates    the same model on several runtimes
    identity      of the model and of the code that runs it
    cache         a JSON file that keeps the answer for this machine, versions and candidates
    """
    runtimes = [f"{name}: {model.runtime}" for name, model in candidates.items()]
    key, known = _key((*runtimes, *identity)), _read(cache)
    if known.get(key) in candidates:
        return known[key]
    seconds = [
        {
            name: sum(_pass_seconds(model, rows, repeat, clock) for rows in ROWS)
            for name, model in candidates.items()
        }
        for repeat in range(WARM_UPS + REPEATS)
    ][WARM_UPS:]
    found = min(candidates, key=lambda name: statistics.median(one[name] for one in seconds))
    for model in candidates.values():
        model.forget()
    with contextlib.suppress(OSError):  # which only costs a measurement next time
        cache.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cache, json.dumps(known | {key: found}, indent=1).encode())
    return found


def _pass_seconds(
    model: LanguageModel, rows: int, repeat: int, clock: Callable[[], float]
) -> float:
    """Seconds of one pass over so many rows, after a context that was read before."""
    size = min(CONTEXT_TOKENS, model.max_positions - rows)
    model.forget()
    start = Context.of([(place + repeat) % model.vocabulary for place in range(size - 1)])
    model.score(start, TokenTree.rooted(start))
    context = start.extended(((size + repeat) % model.vocabulary,))
    tree = TokenTree.rooted(context).grown(
        [token % model.vocabulary for token in range(rows - 1)],
        range(rows - 1),
        source="calibration",
        scores=(1.0,) * (rows - 1),
    )
    began = clock()
    float(model.score(context, tree)[-1, 0])
    return clock() - began


def _key(parts: Sequence[str]) -> str:
    machine = (platform.machine(), processor_name(), str(os.cpu_count()))
    software = (str(torch.get_num_threads()), torch.__version__, version("numba"))
    return hashlib.sha256("\n".join((*machine, *software, *parts)).encode()).hexdigest()[:16]


def _read(cache: Path) -> dict[str, str]:
    """Earlier answers; none if the file is missing or damaged: they are measured again."""
    try:
        known = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
