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
from torch.nn import functional

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
    blocks = [
        (one.weight, one.bias)
        for layer in target.model.model.layers
        for one in layer.modules()
        if isinstance(one, torch.nn.Linear)
    ]
    blocks.append((target.model.lm_head.weight, None))
    given = {rows: [torch.randn(rows, weight.shape[1]) for weight, _ in blocks] for rows in ROWS}
    halves = [(weight.bfloat16(), bias) for weight, bias in blocks]
    half_given = {rows: [x.bfloat16() for x in xs] for rows, xs in given.items()}
    packed = [
        (torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_FOR), bias)
        for weight, bias in blocks
    ]
    pack, form = torch.ops.quantized.linear_prepack, torch.quantize_per_channel
    eights = [
        pack(
            form(
                weight, _scales(weight), torch.zeros(len(weight), dtype=torch.long), 0, torch.qint8
            ),
            bias,
        )
        for weight, bias in blocks
    ]
    return {
        "products: F.linear, float32": lambda rows: [
            functional.linear(x, *block) for x, block in zip(given[rows], blocks, strict=True)
        ],
        "products: F.linear, bfloat16": lambda rows: [
            functional.linear(x, *block) for x, block in zip(half_given[rows], halves, strict=True)
        ],
        f"products: oneDNN, packed for {PACKED_FOR} rows": lambda rows: [
            torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
            for x, (weight, bias) in zip(given[rows], packed, strict=True)
        ],
        "products: int8, dynamic": lambda rows: [
            torch.ops.quantized.linear_dynamic(x, eight, True)
            for x, eight in zip(given[rows], eights, strict=True)
        ],
    }


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


def _scales(weight: Tensor) -> Tensor:
    return weight.abs().amax(1) / 127


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
