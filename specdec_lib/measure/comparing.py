"""`specdec compare`: measures whether speculation pays for a pair of models on this machine.

Without --target and --draft it takes the embedded models. Run it where nothing else runs.
"""

import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers.utils.logging import set_verbosity_error

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.decode.loop import NewTokens
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.commands.commandline import Parser, write_csv
from specdec_lib.measure.contenders import Contender, hugging_contenders, our_contenders
from specdec_lib.measure.near_ties import BUG, EARLY, VERDICTS, near_tie
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import sampling_of, without_few
from specdec_lib.measure.settings.compare import ASSISTED, EIGHT, USUAL
from specdec_lib.measure.settings.names import GENERATE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.trial import trial_table
from specdec_lib.measure.tuned_methods import Lineup, method_contenders
from specdec_lib.measure.verdict import method_summary, verdict
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.generation import generation_notes
from specdec_lib.models.loading import DTYPES, RUNTIMES, why_not_fast
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_ladder, load_prompts, neutral

SHOWN = """method tokens_per_round acceptance_rate ms_per_token speed_up speed_up_low speed_up_high
    same""".split()
TIES = """compare greedy texts of a model written in three ways, and say whether rounding or a bug
    parts them; exit status 1 if a difference is not rounding"""
EQUAL = "equal"


def compared_contenders(
    ladder: Ladder, sampler: Sampler, own: Mapping[str, Draft]
) -> list[Contender]:
    """Those of `USUAL` for which the ladder has the parts, and our loop with drafts of one's own;
    each is a method.
    """
    precision = str(ladder.target.model.dtype).removeprefix("torch.")
    lineup = Lineup(built_on=[EIGHT], precision=precision)
    grids = {
        method: method_contenders({"ours": ladder}, sampler, method, lineup)
        for method in {method for method, _ in USUAL.values()}
    }
    found = {name: grids[method].get(setting) for name, (method, setting) in USUAL.items()}
    mine = [Setting(name, draft, sampler, method=name) for name, draft in own.items()]
    found |= {one.method: one for one in our_contenders(ladder.target, mine)}
    target = ladder.target
    rounded = isinstance(target, FastModel) and target.model.dtype != torch.float32
    # Hugging Face draws its own noise, and computes in the precision of the weights
    comparable = sampler.temperature == 0 and not rounded
    return [
        replace(one, method=name, exact=one.draft is not None or comparable)
        for name, one in found.items()
        if one
    ]


@checked
def compare_methods(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler = Sampler(0),
    *,
    own: Mapping[str, Draft] | None = None,
    max_new_tokens: NewTokens = 40,
    seed: int = 0,
) -> pd.DataFrame:
    """A row per method and prompt: the columns of `trial_table`.

    own    drafts of your own, by name, that are tried beside the usual ones

    Every method continues a prompt by as many tokens as the target itself does, up to a stop token
    or `max_new_tokens`. Texts of Hugging Face need not be the target's own where they are sampled,
    with noise of its own, or where the fast runtime computes in float32 from coarser weights.
    Where the draft reads less than the target, it guesses nothing beyond; Hugging Face's assisted
    generation, which asks it there too and may fail, is left out with a warning.
    Raises ValueError if there is no prompt, one with its continuation does not fit into the target,
    or a draft has a name that is taken.
    """
    if not prompts:
        raise ValueError("a comparison needs prompts, got none")
    longest = max(prompts, key=lambda prompt: len(ladder.encode(prompt)))
    length = len(ladder.encode(longest))
    if length > ladder.target.max_positions - max_new_tokens:
        raise ValueError(
            f"the prompt {longest.name} has {length:,} tokens, and {max_new_tokens:,} are to be"
            f" new: the target reads at most {ladder.target.max_positions:,}"
        )
    if taken := (own or {}).keys() & USUAL.keys():
        raise ValueError(f"a draft of your own needs a name of its own, got {', '.join(taken)}")
    options = {"tokens": max_new_tokens, "seed": seed, "strict": False}
    with neutral(ladder):  # assisted generation copies the draft's configuration as it finds it
        contenders = compared_contenders(ladder, sampler, own or {})
        if length > ladder.draft.max_positions - max_new_tokens:
            contenders = [one for one in contenders if one.method != ASSISTED]
            warnings.warn(
                f"{ASSISTED} is left out: the prompt {longest.name} has {length:,} tokens, and"
                f" {max_new_tokens:,} are to be new, of which the draft reads at most"
                f" {ladder.draft.max_positions:,}; other methods guess nothing beyond with it",
                stacklevel=3,  # of what calls this checked function
            )
        raced = race_prompts(contenders, ladder, tqdm(prompts, "compare"), **options)
        return trial_table(chain.from_iterable(raced))


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, compare, and print the table and the verdict."""
    parser = Parser("compare", __doc__)
    add_models(parser, "float32", limit=10, max_new_tokens=40)
    told = "of our loop (default: reference; `plan` takes auto)"
    parser.add_argument("--runtime", default="reference", choices=RUNTIMES, help=told)
    parser.add_common("--temperature", 0.0)
    parser.add_common("--top-k")
    parser.add_common("--seed", 0)
    parser.add_common("--csv")
    given = parser.parse_args(arguments)
    set_verbosity_error()  # assisted generation warns about the calls that it makes itself
    sampler = Sampler(given.temperature, top_k=given.top_k)
    prompts, ladder = load_given(given)
    print(_heading(ladder, sampler, given, len(prompts)), flush=True)
    limits = {"max_new_tokens": given.max_new_tokens, "seed": given.seed}
    summary = method_summary(compare_methods(ladder, prompts, sampler, **limits))
    table = without_few(summary)
    print(table[SHOWN].round(2).to_string(index=False, na_rep="–"))
    print(f"\n{verdict(summary)}", flush=True)
    if given.csv:
        write_csv(table, given.csv, 6)


def _heading(ladder: Ladder, sampler: Sampler, given: Namespace, prompts: int) -> str:
    cards = ladder.card["models"]
    sizes = [f"{name} {cards[name]['parameters']:,}" for name in ("target", "draft")]
    said = f"parameters: {', '.join(sizes)}; {ladder.target.runtime}; {torch.get_num_threads()}"
    said += f" threads\nprompts: {prompts} of {given.prompts}, at most {given.max_new_tokens}"
    said += f" tokens each, {sampling_of(sampler.temperature, sampler.top_k)}"
    notes = generation_notes(ladder.target.model, ladder.tokenizer)
    return "\n".join((said, *runtime_notes(ladder, given.runtime), *notes))


def runtime_notes(ladder: Ladder, runtime: str) -> list[str]:
    """A line for each model that `auto` runs on the reference runtime, which says why."""
    models = {"target": ladder.target, "draft": ladder.draft}
    reasons = {name: why_not_fast(one) for name, one in models.items() if runtime == "auto"}
    return [f"the {name} is not on the fast runtime: {one}" for name, one in reasons.items() if one]


def add_models(parser: Parser, dtype: str, limit: int, max_new_tokens: int) -> None:
    """The options that name a pair of models and the prompts that it continues."""
    add = parser.add_argument
    add("--target", help="a folder in hub format, or a hub name (default: the embedded target)")
    add("--draft", help="the same, of the draft")
    add("--tokenizer", help="the folder of the tokenizer, where the target's has none")
    add("--device", default="auto", help='"auto", "cpu", "cuda", …')
    add("--dtype", default=dtype, choices=DTYPES)
    add("--threads", type=int, help="of torch; by default torch's own choice")
    parser.add_common("--prompts", "chat")
    parser.add_common("--limit", limit)
    parser.add_common("--max-new-tokens", max_new_tokens)


def load_given(given: Namespace) -> tuple[list[Prompt], Ladder]:
    """The prompts and the models that the options name, and so many threads of torch. Nothing
    warns of `generation_notes`: the commands print them.
    """
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    split = "held-out" if given.prompts in DOMAINS else WHOLE
    prompts = load_prompts(given.prompts, split, given.limit)
    named = ("tokenizer", "device", "dtype", "runtime")
    options = {name: one for name, one in vars(given).items() if name in named}
    return prompts, load_ladder(given.target, given.draft, warn=False, **options)


def greedy_texts(
    ladder: Ladder, prompt: tuple[int, ...], tokens: int
) -> dict[str, tuple[int, ...]]:
    """The target's text by plain and speculative decoding, and by `generate` of Hugging Face."""
    drafts = {"plain": NoDraft(), "speculative": TreeDraft(ladder.draft, budget=16)}
    found = {
        name: decode(ladder.target, draft, prompt, Chance(0), max_new_tokens=tokens).tokens
        for name, draft in drafts.items()
    }
    model = ladder.target.model
    with neutral(ladder):
        [generate] = hugging_contenders(GENERATE, model, model, Sampler(0))
        return found | {"generate": generate.run(prompt, tokens, 0).tokens}


def show_ties(arguments: list[str] | None = None) -> None:
    """Run `specdec ties`: print every difference, and exit with 1 if one is not rounding."""
    parser = Parser("ties", TIES)
    add_models(parser, "bfloat16", limit=8, max_new_tokens=64)
    given = parser.parse_args(arguments)
    verdicts, tokens = [], given.max_new_tokens
    prompts, ladder = load_given(given)
    for note in generation_notes(ladder.target.model, ladder.tokenizer):
        print(note)
    for prompt in prompts:
        context = ladder.encode(prompt)
        if tokens > (most := ladder.target.max_positions - len(context)):
            after = f"after the prompt {prompt.name}, got {tokens}"
            raise ValueError(f"--max-new-tokens is 1 to {most} {after}")
        texts = greedy_texts(ladder, context, tokens)
        for way in ("speculative", "generate"):
            tie = near_tie(ladder.target, context, texts["plain"], texts[way])
            verdicts.append(tie.verdict if tie else EQUAL)
            report = tie.report(ladder.text) if tie else EQUAL
            print(f"{prompt.name}, plain against {way}: {report}")
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (EQUAL, *VERDICTS)))
    if BUG in verdicts or EARLY in verdicts:  # all ways write as many tokens
        raise SystemExit(1)
