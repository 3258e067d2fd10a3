"""All methods race on a person's own prompts; the rows of a finished prompt may be kept, so that an
interrupted comparison goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft
from specdec_lib.measure.compare.verdict import HUGGING_PLAIN, PLAIN
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN, drafts
from specdec_lib.measure.race.harness import race_prompts, warm_up_text
from specdec_lib.measure.race.hugging import ASSIST, GENERATE, LOOKUP, hugging_contenders
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.workload import Ladder, Prompt, neutral

COLUMNS = """method prompt tokens timed_tokens seconds rounds accepted tried same margin rounding
    loops""".split()
EIGHT = "draft, budget 8, depth 4"
FED = f"tree of {EIGHT}; Max-Gram scout"
# by name, a method and its setting among those of `specdec bench`
USUAL = {
    PLAIN: (AUTOREGRESSIVE, TOKEN_BY_TOKEN),
    "Max-Gram, 8 copied tokens": ("n-gram", "Max-Gram, 8 tokens after 2 or more"),
    "chain of 2": ("chain", "draft, 2 tokens"),
    "chain of 4": ("chain", "draft, 4 tokens"),
    "best tree of 4": ("tree", "draft, budget 4, depth 4"),
    "best tree of 8": ("tree", EIGHT),
    "tree of 8 fed by Max-Gram": ("staged", FED),
    "the same beside 8 copied tokens": ("staged", f"{FED}; beside Max-Gram, 8 tokens"),
    "cascade: draft reviews Max-Gram": ("cascade", "draft, Max-Gram: 1 4 / 0 4"),
    "tree of 8 fed by n-grams": ("staged", f"tree of {EIGHT}; n-gram scout of 4"),
}
HUGGING = {
    HUGGING_PLAIN: (GENERATE, TOKEN_BY_TOKEN),
    "Hugging Face, prompt lookup": (LOOKUP, "10 tokens, endings of up to 2"),
    "Hugging Face, assisted": (ASSIST, "5 tokens, constant, confidence 0.4"),
}


def usual_drafts(ladder: Ladder, sampler: Sampler) -> dict[str, Draft]:
    """The drafts of `USUAL` for which the ladder has the parts: a handful, none of them tuned."""
    methods = {method for method, _ in USUAL.values()}
    grids = {method: drafts(ladder, sampler, method, [EIGHT]) for method in methods}
    found = {name: grids[method].get(setting) for name, (method, setting) in USUAL.items()}
    return {name: draft for name, draft in found.items() if draft is not None}


def compared_contenders(
    ladder: Ladder, drafts: Mapping[str, Draft], sampler: Sampler
) -> list[Contender]:
    """Our loop with each of these drafts, and Hugging Face's three ways; each is a method."""
    found = [
        ours(ladder.target, draft, sampler, method=name, runtime="ours", setting="untuned")
        for name, draft in drafts.items()
    ]
    greedy = sampler.temperature == 0  # Hugging Face draws its own noise
    return found + [
        replace(one, method=name, exact=greedy)
        for name, (method, setting) in HUGGING.items()
        for one in hugging_contenders(method, ladder.target.model, ladder.draft.model, sampler)
        if one.setting == setting
    ]


@checked
def compare_methods(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler = Sampler(0),
    *,
    own: Mapping[str, Draft] | None = None,
    max_new_tokens: int = 40,
    seed: int = 0,
    keep: str | Path | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """A row per method and prompt: tokens, those that were timed, seconds, rounds, accepted, tried,
    whether the text is the target's own.

    own     drafts of your own, by name, that are tried beside the usual ones
    keep    a folder where the rows of finished prompts are kept, and taken from when the same
            comparison is made again

    Every method continues a prompt by as many tokens as the target itself does, up to a stop token
    or `max_new_tokens`.  `margin` is, where a text is not the target's own, by how many nats the
    target preferred its own token where they part, and `rounding` whether that is rounding.  They
    are NaN and None where there is nothing to compare: Hugging Face draws its own noise.
    Raises ValueError if there is no prompt, one with its continuation does not fit into every
    model, or a draft has a name that is taken.
    """
    _check(ladder, prompts, max_new_tokens)
    usual = usual_drafts(ladder, sampler)
    if taken := (own or {}).keys() & {*usual, *HUGGING}:
        raise ValueError(f"a draft of your own needs a name of its own, got {', '.join(taken)}")
    tried = usual | dict(own or {})
    options = {"tokens": max_new_tokens, "seed": seed, "strict": False}
    options["warm_up"] = warm_up_text(ladder, sampler)
    if keep:
        what = fingerprint(ladder.target, tried, sampler, seed, max_new_tokens)
        options["folder"] = Path(keep) / f"compared-{what}"
    with neutral(ladder):  # assisted generation copies the draft's configuration as it finds it
        contenders = compared_contenders(ladder, tried, sampler)
        bar = tqdm(prompts, "compare", disable=not progress)
        raced = race_prompts(contenders, ladder, bar, **options)
        rows = pd.DataFrame(vars(timing) for timings in raced for timing in timings)
    return rows[COLUMNS].astype({"margin": float, "rounding": object, "same": object})


def _check(ladder: Ladder, prompts: Sequence[Prompt], max_new_tokens: int) -> None:
    if not prompts or max_new_tokens < 1:
        got = f"{len(prompts)} prompts, max_new_tokens={max_new_tokens}"
        raise ValueError(f"a comparison needs prompts, and at least 1 new token; got {got}")
    most = ladder.max_positions - max_new_tokens
    for prompt in prompts:
        if (length := len(ladder.encode(prompt))) > most:
            allowed = f"the smallest model reads at most {ladder.max_positions}"
            raise ValueError(
                f"the prompt {prompt.name} has {length} tokens: {allowed} with the new"
            )
