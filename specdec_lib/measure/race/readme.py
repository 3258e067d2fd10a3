"""The table of speeds as the README shows it."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from specdec_lib.core.files import README
from specdec_lib.measure.intervals import LEAST_PROMPTS, with_interval
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.hugging import LLAMA_CPP
from specdec_lib.measure.race.table import ALL, RACED, stored_race
from specdec_lib.measure.sweep.ratios import sampling_of

HF = "Hugging Face"  # a runtime, followed by its precision
GUIDE = README.parent / "docs" / "guide.md"
MARKS = {"exact": ("speeds", README), "int8": ("speeds_int8", GUIDE)}  # and their pages
AVX2 = "amd-epyc-avx2-1-threads"
OTHERS = {"exact": {"speeds_avx2": AVX2}, "int8": {"speeds_int8_avx2": AVX2}}  # in the guide too
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
    yield *MARKS[edition], stored_race(RACED, edition=edition)
    for mark, machine in OTHERS[edition].items():
        yield mark, GUIDE, stored_race(machine, edition=edition)


def speeds(table: pd.DataFrame) -> str:
    """Milliseconds per token of every method, and its speed ÷ plain decoding's in the fastest
    runtime, by sampler, from the `ratio_table` of one edition.
    """
    whole = table[(table.domain == ALL) & (table.baseline == AUTOREGRESSIVE)]
    sizes = whole.groupby(["temperature", "top_k"]).method.transform("size")
    whole = whole[sizes == sizes.max()]  # samplers under which all methods ran
    arithmetic, foreign = _arithmetic(whole), whole.runtime.str.startswith(HF)
    whole = whole.assign(runtime=whole.runtime.mask(foreign, HF))
    parts = {
        sampling_of(heat, k or None): part
        for (heat, k), part in whole.groupby(["temperature", "top_k"], sort=False)
    }
    heads = [f"{name}: ms per token | speed ÷ plain decoding's | setting" for name in parts]
    lines = [f"{_conditions(whole, parts)} {arithmetic}", "", f"| method | {' | '.join(heads)} |"]
    lines.append(f"|---|{'---|---|---|' * len(parts)}")
    by_method = [part.set_index(["method", "runtime"]) for part in parts.values()]
    for method, name in NAMES.items():
        runtimes = dict.fromkeys(whole[whole.method == method].runtime)
        for runtime in runtimes:
            if all((method, runtime) in part.index for part in by_method):
                cells = " | ".join(_cells(part.loc[method, runtime]) for part in by_method)
                said = f", {runtime} runtime" if len(runtimes) > 1 else ""
                lines.append(f"| {name}{said} | {cells} |")
    return "\n".join(lines)


def _conditions(whole: pd.DataFrame, parts: dict[str, pd.DataFrame]) -> str:
    """Where and on what it was measured, in words."""
    first, fewer = whole.iloc[0], whole.prompts.min()
    most = {name: part.loc[part.prompts.idxmax()] for name, part in parts.items()}
    counts = "; ".join(
        f"{name}: {row.prompts} prompts, {row.tokens:,} tokens, repetition {row.repetition:.2f},"
        f" load {row.load:.1f}"
        for name, row in most.items()
    )
    threads = f"{first.threads} thread{'s' if first.threads > 1 else ''}"
    said = (
        f"Measured by `make bench` on {threads} ({first.machine}), on held-out prompts, a quarter"
        f" of each domain ({counts}; a load above 1: other processes ran too). Every method is"
        " tuned on development prompts and timed on held-out ones, interleaved; intervals are 95 %,"
        " by bootstrap over prompts."
    )
    if fewer < whole.prompts.max():
        said += f" Other programs and runtimes ran on {fewer} prompts, on which their ratios stand"
        said += ", too few for an interval." if fewer < LEAST_PROMPTS else "."
    if LLAMA_CPP in set(whole.method):
        said += " llama.cpp ran as `llama-bench`: as many tokens after as long a context, of no"
        said += " text and without sampling, from the file of four bits."
    return said


def _arithmetic(table: pd.DataFrame) -> str:
    """What the target and its drafts compute in."""
    if "int8" in set(table.runtime):
        return (
            "The target is the int8 edition: another model, whose plain decoding is the baseline."
        )
    own = "The target is in float32, and our drafts are in the int8 edition."
    foreign = table.runtime[table.runtime.str.startswith(HF)]
    precisions = foreign.str.removeprefix(HF).str.strip().head(1)
    named = [f" Hugging Face runs in {one}, which is its faster one here." for one in precisions]
    return own + "".join(named)


def _cells(row: pd.Series) -> str:
    ratio = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    setting = row.setting.partition(" [")[0]
    return f"{row.ms_per_token:.2f} | {ratio} | {setting}"
