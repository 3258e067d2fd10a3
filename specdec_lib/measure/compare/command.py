"""`specdec compare`: measures whether speculation pays for a pair of models on this machine.

Without --target and --draft it takes the embedded models. Run it where nothing else runs.
"""

import math
import sys
from argparse import Namespace
from pathlib import Path

import pandas as pd
import torch
from transformers.utils.logging import set_verbosity_error

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.measure.compare.timing import compare_methods
from specdec_lib.measure.compare.verdict import method_summary, verdict
from specdec_lib.measure.intervals import with_interval
from specdec_lib.measure.sweep.ratios import sampling_of, without_few
from specdec_lib.models.loading import DTYPES, RUNTIMES
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts

USUAL = {"--temperature": 0.0, "--top-k": None, "--seed": 0, "--csv": None}


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare, and print the table and the verdict."""
    parser = Parser("compare", __doc__.partition(": ")[2])
    add_models(parser, "float32", limit=10, max_new_tokens=40)
    add = parser.add_argument
    add("--runtime", default="reference", choices=RUNTIMES, help="of our loop")
    add("--threads", type=int, help="of torch; by default torch's own choice")
    keep = "a folder for finished prompts: an interrupted comparison goes on from there"
    add("--keep", type=Path, help=keep)
    for name, default in USUAL.items():
        parser.add_common(name, default)
    given = parser.parse_args(arguments)
    set_verbosity_error()  # assisted generation warns about the calls that it makes itself
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    sampler = Sampler(given.temperature, top_k=given.top_k)
    prompts, ladder = load_given(given)
    print(_heading(ladder, sampler, given, len(prompts)), flush=True)
    limits = {name: vars(given)[name] for name in ("max_new_tokens", "seed", "keep")}
    rows = compare_methods(ladder, prompts, sampler, progress=sys.stderr.isatty(), **limits)
    summary = method_summary(rows, seed=given.seed)
    table = without_few(summary)
    print(_format(table))
    print(f"\n{verdict(summary)}", flush=True)
    if given.csv:
        write_csv(table, given.csv, 6)


def _format(table: pd.DataFrame) -> str:
    width = max(map(len, table.method))
    lines = [
        f"{'method':{width}}  tokens per round  acceptance  ms per token  times as fast as plain"
        " (95 %)  same text"
    ]
    for row in table.itertuples():
        rate = "–" if math.isnan(row.acceptance_rate) else f"{row.acceptance_rate:.2f}"
        ratio = with_interval(row.speed_up, row.speed_up_low, row.speed_up_high)
        lines.append(
            f"{row.method:{width}}  {row.tokens_per_round:16.2f}  {rate:>10} "
            f" {row.ms_per_token:12.2f}  {ratio:>29}  {row.same:>9}"
        )
    return "\n".join(lines)


def _heading(ladder: Ladder, sampler: Sampler, given: Namespace, prompts: int) -> str:
    cards = {model.name: ladder.card["models"][model.name] for model in ladder.models}
    sizes = [f"{name} {cards[name]['parameters']:,}" for name in ("target", "draft")]
    lines = [
        f"parameters: {', '.join(sizes)}; {ladder.target.runtime}; {torch.get_num_threads()}"
        " threads",
        f"prompts: {prompts} of {given.prompts}, at most {given.max_new_tokens} tokens each,"
        f" {sampling_of(sampler.temperature, sampler.top_k)}",
    ]
    penalty = ladder.target.model.generation_config.repetition_penalty
    if penalty not in (None, 1.0):
        lines.append(
            f"the target's generation configuration has a repetition penalty of {penalty}, which is"
            " not applied here"
        )
    return "\n".join(lines)


def add_models(parser: Parser, dtype: str, limit: int, max_new_tokens: int) -> None:
    """The options that name a pair of models and the prompts that it continues."""
    add = parser.add_argument
    add("--target", help="a folder in hub format, or a hub name (default: the embedded target)")
    add("--draft", help="the same, of the draft")
    add("--tokenizer", help="the folder of the tokenizer, where the target's has none")
    add("--device", default="auto", help='"auto", "cpu", "cuda", …')
    add("--dtype", default=dtype, choices=DTYPES)
    parser.add_common("--prompts", "chat")
    parser.add_common("--limit", limit)
    parser.add_common("--max-new-tokens", max_new_tokens)


def load_given(given: Namespace) -> tuple[list[Prompt], Ladder]:
    """The prompts and the models that the options name."""
    split = "held-out" if given.prompts in DOMAINS else WHOLE
    prompts = load_prompts(given.prompts, split, given.limit)
    named = ("tokenizer", "device", "dtype", "runtime")
    options = {name: one for name, one in vars(given).items() if name in named}
    return prompts, load_ladder(given.target, given.draft, **options)
