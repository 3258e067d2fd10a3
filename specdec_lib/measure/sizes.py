"""What models of the sizes that people use take on this machine: memory and seconds to load, passes
by rows, and rounds of plain decoding and of a tree of 8. Each model, edition and number of threads
has a process of its own, so that its memory is its own.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import torch

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.machine import machine_name
from specdec_lib.measure.pages import RESULTS, replace_marked
from specdec_lib.measure.shapes import CONFIGS, shaped_model
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.loading import load_model

MEASURED = DATA / "measured"
SHOWN = MEASURED / "sizes_amd-epyc-zen-5-avx512-bf16.csv"  # the table on the page of results
EDITIONS: dict[str, dict[str, Any]] = {  # how `load_model` is asked for them
    "int8": {"runtime": "int8"},
    "exact": {"runtime": "fast"},
    "Hugging Face bfloat16": {"runtime": "reference", "dtype": "bfloat16"},
}
ROWS = (1, 2, 4, 8, 16)
CONTEXT = 100  # tokens before a pass
PASSES, WARM = 7, 2  # timed, and before them
TOKENS = 12  # that plain decoding and a tree write, each
TEXTS = 2
MIB = 2**20
SUMMED = 2**30  # bytes


def measure_sizes(names: Sequence[str], threads: Sequence[int]) -> pd.DataFrame:
    """A row per model, edition and number of threads: model, edition, threads, machine, load (of
    the machine, before); parameters; load_seconds; peak_mib, of the whole process, and edition_mib,
    the weights that a pass reads; sum_ms, in which one thread sums as many bytes of a cold buffer;
    ms_1 to ms_16, the median of a pass over so many rows; and milliseconds of a round of plain
    decoding, greedy and at T = 1, and of a tree of 8 by a one-layer draft of the same shape.
    """
    rows = []
    for name, edition, count in product(names, EDITIONS, threads):
        folder = shaped_model(name)
        asked = {"folder": str(folder), "name": name, "edition": edition, "threads": count}
        command = [sys.executable, "-m", "specdec_lib.measure.sizes", json.dumps(asked)]
        number = {"OMP_NUM_THREADS": str(count), "NUMBA_NUM_THREADS": str(count)}
        made = subprocess.run(command, env=os.environ | number, stdout=subprocess.PIPE, check=True)
        rows.append(json.loads(made.stdout.splitlines()[-1]))
        print(*(f"{key} {value}" for key, value in rows[-1].items()), sep=", ", file=sys.stderr)
    return pd.DataFrame(rows)


def measured_here(folder: Path, name: str, edition: str, threads: int) -> dict[str, Any]:
    """One row of `measure_sizes`, in this process."""
    torch.set_num_threads(threads)
    found: dict[str, Any] = {"model": name, "edition": edition, "threads": threads}
    found |= {"machine": machine_name(), "load": psutil.getloadavg()[0]}
    began = time.perf_counter()
    model = load_model(folder, "target", device="cpu", **EDITIONS[edition])
    found["load_seconds"] = time.perf_counter() - began
    found["parameters"] = sum(map(torch.numel, model.model.parameters()))
    found["peak_mib"] = peak_memory() / MIB
    size = edition_bytes(model)
    found["edition_mib"] = size / MIB
    found["sum_ms"] = 1e3 * seconds_to_sum(size)
    for count in ROWS:
        found[f"ms_{count}"] = 1e3 * pass_seconds(model, count)
    draft = one_layer(model)
    rounds: dict[str, tuple[Draft, Sampler]] = {
        "plain_greedy_ms": (NoDraft(), Sampler(0)),
        "plain_drawn_ms": (NoDraft(), Sampler(1.0)),
        "tree_greedy_ms": (TreeDraft(draft, budget=8, depth=4), Sampler(0)),
        "tree_drawn_ms": (TreeDraft(draft, budget=8, depth=4), Sampler(1.0)),
    }
    for column, (guesser, sampler) in rounds.items():
        found[column] = 1e3 * round_seconds(model, guesser, sampler)
    return found


def stored_place() -> Path:
    """Where this machine's table is stored."""
    return MEASURED / f"sizes_{machine_name().rpartition('-')[0].rpartition('-')[0]}.csv"


def peak_memory() -> int:
    """The most memory that this process had at once, in bytes; 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.is_file() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def edition_bytes(model: CachedModel | FastModel) -> int:
    """The bytes of the weights that a pass over one row reads: all but the token embeddings'."""
    if isinstance(model, FastModel):
        return _array_bytes(model.weights.layers) + _array_bytes(model.weights.head)
    return sum(weights.nbytes for weights in model.model.parameters())  # its head is tied


def _array_bytes(part: Any) -> int:
    return part.nbytes if isinstance(part, np.ndarray) else sum(map(_array_bytes, part))


def seconds_to_sum(size: int) -> float:
    """The median of how long one thread takes to sum a buffer of so many bytes, of which a cache
    holds little; of more than `SUMMED` as many as these take, in proportion.
    """
    summed = min(size, SUMMED)
    buffer = np.ones(summed // 8, np.uint64)
    return _median(lambda _: int(buffer.sum())) * size / summed


def pass_seconds(model: CachedModel | FastModel, rows: int) -> float:
    """The median of a pass's seconds: a new token after a context, and guesses below it."""
    random = np.random.default_rng(0)
    tokens = random.integers(5, model.vocabulary, CONTEXT).tolist()

    def run(number: int) -> None:
        context = Context.of((*tokens, 7 + number))
        tree = TokenTree.rooted(context)
        if rows > 1:
            guesses = [*range(100, 99 + rows)]
            tree = tree.grown(guesses, [0] * len(guesses), source="a", scores=[0.0] * len(guesses))
        model.score(context, tree)

    return _median(run)


def one_layer(model: CachedModel | FastModel) -> CachedModel | FastModel:
    """A draft of the model's first layer, on its runtime and in its edition."""
    config = deepcopy(model.model.config)
    config.num_hidden_layers = 1
    for name in ("layer_types", "no_rope_layers"):
        if getattr(config, name, None):
            setattr(config, name, getattr(config, name)[:1])
    with torch.device("meta"):
        network = type(model.model)(config)
    network.to_empty(device="cpu")
    network.to(dtype=model.model.dtype)  # pyright: ignore[reportCallIssue]  # wrapped
    network.load_state_dict(model.model.state_dict(), strict=False)
    body: Any = network.get_decoder()
    body.rotary_emb = model.model.get_decoder().rotary_emb
    network.tie_weights()
    if isinstance(model, FastModel):
        return FastModel(network, "draft", edition=model.edition)
    return CachedModel(network, "draft")


def round_seconds(model: CachedModel | FastModel, draft: Draft, sampler: Sampler) -> float:
    """The median over a few texts of the seconds of a round after the first, which reads the
    prompt.
    """
    prompt = np.random.default_rng(1).integers(5, model.vocabulary, CONTEXT).tolist()

    def run(number: int) -> float:
        made = decode(model, draft, prompt, Chance(number, sampler), max_new_tokens=TOKENS)
        return float(np.median([played.seconds for played in made.rounds[1:]]))

    return float(np.median([run(number) for number in range(TEXTS)]))


def _median(run: Callable[[int], object]) -> float:
    """The median of the seconds of some runs, the first ones apart."""
    found = []
    for number in range(WARM + PASSES):
        began = time.perf_counter()
        run(number)
        found.append(time.perf_counter() - began)
    return float(np.median(found[WARM:]))


def sizes_page(table: pd.DataFrame) -> str:
    """The table as the page of results shows it."""
    lines = [
        "| model | edition | threads | peak MiB, of which weights | ms by rows: 1, 2, 4, 8, 16 |"
        " 16 ÷ 1 | weights summed, ms | a round at T = 1: plain, tree of 8, ms |",
        f"|{'---|' * 8}",
    ]
    for row in table.to_dict("records"):
        passes = ", ".join(f"{row[f'ms_{count}']:.0f}" for count in ROWS)
        rounds = f"{row['plain_drawn_ms']:.0f}, {row['tree_drawn_ms']:.0f}"
        cells = [
            row["model"],
            row["edition"],
            str(row["threads"]),
            f"{row['peak_mib']:,.0f}, {row['edition_mib']:,.0f}",
            passes,
            f"{row['ms_16'] / row['ms_1']:.1f}",
            f"{row['sum_ms']:.0f}",
            rounds,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def renew_page(place: Path) -> None:
    """Renew the table of the page of results, if that shows the one which was stored there."""
    if place.resolve() == SHOWN.resolve():
        replace_marked("sizes", sizes_page(pd.read_csv(place)), RESULTS)


def shapes_named(models: Sequence[str]) -> list[str]:
    """The names of shapes, all for none.  Raises ValueError for an unknown one."""
    if unknown := [name for name in models if name not in CONFIGS]:
        raise ValueError(f"models are {', '.join(CONFIGS)}, got {', '.join(unknown)}")
    return list(models) or list(CONFIGS)


if __name__ == "__main__":
    print(json.dumps(measured_here(**json.loads(sys.argv[1]))))
