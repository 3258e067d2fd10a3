"""The table of speeds as the README shows it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.files import README
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.table import stored_race
from specdec_lib.measure.sweep.ratios import sampling_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

HF = "Hugging Face"  # a runtime, followed by its precision
GUIDE = README.parent / "docs" / "guide.md"
MARKS = {"exact": ("speeds", README), "int8": ("speeds_int8", GUIDE)}  # and their pages
OTHERS = {"exact": {"speeds_avx2": "amd-epyc-avx2-1-threads"}, "int8": {}}  # in the guide too
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


def shown_races(edition: str) -> Iterator[tuple[str, Path, "DataFrame"]]:
    """The stored races of an edition that pages show: mark, page and table."""
    yield *MARKS[edition], stored_race(edition=edition)
    for mark, machine in OTHERS[edition].items():
        yield mark, GUIDE, stored_race(machine, edition=edition)


def speeds(table: "DataFrame") -> str:
    """Milliseconds per token of every method, and its speed ÷ plain decoding's in the fastest
    runtime, by sampler.

    table    as `ratio_table` makes it, of one edition
    """
    whole = table[(table.domain == "all") & (table.baseline == AUTOREGRESSIVE)]
    sizes = whole.groupby(["temperature", "top_k"]).method.transform("size")
    whole = whole[sizes == sizes.max()]  # samplers under which all methods ran
    arithmetic, foreign = _arithmetic(whole), whole.runtime.str.startswith(HF)
    whole = whole.assign(runtime=whole.runtime.mask(foreign, HF))
    samplers = dict.fromkeys(zip(whole.temperature, whole.top_k, strict=True))
    parts = {
        sampling_of(heat, k or None): whole[(whole.temperature == heat) & (whole.top_k == k)]
        for heat, k in samplers
    }
    heads = [f"{name}: ms per token | ÷ plain decoding | setting" for name in parts]
    lines = [
        f"{_conditions(whole, parts)} {arithmetic}",
        "",
        f"| method | {' | '.join(heads)} |",
        f"|---|{'---|---|---|' * len(parts)}",
    ]
    for method, name in NAMES.items():
        runtimes = dict.fromkeys(whole[whole.method == method].runtime)
        for runtime in runtimes:
            own = [
                part[(part.method == method) & (part.runtime == runtime)] for part in parts.values()
            ]
            if all(map(len, own)):
                cells = " | ".join(_cells(one.iloc[0]) for one in own)
                said = f", {runtime} runtime" if len(runtimes) > 1 else ""
                lines.append(f"| {name}{said} | {cells} |")
    return "\n".join(lines)


def _conditions(whole: "DataFrame", parts: "dict[str, DataFrame]") -> str:
    """Where and on what it was measured, in words."""
    first, fewer = whole.iloc[0], whole.prompts.min()
    most = {name: part.loc[part.prompts.idxmax()] for name, part in parts.items()}
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
    if fewer == whole.prompts.max():
        return said
    others = f"Other programs and runtimes ran on {fewer} prompts, on which their ratios stand."
    return f"{said} {others}"


def _arithmetic(table: "DataFrame") -> str:
    """What the target and its drafts compute in."""
    if "int8" in set(table.runtime):
        return (
            "The target is the int8 edition: another model, whose plain decoding is the baseline."
        )
    own = "The target is in float32, and our drafts are in the int8 edition."
    foreign = table.runtime[table.runtime.str.startswith(HF)]
    if foreign.empty:
        return own
    precision = foreign.iloc[0].removeprefix(HF).strip()
    return f"{own} Hugging Face runs in {precision}, which is its faster one here."


def _cells(row: "Series") -> str:
    ratio = f"{row.ratio:.2f} ({row.ratio_low:.2f}–{row.ratio_high:.2f})"
    setting = row.setting.partition(" [")[0]
    return f"{row.ms_per_token:.2f} | {ratio} | {setting}"
