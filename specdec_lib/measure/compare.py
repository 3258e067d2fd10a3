"""`specdec compare`: measures whether speculation pays for a pair of models on this machine, with a
usual setting of every method.

Without --target and --draft it takes the embedded models. Run it where nothing else runs.
"""

from argparse import Namespace
from collections.abc import Sequence

import pandas as pd
from tqdm.auto import tqdm
from transformers.utils.logging import set_verbosity_error

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.kinds import checked
from specdec_lib.measure.intervals import with_interval
from specdec_lib.measure.race.benchmark import contenders
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN
from specdec_lib.measure.race.harness import race_prompts
from specdec_lib.measure.race.hugging import ASSIST, GENERATE, HF, LOOKUP, precision
from specdec_lib.measure.race.table import ALL, over_plain, ratio_table
from specdec_lib.measure.sweep.ratios import without_few
from specdec_lib.measure.sweep.repetition import LOOPING
from specdec_lib.models.loading import DTYPES, RUNTIMES
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts, neutral

OUR = "ours"  # runtime
EIGHT = "draft, budget 8, depth 4"
COPIES = "Max-Gram, 8 tokens after 2 or more"
USUAL = {  # settings of `specdec bench`
    "n-gram": COPIES,
    "chain": "draft, 3 tokens",
    "tree": EIGHT,
    "staged chain": "draft, 3 tokens; Max-Gram scout",
    "staged": f"tree of {EIGHT}; Max-Gram scout",
    "cascade": "draft, Max-Gram: 1 4 / 0 4",
    "comb": "draft, Max-Gram: 1 4 / 0 4, combs of 3",
    "copies first": f"{COPIES}, else tree of {EIGHT}",
    GENERATE: TOKEN_BY_TOKEN,
    ASSIST: "5 tokens, constant, confidence 0.4",
    LOOKUP: "10 tokens, endings of up to 2",
}
PLAIN = {AUTOREGRESSIVE: "plain decoding", GENERATE: "plain decoding by Hugging Face"}
HARDLY = 1.02  # tokens per round up to which no guess helps, whatever the clock says
ADVICE = {"yes": "Speculate", "no": "Do not speculate"}
ADVICE["unclear"] = "No clear gain, so plain decoding is simpler"
SHOWN = "method setting tokens_per_round ms_per_token ratio ratio_low ratio_high wrong".split()


@checked
def compare_methods(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler = Sampler(0),
    *,
    max_new_tokens: int = 40,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """The rows of `ratio_table` on all prompts against both plain decoders, ours and Hugging
    Face's, of every method at its usual setting.  Raises ValueError if there is no prompt, or one
    with its continuation does not fit into every model.
    """
    if not prompts or max_new_tokens < 1:
        got = f"{len(prompts)} prompts, max_new_tokens={max_new_tokens}"
        raise ValueError(f"a comparison takes a prompt and a new token or more, got {got}")
    for prompt in prompts:
        if (length := len(ladder.encode(prompt))) > ladder.max_positions - max_new_tokens:
            allowed = f"the smallest model reads at most {ladder.max_positions} with the new"
            raise ValueError(f"the prompt {prompt.name} has {length} tokens: {allowed}")
    foreign = precision(ladder.target.model)
    usual = {name: [(foreign if name in HF else OUR, one)] for name, one in USUAL.items()}
    with neutral(ladder):  # assisted generation copies the draft's configuration as it finds it
        racing = contenders(ladder, OUR, sampler, usual)
        bar = tqdm(prompts, "compare", disable=not progress)
        limits = {"tokens": max_new_tokens, "seed": seed, "strict": False}
        raced = race_prompts(racing, ladder, bar, **limits)
        table = ratio_table(timing for timings in raced for timing in timings)
    return table[(table.domain == ALL) & table.baseline.isin(PLAIN)].reset_index(drop=True)


def pays(row: pd.Series) -> str:
    """Whether a row of `ratio_table` is faster than its baseline, interval and all: "yes", "no" or
    "unclear".
    """
    if row.tokens_per_round <= HARDLY or row.ratio < 1:
        return "no"
    return "yes" if row.ratio_low > 1 else "unclear"


def told(row: pd.Series) -> str:
    """A row of `ratio_table` in words."""
    gain = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    return f"{row.method} ({row.setting}) is {gain} times as fast"


def verdict(table: pd.DataFrame) -> str:
    """What a table of `compare_methods` comes to, in words: the faster of both plain decoders has
    to be beaten, by a method that writes the target's own text and has guesses accepted.
    """
    base = table.loc[table.ms_per_token.where(table.method.isin(PLAIN)).idxmin()].method
    raced = table[(table.baseline == base) & ~table.method.isin(PLAIN)]
    wrong = raced.method[raced.wrong > 0].tolist()
    fair = raced[(raced.wrong == 0) & (raced.tokens_per_round > HARDLY) & raced.ratio.notna()]
    said = [f"{ADVICE['no']}: hardly a guess was accepted."]
    if len(fair):
        best = fair.loc[fair.ratio.idxmax()]
        said = [f"{ADVICE[pays(best)]}: {told(without_few(fair).loc[best.name])} as {PLAIN[base]}."]
        said.append(f"It was picked on the {best.prompts} prompts it is judged on: expect less.")
        if best.repetition >= LOOPING:
            said.append("The texts repeat themselves, which flatters whatever copies.")
    if wrong:
        said.append(f"Not the target's own text, by more than rounding: {', '.join(wrong)}.")
    return " ".join(said)


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare, and print the table and the verdict."""
    parser = Parser("compare", __doc__.partition(": ")[2])
    add_models(parser, "float32", limit=10, max_new_tokens=40)
    add_sampling(parser, "reference")
    parser.add_common("--csv")
    given = parser.parse_args(arguments)
    set_verbosity_error()  # assisted generation warns about the calls that it makes itself
    prompts, ladder = load_given(given)
    print(f"{ladder.target.runtime}; {len(prompts)} prompts of {given.prompts}", flush=True)
    limits = {"max_new_tokens": given.max_new_tokens, "seed": given.seed}
    sampler = Sampler(given.temperature, top_k=given.top_k)
    table = compare_methods(ladder, prompts, sampler, **limits)
    print(without_few(over_plain(table))[SHOWN].round(2).to_string(index=False))
    print(f"\n{verdict(table)}", flush=True)
    if given.csv:
        write_csv(without_few(table), given.csv, 6)


def add_models(parser: Parser, dtype: str, *, limit: int, max_new_tokens: int) -> None:
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


def add_sampling(parser: Parser, runtime: str) -> None:
    """The options of how our loop runs and samples."""
    parser.add_argument("--runtime", default=runtime, choices=RUNTIMES, help="of our loop")
    for name, default in {"--temperature": 0.0, "--top-k": None, "--seed": 0}.items():
        parser.add_common(name, default)


def load_given(given: Namespace, split: str = "") -> tuple[list[Prompt], Ladder]:
    """The prompts of a split (by default the held-out ones of an embedded set, and all of a file),
    and the models that the options name.
    """
    usual = "held-out" if given.prompts in DOMAINS else WHOLE
    prompts = load_prompts(given.prompts, split or usual, given.limit)
    named = ("tokenizer", "device", "dtype", "runtime")
    options = {name: one for name, one in vars(given).items() if name in named}
    return prompts, load_ladder(given.target, given.draft, **options)
