"""`specdec compare`: does speculation pay for this pair of models, on these
prompts, on this machine?

Without --target and --draft it takes the embedded models. Run it where nothing else runs.
"""

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers.utils.logging import set_verbosity_error

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import check_writable, write_whole
from specdec_lib.measure.compare.timing import timed
from specdec_lib.measure.compare.verdict import LEAST, summary, verdict
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.models.loading import DTYPES, RUNTIMES
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare, and print the table and the verdict."""
    parser = _parser()
    given = parser.parse_args(arguments)
    set_verbosity_error()  # assisted generation warns about the calls that it makes itself
    _check(given)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    sampler = Sampler(given.temperature, top_k=given.top_k)
    split = given.split or ("held-out" if given.prompts in DOMAINS else WHOLE)
    prompts = load_prompts(given.prompts, split, given.limit)
    own = {
        "tokenizer": given.tokenizer,
        "device": given.device,
        "dtype": given.dtype,
        "runtime": given.runtime,
    }
    ladder = load_ladder(given.target, given.draft, **own)
    print(_heading(ladder, sampler, given, len(prompts)), flush=True)
    limits = {
        "max_new_tokens": given.max_new_tokens,
        "seed": given.seed,
        "repeats": given.repeats,
    }
    rows = timed(
        ladder,
        prompts,
        sampler,
        keep=given.keep,
        progress=sys.stderr.isatty() or given.progress,
        **limits,
    )
    table = summary(rows, seed=given.seed)
    print(shown(table))
    print(f"\n{verdict(table)}", flush=True)
    if given.csv:
        write_whole(given.csv, table.round(6).to_csv(index=False).encode())


def shown(table: "DataFrame") -> str:
    """The table for a terminal."""
    width = max(map(len, table.method))
    lines = [
        f"{'method':{width}}  tokens per round  acceptance  ms per token  times as fast as plain"
        " (95 %)  same text"
    ]
    for row in table.itertuples():
        rate = "–" if math.isnan(row.acceptance_rate) else f"{row.acceptance_rate:.2f}"
        ratio = f"{row.speed_up:.2f}" + (
            f" ({row.speed_up_low:.2f}–{row.speed_up_high:.2f})" if row.prompts >= LEAST else ""
        )
        lines.append(
            f"{row.method:{width}}  {row.tokens_per_round:16.2f}  {rate:>10} "
            f" {row.ms_per_token:12.2f}  {ratio:>29}  {row.same:>9}"
        )
    return "\n".join(lines)


def _check(given: argparse.Namespace) -> None:
    """Before hours of work.

    Raises ValueError for a count below 1, or a place that cannot be written to; folders are made.
    """
    for name in ("threads", "limit", "max_new_tokens", "repeats"):
        if (count := getattr(given, name)) is not None and count < 1:
            raise ValueError(f"--{name.replace('_', '-')} counts from 1, got {count}")
    if given.csv and given.csv.is_dir():
        raise ValueError(f"--csv names a file, got the folder {given.csv}")
    for folder in filter(None, (given.csv and given.csv.parent, given.keep)):
        check_writable(folder)


def _heading(ladder: Ladder, sampler: Sampler, given: argparse.Namespace, prompts: int) -> str:
    sizes = [
        f"{model.name} {ladder.card['models'][model.name]['parameters']:,}"
        for model in (ladder.target, ladder.draft)
    ]
    lines = [
        f"parameters: {', '.join(sizes)}; {ladder.target.runtime}; {torch.get_num_threads()}"
        " threads",
        f"{prompts} prompts of {given.prompts}, at most {given.max_new_tokens} tokens each,"
        f" {sampling_of(sampler.temperature, sampler.top_k)}",
    ]
    penalty = ladder.target.model.generation_config.repetition_penalty
    if penalty not in (None, 1.0):
        lines.append(
            f"the target's generation configuration asks for a repetition penalty of {penalty}:"
            " nobody applies it here"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = Parser("compare", __doc__.partition(": ")[2])
    models = parser.add_argument_group("models")
    models.add_argument(
        "--target",
        help="a folder in hub format, or a name on the hub; by default the embedded target",
    )
    models.add_argument("--draft", help="the same, of the draft")
    models.add_argument(
        "--tokenizer", help="the folder of the tokenizer, where the target's has none"
    )
    models.add_argument("--device", default="auto", help='"auto", "cpu", "cuda", …')
    models.add_argument("--dtype", default="float32", choices=DTYPES)
    models.add_argument("--runtime", default="reference", choices=RUNTIMES, help="of our loop")
    models.add_argument(
        "--threads", type=int, help="of torch, for everybody; by default torch's own choice"
    )
    work = parser.add_argument_group("work")
    work.add_argument(
        "--prompts",
        default="code",
        help="code, math, prose, humaneval, gsm8k, mmlu, spec-bench, or a file: FILE.jsonl",
    )
    work.add_argument(
        "--split",
        choices=("development", "held-out", WHOLE),
        help="by default held-out of code, math and prose, else all",
    )
    work.add_argument("--limit", type=int, default=6, help="the first so many prompts (default: 6)")
    work.add_argument(
        "--max-new-tokens", type=int, default=40, help="per prompt, at most (default: 40)"
    )
    work.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default)")
    work.add_argument("--top-k", type=int)
    work.add_argument("--seed", type=int, default=0)
    work.add_argument(
        "--repeats", type=int, default=1, help="of everybody on each prompt; the fastest counts"
    )
    results = parser.add_argument_group("results")
    results.add_argument(
        "--keep",
        type=Path,
        help="a folder for finished prompts: an interrupted comparison goes on from there",
    )
    results.add_argument("--csv", type=Path, help="write the table there too")
    results.add_argument(
        "--progress", action="store_true", help="show progress even where the output is no terminal"
    )
    return parser
