"""Whether speculation pays for a pair of models on this machine, beside what Hugging Face does; and
where greedy texts part, and why.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.decode.loop import NewTokens
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.contenders import Contender, hugging_contenders, our_contenders
from specdec_lib.measure.latency.needed import usual_size
from specdec_lib.measure.near_ties import BUG, EARLY, VERDICTS, near_tie
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import sampling_of
from specdec_lib.measure.settings.compare import ASSISTED, EIGHT, READER, USUAL
from specdec_lib.measure.settings.names import GENERATE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.settings.usual import DEFAULT, usual_draft
from specdec_lib.measure.trial import trial_table
from specdec_lib.measure.tuned_methods import Lineup, method_contenders
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.generation import generation_notes
from specdec_lib.models.loading import why_not_fast
from specdec_lib.workload import DOMAINS, WHOLE, Ladder, Prompt, load_prompts, neutral

SHOWN = """method tokens_per_round acceptance_rate ms_per_token speed_up speed_up_low speed_up_high
    same""".split()
EQUAL = "equal"


def compared_contenders(
    ladder: Ladder, sampler: Sampler, own: Mapping[str, Draft]
) -> list[Contender]:
    """Those of `USUAL` for which the ladder has the parts, and our loop with drafts of one's own;
    each is a method.
    """
    precision = str(ladder.target.model.dtype).removeprefix("torch.")
    trees = [EIGHT] if ladder.reading is None else [EIGHT, READER]
    lineup = Lineup(built_on=trees, precision=precision)
    grids = {
        method: method_contenders({"ours": ladder}, sampler, method, lineup)
        for method in {method for method, _ in USUAL.values()}
    }
    found = {name: grids[method].get(setting) for name, (method, setting) in USUAL.items()}
    size = usual_size(ladder, sampler)
    drafts = {DEFAULT: usual_draft(ladder, sampler, size), **own}
    mine = [Setting(name, draft, sampler, method=name) for name, draft in drafts.items()]
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
    if taken := (own or {}).keys() & {*USUAL, DEFAULT}:
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


def heading(ladder: Ladder, sampler: Sampler, prompts: str, runtime: str) -> str:
    """What is compared, in lines: models, threads, prompts, sampler, and notes on the models."""
    cards = ladder.card["models"]
    sizes = [f"{name} {cards[name]['parameters']:,}" for name in ("target", "draft")]
    lines = [
        f"parameters: {', '.join(sizes)}; {ladder.target.runtime}; {torch.get_num_threads()}"
        " threads",
        f"{prompts}, {sampling_of(sampler.temperature, sampler.top_k)}",
    ]
    return "\n".join((*lines, *notes_on(ladder, runtime)))


def notes_on(ladder: Ladder, runtime: str) -> list[str]:
    """A line for each model that `auto` runs on the reference runtime, which says why, and for each
    of the target's generation settings that is not followed.
    """
    models = {"target": ladder.target, "draft": ladder.draft}
    reasons = {name: why_not_fast(one) for name, one in models.items() if runtime == "auto"}
    slow = [f"the {name} is not on the fast runtime: {one}" for name, one in reasons.items() if one]
    return [*slow, *generation_notes(ladder.target.model, ladder.tokenizer)]


def given_prompts(prompts: str, limit: int) -> list[Prompt]:
    """The first prompts of a set, of a domain the held-out ones, or of a file."""
    return load_prompts(prompts, "held-out" if prompts in DOMAINS else WHOLE, limit)


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
        generate, _ = hugging_contenders(GENERATE, model, model, Sampler(0))
        return found | {"generate": generate.run(prompt, tokens, 0).tokens}


def print_ties(ladder: Ladder, prompts: Sequence[Prompt], max_new_tokens: int) -> int:
    """Print every difference between the greedy texts of prompts; the exit status comes back: 1 if
    one is not rounding, else 0.
    """
    verdicts = []
    for note in generation_notes(ladder.target.model, ladder.tokenizer):
        print(note)
    for prompt in prompts:
        context = ladder.encode(prompt)
        most = ladder.target.max_positions - len(context)
        if max_new_tokens > most:
            raise ValueError(
                f"--max-new-tokens is 1 to {most} after the prompt {prompt.name},"
                f" got {max_new_tokens}"
            )
        texts = greedy_texts(ladder, context, max_new_tokens)
        for way in ("speculative", "generate"):
            tie = near_tie(ladder.target, context, texts["plain"], texts[way])
            verdicts.append(tie.verdict if tie else EQUAL)
            report = tie.report(ladder.text) if tie else EQUAL
            print(f"{prompt.name}, plain against {way}: {report}")
    print(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (EQUAL, *VERDICTS)))
    return int(BUG in verdicts or EARLY in verdicts)  # all ways write as many tokens
