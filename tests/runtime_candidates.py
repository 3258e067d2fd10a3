"""`python tests/runtime_candidates.py`: what was tried for the fast CPU runtime, milliseconds per
pass of the embedded target by number of rows.

The products alone (211 of them, 134.5 million weights) in each form that PyTorch has, then whole
passes: as Hugging Face wrote it, and compiled by Numba with weights of 32 and 8 bits. Medians of
repeats in turn.
"""

import argparse
import time
from collections.abc import Callable
from itertools import product

import pandas as pd
import torch
from torch import Tensor

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

    def run(multiply: Callable, convert: Callable, given: dict[int, list[Tensor]]) -> Run:
        made = [convert(*block) for block in blocks]
        return lambda rows: list(map(multiply, given[rows], made))

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


def timed(candidates: dict[str, Run], repeats: int) -> pd.DataFrame:
    """Seconds of every candidate and number of rows, in turn."""
    found = []
    with torch.no_grad():
        for _, (name, run), rows in product(range(repeats), candidates.items(), ROWS):
            began = time.perf_counter()
            run(rows)
            seconds = time.perf_counter() - began
            found.append({"model": name, "rows": rows, "seconds": seconds})
    return pd.DataFrame(found)


def main() -> None:
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shown)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    target = load_ladder(device="cpu").target
    with torch.no_grad():
        tables = [timed(products(target), given.repeats)]
    target.name = "pass: Hugging Face, float32"
    whole = FastModel(target.model, "pass: Numba, weights in float32")
    other = FastModel(target.model, "pass: Numba, int8 (another model)", edition="int8")
    options = {"repeats": given.repeats, "progress": False}
    tables.append(time_passes([target, whole, other], ROWS, (CONTEXT // 2,), **options))
    medians = pd.concat(tables).groupby(["model", "rows"], sort=False).seconds.median()
    print(f"milliseconds by rows, {given.threads} threads")
    print((1000 * medians).round(2).unstack().to_string())


if __name__ == "__main__":
    main()
