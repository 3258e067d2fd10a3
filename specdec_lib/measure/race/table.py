"""The benchmark's table: every method against every baseline, as total time per token ÷ total time
per token.
"""

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import transformers

from specdec_lib.core.files import write_whole
from specdec_lib.measure.intervals import paired_bootstrap
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.harness import Timing
from specdec_lib.measure.race.hugging import HF

if TYPE_CHECKING:
    from pandas import DataFrame

SETS = ("all", "not looping")
COLUMNS = """method baseline temperature top_k prompt_set prompts repetition
    ratio ratio_low ratio_high geometric_mean chosen
    tokens_per_round tokens_per_second ms_per_token least_ms_per_token
    new_tokens divergences margin runtime setting baseline_runtime
    baseline_setting load machine threads versions""".split()
PER_PROMPT = """method runtime temperature top_k prompt tokens timed_tokens
    seconds least_seconds rounds repetition margin load""".split()
KEY = ["method", "runtime"]


def ratio_table(timings: Sequence[Timing], chosen: Mapping[float, str]) -> "DataFrame":
    """A row per method, runtime, baseline, sampler and prompt set; of the autoregressive contenders
    the fastest, of whatever runtime, is that baseline.

    chosen    per temperature, which of the finalists was fastest on development prompts

    Raises ValueError if a contender lacks a prompt that another has.
    """
    import pandas as pd

    found = []
    for temperature, own in pd.DataFrame(map(asdict, timings)).groupby("temperature"):
        for name in SETS:
            kept = own if name == "all" else own[~own.loops]
            for row in _rows(kept.sort_values("prompt", kind="stable")):
                mark = row["method"] == chosen.get(temperature)
                found.append({"prompt_set": name, "chosen": mark} | row)
    return pd.DataFrame(found)


def write_table(path: Path, table: "DataFrame", columns: Sequence[str]) -> None:
    """Write a CSV file, whole or not at all; numbers have six digits, NaN is empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    form = {"index": False, "float_format": "%.6g", "lineterminator": "\r\n"}
    write_whole(path, table.to_csv(columns=list(columns), **form).encode())


def where() -> dict[str, object]:
    """What the times depend on besides the machine: threads and versions, as columns."""
    versions = (
        f"python {platform.python_version()}, torch {torch.__version__},"
        f" transformers {transformers.__version__}"
    )
    return {"threads": torch.get_num_threads(), "versions": versions}


def _rows(timings: "DataFrame") -> Iterator[dict[str, object]]:
    contenders = dict(list(timings.groupby(KEY, sort=False)))
    most = max(map(len, contenders.values()), default=0)
    for key, own in contenders.items():
        if len(own) != most:
            raise ValueError(
                f"{', '.join(key)} has {len(own)} prompts, another contender {most}: ratios are"
                " paired"
            )
    plain = [key for key in contenders if key[0] == AUTOREGRESSIVE]
    fastest = min(plain, key=lambda key: _per_token(contenders[key]), default=None)
    for key, own in contenders.items():
        for other, base in contenders.items():
            if other[0] in HF or other == fastest:
                yield dict(zip(KEY, key, strict=True)) | {"baseline": other[0]} | _row(own, base)


def _row(own: "DataFrame", base: "DataFrame") -> dict[str, object]:
    columns = (base.seconds, base.timed_tokens, own.seconds, own.timed_tokens)
    ratio, low, high = paired_bootstrap(*columns)
    a, b, c, d = (column.to_numpy(float) for column in columns)
    both = (b > 0) & (d > 0)
    logs, ms = np.log(a[both] * d[both] / (c[both] * b[both])), 1000 * _per_token(own)
    first, timed = own.iloc[0], own.timed_tokens.sum()
    return {
        "temperature": first.temperature,
        "top_k": first.top_k,
        "prompts": len(own),
        "repetition": float(np.average(own.repetition, weights=own.tokens)),
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "geometric_mean": math.exp(logs.mean()) if len(logs) else math.nan,
        "tokens_per_round": own.tokens.sum() / own["rounds"].sum(),
        "tokens_per_second": 1000 / ms,
        "ms_per_token": ms,
        "least_ms_per_token": 1000 * own.least_seconds.sum() / timed,
        "new_tokens": own.tokens.sum(),
        "divergences": own.margin.notna().sum(),
        "margin": own.margin.max(),
        "setting": first.setting,
        "baseline_runtime": base.iloc[0].runtime,
        "baseline_setting": base.iloc[0].setting,
        "load": own.load.mean(),
    }


def _per_token(timings: "DataFrame") -> float:
    return timings.seconds.sum() / timings.timed_tokens.sum()
