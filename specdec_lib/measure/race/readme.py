"""The table of speeds as the README shows it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from specdec_lib.core.files import README
from specdec_lib.measure.intervals import LEAST_PROMPTS, with_interval
from specdec_lib.measure.race.table import over_plain, stored_race
from specdec_lib.measure.sweep.ratios import sampling_of

HF = "Hugging Face"  # a runtime, followed by its precision
GUIDE = README.parent / "docs" / "guide.md"
MARKS = {  # by edition: the marks on pages, and of which machine; "" is the one that ran most
    "exact": {"speeds": (README, ""), "speeds_avx2": (GUIDE, "amd-epyc-avx2-1-threads")},
    "int8": {"speeds_int8": (GUIDE, "")},
}
NAMES = {  # of the methods of `ratio_table`
    "hf_generate": "Hugging Face `generate`",
    "hf_assisted": "Hugging Face assisted, same draft",
    "hf_prompt_lookup": "Hugging Face prompt lookup",
    "llama.cpp": "llama.cpp, plain decoding",
    "autoregressive": "plain decoding",
    "n-gram": "n-grams and copies alone",
    "chain": "chain",
    "tree": "tree",
    "staged chain": "staged chain",
    "staged": "staged tree",
    "cascade": "cascade with reviewers",
    "comb": "the same as a comb",
    "copies first": "copies first, else a tree",
}


def shown_races(edition: str) -> Iterator[tuple[str, Path, pd.DataFrame]]:
    """The stored races of an edition that pages show: mark, page and table."""
    for mark, (page, machine) in MARKS[edition].items():
        yield mark, page, stored_race(machine, edition=edition)


def speeds(table: pd.DataFrame) -> str:
    """Milliseconds per token of every method, and its speed ÷ plain decoding's in the fastest
    runtime, by sampler, from the `ratio_table` of one edition.
    """
    whole = over_plain(table)
    sizes = whole.groupby(["temperature", "top_k"]).method.transform("size")
    whole = whole[sizes == sizes.max()]  # samplers under which all methods ran
    parts = {
        sampling_of(heat, k or None): own.set_index(["method", "runtime"])
        for (heat, k), own in whole.groupby(["temperature", "top_k"], sort=False)
    }
    heads = [f"{name}: ms per token | speed ÷ plain decoding's | setting" for name in parts]
    lines = [_conditions(whole, parts), "", f"| method | {' | '.join(heads)} |"]
    lines.append(f"|---|{'---|---|---|' * len(parts)}")
    for method, name in NAMES.items():
        runtimes = whole[whole.method == method].runtime.unique()
        for runtime in runtimes:
            cells = " | ".join(_cells(own.loc[method, runtime]) for own in parts.values())
            said = f", {runtime} runtime" if len(runtimes) > 1 else ""
            lines.append(f"| {name}{said} | {cells} |")
    return "\n".join(lines)


def _conditions(whole: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> str:
    """Where, on what and in which arithmetic it was measured, in words."""
    first, fewer = whole.iloc[0], whole.prompts.min()
    most = {name: own.loc[own.prompts.idxmax()] for name, own in parts.items()}
    counts = "; ".join(
        f"{name}: {row.prompts} prompts, {row.tokens:,} tokens, repetition {row.repetition:.2f}"
        for name, row in most.items()
    )
    threads = f"{first.threads} thread{'s' if first.threads > 1 else ''}"
    said = (
        f"Measured by `make bench` on {threads} ({first.machine}), on held-out prompts, a quarter"
        f" of each domain ({counts}). Every method is tuned on development prompts and timed on"
        " held-out ones, interleaved; intervals are 95 %, by bootstrap over prompts."
    )
    if fewer < whole.prompts.max():
        said += f" Other programs and runtimes ran on {fewer} prompts, on which their ratios stand"
        said += ", too few for an interval." if fewer < LEAST_PROMPTS else "."
    if "int8" in set(whole.runtime):
        model = "The target is the int8 edition: another model"
        return f"{said} {model}, whose plain decoding is the baseline."
    said += " The target is in float32, and our drafts are in the int8 edition."
    for runtime in whole.runtime[whole.runtime.str.startswith(HF)].head(1):
        said += f" {HF} runs in {runtime.removeprefix(HF).strip()}, which is its faster one here."
    return said


def _cells(row: pd.Series) -> str:
    ratio = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    setting = row.setting.partition(" [")[0]  # older races say how it was chosen
    return f"{row.ms_per_token:.2f} | {ratio} | {setting}"
