"""`python tests/runtime_candidates.py`: what was tried for the fast CPU runtime, milliseconds per
pass of the embedded target by number of rows.

The products alone (211 of them, 134.5 million weights) in each form that PyTorch has, then whole
passes: as Hugging Face wrote it, and compiled by Numba with weights of 32 and 8 bits. Medians of
repeats in turn.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.latency import time_passes
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.workload import load_ladder

ROWS = (1, 2, 4, 8, 12, 16)
CONTEXT = 256
PACKED_FOR = 8  # rows

Run = Callable[[int], object]


def products(target: CachedModel) -> dict[str, Run]:
    """The linears of the target, one after the other, on random rows."""
    network = target.model
    linears = [one for one in network.model.layers.modules() if isinstance(one, torch.nn.Linear)]
    blocks = [(one.weight, one.bias) for one in (*linears, network.lm_head)]
    given = {rows: [torch.randn(rows, weight.shape[1]) for weight, _ in blocks] for rows in ROWS}
    halves = {rows: [x.bfloat16() for x in xs] for rows, xs in given.items()}

    def run(product: Callable, convert: Callable, given: dict[int, list[Tensor]]) -> Run:
        made = [convert(*block) for block in blocks]
        return lambda rows: list(map(product, given[rows], made))

    pack = torch.ops.mkldnn._reorder_linear_weight
    packed, plain = torch.ops.mkldnn._linear_pointwise, torch.nn.functional.linear
    eight = torch.ops.quantized.linear_dynamic
    return {
        "products: F.linear, float32": run(
            lambda x, made: plain(x, *made), lambda weight, bias: (weight, bias), given
        ),
        "products: F.linear, bfloat16": run(
            lambda x, made: plain(x, *made), lambda weight, bias: (weight.bfloat16(), bias), halves
        ),
        f"products: oneDNN, packed for {PACKED_FOR} rows": run(
            lambda x, made: packed(x, *made, "none", [], ""),
            lambda weight, bias: (pack(weight, PACKED_FOR), bias),
            given,
        ),
        "products: int8, dynamic": run(lambda x, made: eight(x, made, True), _in_int8, given),
    }


def _in_int8(weight: Tensor, bias: Tensor | None) -> object:
    scales, zeros = weight.abs().amax(1) / 127, torch.zeros(len(weight), dtype=torch.long)
    rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rounded, bias)


def models(target: CachedModel) -> list[LanguageModel]:
    """The target as it is, and compiled by Numba with weights of 32 and 8 bits."""
    target.name = "pass: Hugging Face, float32"
    whole = FastModel(target.model, "pass: Numba, weights in float32")
    name = "pass: Numba, int8 (another model)"
    return [target, whole, FastModel(target.model, name, edition="int8")]


def timed(candidates: dict[str, Run], repeats: int) -> dict[str, list[float]]:
    """Median milliseconds by candidate and rows."""
    taken = {(name, rows): [] for name in candidates for rows in ROWS}
    with torch.no_grad():
        for repeat in range(-2, repeats):
            for (name, rows), spent in taken.items():
                began = time.perf_counter()
                candidates[name](rows)
                if repeat >= 0:
                    spent.append(1000 * (time.perf_counter() - began))
    return {name: [statistics.median(taken[name, rows]) for rows in ROWS] for name in candidates}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    np.random.seed(0)
    target = load_ladder(device="cpu").target
    with torch.no_grad():
        candidates = products(target)
    print(
        f"| milliseconds by rows, {given.threads} threads | {' | '.join(map(str, ROWS))} |\n"
        f"|---|{'---|' * len(ROWS)}"
    )
    options = {"repeats": given.repeats, "progress": False}
    table = time_passes(models(target), ROWS, (CONTEXT // 2,), **options)
    whole = {
        name: [1000 * group[group.rows == rows].seconds.median() for rows in ROWS]
        for name, group in table.groupby("model", sort=False)
    }
    for name, row in (timed(candidates, given.repeats) | whole).items():
        print(f"| {name} | {' | '.join(f'{one:.2f}' for one in row)} |")


if __name__ == "__main__":
    main()
