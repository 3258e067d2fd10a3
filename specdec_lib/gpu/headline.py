"""`python -m specdec_lib.gpu.headline`: a large target against every baseline on held-out code prompts, into data/measured/headline_<gpu>.csv.

The models are those of `specdec_lib.gpu.training`; the n-gram table is counted here on samples of the draft. Everybody writes the same prompts, with
as many tokens, in an order that is new for each prompt; times are kept as they come. A ratio is always to plain decoding of the same runtime.
"""

import csv
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from transformers import GPT2LMHeadModel

from specdec_lib.bench.hugging import assisted, generates, looks_up
from specdec_lib.bench.table import write as write_table
from specdec_lib.chance import Sampler
from specdec_lib.gpu.contenders import Write, Written, drafts, graphed, looped, shapes
from specdec_lib.gpu.setting import Kept, Row, parser, shape_of, show, table_path
from specdec_lib.gpu.training import katz_path, stream, trained
from specdec_lib.intervals import paired_bootstrap
from specdec_lib.ladder.sampling import sample
from specdec_lib.lm import CachedModel
from specdec_lib.ngram import Katz
from specdec_lib.runtime.graphs import GraphModel
from specdec_lib.sweep import LOOPING, repetition
from specdec_lib.theory import ModelShape, bytes_moved
from specdec_lib.workload import DATA, load_prompts, seeds

SAMPLERS = {"greedy": Sampler(0), "top-k 50": Sampler(1.0, top_k=50)}
EAGER, GRAPH, HF = "eager", "graph", "Hugging Face"
BASE = {EAGER: (EAGER, "autoregressive"), GRAPH: (GRAPH, "autoregressive"), HF: (EAGER, "autoregressive")}
WORK = {f"{model}_{what}": (model, place) for model in ("target", "draft") for place, what in enumerate(("passes", "rows"))}
TIMED = ("sampling", "prompt", "runtime", "method", "tokens", "seconds", "rounds", "repetition", *WORK)
COLUMNS = (
    "sampling", "prompt_set", "runtime", "method", "draft", "prompts", "tokens", "tokens_per_second", "ratio", "ratio_low", "ratio_high",
    "tokens_per_round", "bytes_per_token_to_autoregressive", "target_passes_per_token", "draft_passes_per_token", "repetition",
)  # fmt: skip
SAMPLED = 2_000_000  # tokens of the draft that the n-gram table is counted on
GIVEN = 64  # tokens of context that a pass is charged for beside the prompt: half of what is written


def katz_of(draft: GPT2LMHeadModel, text: np.ndarray, path: Path, tokens: int) -> Katz:
    """The n-gram table, made once: counted on so many sampled tokens, or for none on the text itself."""
    if not path.is_file():
        Katz.fit(sample(draft, text, tokens) if tokens else [text], draft.config.vocab_size).save(path)
    return Katz.load(path)


def contenders(target: GPT2LMHeadModel, draft: GPT2LMHeadModel, katz: Katz, sampler: Sampler, only: Sequence[str]) -> dict[tuple[str, str], Write]:
    """Everybody by runtime and method; `only` keeps some methods, if it names any."""
    device, found = str(target.device), {}
    for runtime, kind in ((EAGER, CachedModel), (GRAPH, GraphModel)):
        models = kind(target, "target"), kind(draft, "draft")
        for method, guesser in drafts(models[1], katz).items():
            found[runtime, method] = looped(models[0], guesser, sampler, device)
    for method, shape in shapes().items():
        found[GRAPH, method] = graphed(target, draft if shape.guesses else None, shape, sampler)
    others = (generates(target, sampler), assisted(target, draft, sampler)[2], looks_up(target, sampler)[2])
    found |= {(HF, other.method): _played(other.play) for other in others}
    return {key: write for key, write in found.items() if not only or key[1] in only}


def _played(play: object) -> Write:
    """A contender of the bench; the passes of its draft are not known."""

    def write(prompt: Sequence[int], count: int, seed: int) -> Written:
        made = play(tuple(prompt), count, seed)
        scale = len(made.tokens) / max(1, made.timed_tokens)
        return Written(made.tokens, made.seconds * scale, made.rounds, {})

    return write


class Timings:
    """What everybody took for each prompt, in a file that grows."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, []
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))

    def time(self, sampling: str, name: str, prompt: Sequence[int], seed: int, writers: Mapping[tuple[str, str], Write], tokens: int) -> None:
        """Everybody's turn on one prompt, in an order of its own."""
        if any((row["sampling"], row["prompt"]) == (sampling, name) for row in self.rows):
            return
        for runtime, method in random.Random(seed).sample(list(writers), len(writers)):
            made = writers[runtime, method](prompt, tokens, seed)
            work = {column: made.work.get(model, (math.nan, math.nan))[place] for column, (model, place) in WORK.items()}
            values = (sampling, name, runtime, method, len(made.tokens), made.seconds, made.rounds, repetition(made.tokens))
            self.rows.append(dict(zip(TIMED, values, strict=False)) | work)
        write_table(self.path, self.rows, TIMED)


def table(rows: Sequence[Row], shapes_of: Mapping[str, ModelShape], draft: str, context: int) -> list[Row]:
    """A row per sampling, prompt set, runtime and method, against plain decoding of the same runtime.

    context    tokens that a pass is charged for, on average
    """
    found = []
    plain = {(row["sampling"], row["prompt"]): float(row["repetition"]) for row in rows if (row["runtime"], row["method"]) == BASE[GRAPH]}
    for sampling in dict.fromkeys(row["sampling"] for row in rows):
        for prompt_set in ("all", "not looping"):
            grouped: dict[tuple[str, str], list[Row]] = {}
            for row in rows:
                if row["sampling"] == sampling and (prompt_set == "all" or plain[sampling, row["prompt"]] < LOOPING):
                    grouped.setdefault((row["runtime"], row["method"]), []).append(row)
            labels = {"sampling": sampling, "prompt_set": prompt_set, "draft": draft}
            for (runtime, method), own in grouped.items():
                named = labels | {"runtime": runtime, "method": method}
                found.append(named | _compared(own, grouped[BASE[runtime]], shapes_of, context))
    return found


def _compared(own: Sequence[Row], base: Sequence[Row], shapes_of: Mapping[str, ModelShape], context: int) -> Row:
    def column(rows: Sequence[Row], name: str) -> list[float]:
        return [math.nan if row[name] == "" else float(row[name]) for row in rows]

    def moved(rows: Sequence[Row]) -> float:
        work = {model: (sum(column(rows, f"{model}_passes")), sum(column(rows, f"{model}_rows"))) for model in shapes_of}
        return sum(
            bytes_moved(shapes_of[model], passes=passes, rows=count, context_tokens=passes * context)
            for model, (passes, count) in work.items()
            if passes == passes and passes
        )

    tokens, seconds = sum(column(own, "tokens")), sum(column(own, "seconds"))
    ratio, low, high = paired_bootstrap(column(base, "seconds"), column(base, "tokens"), column(own, "seconds"), column(own, "tokens"))
    known = not math.isnan(sum(column(own, "target_passes")))
    return {
        "prompts": len(own),
        "tokens": int(tokens),
        "tokens_per_second": tokens / seconds,
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "tokens_per_round": tokens / sum(column(own, "rounds")),
        "bytes_per_token_to_autoregressive": (moved(own) / tokens) / (moved(base) / sum(column(base, "tokens"))) if known else math.nan,
        "target_passes_per_token": sum(column(own, "target_passes")) / tokens,
        "draft_passes_per_token": sum(column(own, "draft_passes")) / tokens,
        "repetition": sum(column(own, "repetition")) / len(own),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, time what is missing, write the table and print it."""
    options = parser("headline", __doc__)
    options.add_argument("--cache", type=Path, default=DATA / "cache" / "gpu", help="where the training command left its weights")
    options.add_argument("--draft", default="draft of 2 layers")
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--prompts", type=int, default=60)
    options.add_argument("--tokens", type=int, default=128)
    options.add_argument("--methods", default="", help="some only, such as chain,tree")
    given = options.parse_args(arguments)
    target, draft = (trained(given.cache, name, given.device, given.dtype) for name in ("target", given.draft))
    text = np.arange(5000, dtype=np.uint16) % 300 if given.tiny else stream(given.cache, ())
    katz = katz_of(draft, text, katz_path(given.cache, given.draft), 0 if given.tiny else SAMPLED)
    tokenizer = Tokenizer.from_file(str(DATA / "ladder" / "tokenizer.json"))
    asked = load_prompts("code", "held-out", 2 if given.tiny else given.prompts)
    path, tokens = table_path(given, "headline"), 4 if given.tiny else given.tokens
    timings = Timings(path.with_name(f"{path.stem}_timings_{given.draft.replace(' ', '-')}.csv"))
    longest = target.config.n_positions - tokens
    for sampling, sampler in SAMPLERS.items():
        only = tuple(filter(None, given.methods.split(",")))
        writers = contenders(target, draft, katz, sampler, (*only, "autoregressive") if only else ())
        for number, (prompt, seed) in enumerate(zip(asked, seeds(asked, 0), strict=True)):
            encoded = tokenizer.encode(prompt.text).ids[:longest]
            if not number:
                [write(encoded, min(8, tokens), seed) for write in writers.values()]  # the first passes of a shape set things up
            timings.time(sampling, prompt.name, encoded, seed, writers, tokens)
    kept = Kept(path, COLUMNS, ("sampling", "prompt_set", "runtime", "method", "draft"))
    context = GIVEN + round(float(np.mean([len(tokenizer.encode(prompt.text).ids) for prompt in asked])))
    kept.add(table(Timings(timings.path).rows, {"target": shape_of(target), "draft": shape_of(draft)}, given.draft, context), given.device)
    print(show(kept.rows, ("sampling", "prompt_set", "runtime", "method", "tokens_per_second", "ratio", "ratio_low", "tokens_per_round")))


if __name__ == "__main__":
    main()
