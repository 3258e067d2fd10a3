"""The table of speeds as the README shows it."""

from typing import TYPE_CHECKING

from specdec_lib.measure.sweep.ratios import sampling_of

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MARK = "speeds"
HF = "Hugging Face"  # followed by its precision
NAMES = {  # of the methods and runtimes of `ratio_table`
    ("hf_generate", HF): "Hugging Face `generate`",
    ("hf_assisted", HF): "Hugging Face assisted, same draft",
    ("hf_prompt_lookup", HF): "Hugging Face prompt lookup",
    ("autoregressive", "reference"): "plain decoding, reference runtime",
    ("autoregressive", "fast"): "plain decoding, fast runtime",
    ("n-gram", "auto"): "n-grams and copies alone",
    ("chain", "auto"): "chain",
    ("tree", "auto"): "tree",
    ("staged", "auto"): "staged tree",
    ("cascade", "auto"): "cascade",
}


def speeds(table: "DataFrame") -> str:
    """Milliseconds per token of every method, and its speed ÷ plain decoding's in the fastest
    runtime, by sampler.

    table    as `ratio_table` makes it
    """
    whole = table[(table.prompt_set == "all") & (table.baseline == "autoregressive")]
    precision = whole.runtime[whole.runtime.str.startswith(HF)].iloc[0].removeprefix(HF).strip()
    whole = whole.assign(runtime=whole.runtime.replace(f"{HF} {precision}", HF))
    samplers = dict.fromkeys(zip(whole.temperature, whole.top_k, strict=True))
    parts = {
        sampling_of(heat, top_k or None): whole[whole.temperature == heat].set_index(
            ["method", "runtime"]
        )
        for heat, top_k in samplers
    }
    first = whole.iloc[0]
    counts = " and ".join(f"{part.prompts.iloc[0]} ({name})" for name, part in parts.items())
    heads = [f"{name}: ms per token | ÷ plain decoding | setting" for name in parts]
    lines = [
        f"Measured by `make bench` on {counts} held-out prompts, a quarter of each domain,"
        f" {first.machine}. Every method is tuned on development prompts and timed on"
        " held-out ones, interleaved; intervals are 95 %, by bootstrap over prompts."
        f" Hugging Face runs in {precision}, which is its faster one here, all else in float32.",
        "",
        f"| method | {' | '.join(heads)} |",
        f"|---|{'---|---|---|' * len(parts)}",
    ]
    for key, name in NAMES.items():
        if all(key in part.index for part in parts.values()):
            cells = " | ".join(_cells(part.loc[key]) for part in parts.values())
            lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def _cells(row: "Series") -> str:
    ratio = f"{row.ratio:.2f} ({row.ratio_low:.2f}–{row.ratio_high:.2f})"
    setting = row.setting.partition(" [")[0]
    return f"{row.ms_per_token:.2f} | {ratio} | {setting}"
