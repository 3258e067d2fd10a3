"""Timings in, the bench's table out: every method against every baseline, as total time per token ÷
total time per token.
"""

import csv
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import torch
import transformers

from specdec_lib.measure.intervals import paired_bootstrap
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, BASELINES
from specdec_lib.measure.race.pairing import Timing

SETS = ("all", "not looping")
COLUMNS = (
    "method", "baseline", "temperature", "top_k", "prompt_set", "prompts", "repetition", "ratio", "ratio_low", "ratio_high",
    "geometric_mean", "chosen", "tokens_per_round", "tokens_per_second", "ms_per_token", "least_ms_per_token", "peak_bytes", "allowed_bytes",
    "new_tokens", "divergences", "margin", "runtime", "setting", "baseline_runtime", "baseline_setting", "load", "machine", "threads", "versions",
)  # fmt: skip

RAW = tuple(field.name for field in fields(Timing) if field.name != "setting")

Row = dict[str, object]
Memory = Mapping[tuple[str, str], tuple[int, int]]  # peak and allowed bytes by method and runtime


def rows(
    timings: Sequence[Timing],
    looping: Mapping[float, frozenset[str]],
    *,
    chosen: Mapping[float, str],
    memory: Memory,
) -> list[Row]:
    """A row per method, runtime, baseline, sampler and prompt set; the fastest autoregressive
    contender of any runtime is that baseline.

    looping    per temperature, the prompts whose text loops
    chosen     per temperature, which of staged and cascade was faster on development prompts
    memory     what is known of it; the rest is NaN

    Raises ValueError if a contender lacks a prompt that another has.
    """
    found = []
    for temperature in sorted({timing.temperature for timing in timings}):
        own = [timing for timing in timings if timing.temperature == temperature]
        for name in SETS:
            kept = [
                timing
                for timing in own
                if name == "all" or timing.prompt not in looping[temperature]
            ]
            for row in _set(_by_contender(kept)) if kept else ():
                peak, allowed = memory.get((row["method"], row["runtime"]), (math.nan, math.nan))
                found.append(
                    row
                    | {
                        "prompt_set": name,
                        "peak_bytes": peak,
                        "allowed_bytes": allowed,
                        "chosen": row["method"] == chosen.get(temperature),
                    }
                )
    return found


def _set(contenders: Mapping[tuple[str, str], Sequence[Timing]]) -> Iterable[Row]:
    plain = [key for key in contenders if key[0] == AUTOREGRESSIVE]
    fastest = min(plain, key=lambda key: per_token(contenders[key]), default=None)
    for method, own in contenders.items():
        for other, base in contenders.items():
            if other[0] in BASELINES and (other[0] != AUTOREGRESSIVE or other == fastest):
                yield _row(own, base) | {
                    "method": method[0],
                    "runtime": method[1],
                    "baseline": other[0],
                }


def _row(own: Sequence[Timing], base: Sequence[Timing]) -> Row:
    sides = [
        [[one.seconds for one in side], [one.timed_tokens for one in side]] for side in (base, own)
    ]
    ratio, low, high = paired_bootstrap(*sides[0], *sides[1])
    logs = [
        math.log(theirs.seconds * ours.timed_tokens / (ours.seconds * theirs.timed_tokens))
        for ours, theirs in zip(own, base, strict=True)
        if ours.timed_tokens and theirs.timed_tokens
    ]
    margins = [one.margin for one in own if not math.isnan(one.margin)]
    ms = 1000 * per_token(own)
    return {
        "temperature": own[0].temperature,
        "top_k": own[0].top_k,
        "prompts": len(own),
        "repetition": float(
            np.average([one.repetition for one in own], weights=[one.tokens for one in own])
        ),
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "geometric_mean": math.exp(sum(logs) / len(logs)) if logs else math.nan,
        "tokens_per_round": sum(one.tokens for one in own) / sum(one.rounds for one in own),
        "tokens_per_second": 1000 / ms,
        "ms_per_token": ms,
        "least_ms_per_token": 1000
        * sum(one.least_seconds for one in own)
        / sum(one.timed_tokens for one in own),
        "new_tokens": sum(one.tokens for one in own),
        "divergences": len(margins),
        "margin": max(margins, default=math.nan),
        "setting": own[0].setting,
        "baseline_runtime": base[0].runtime,
        "baseline_setting": base[0].setting,
        "load": sum(one.load for one in own) / len(own),
    }


def per_token(timings: Sequence[Timing]) -> float:
    """Seconds per timed token, over all prompts together."""
    return sum(one.seconds for one in timings) / sum(one.timed_tokens for one in timings)


def _by_contender(timings: Sequence[Timing]) -> dict[tuple[str, str], list[Timing]]:
    """Each contender's timings in the order of the prompts' names."""
    found: dict[tuple[str, str], list[Timing]] = {}
    for timing in sorted(timings, key=lambda one: one.prompt):
        found.setdefault((timing.method, timing.runtime), []).append(timing)
    prompts = {key: [timing.prompt for timing in own] for key, own in found.items()}
    whole = max(prompts.values(), key=len)
    for key, own in prompts.items():
        if own != whole:
            raise ValueError(
                f"{', '.join(key)} has {len(own)} prompts, another contender {len(whole)}: ratios"
                " are paired"
            )
    return found


def write(path: Path, table: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    """A CSV file, whole or not at all; numbers in six digits, NaN as nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            [_written(row.get(column, math.nan)) for column in columns] for row in table
        )
    os.replace(partial, path)


def raw(timings: Sequence[Timing]) -> list[Row]:
    """The timings as rows of a table, without what is the same for all prompts."""
    return [asdict(timing) for timing in timings]


def versions() -> str:
    """Of what the times depend on besides the machine: Python, torch and transformers."""
    return f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"


def _written(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
