"""All methods race on a person's own prompts; the rows of a finished prompt may be kept, so that an
interrupted comparison goes on.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.measure.compare.methods import FOREIGN, compared_contenders, usual_drafts
from specdec_lib.measure.race.harness import Timing, race, target_texts
from specdec_lib.measure.sweep.identity import code, fingerprint
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.workload import Ladder, Prompt, neutral

if TYPE_CHECKING:
    from pandas import DataFrame


def compare_methods(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler = Sampler(0),
    *,
    own: Mapping[str, Draft] | None = None,
    max_new_tokens: int = 40,
    seed: int = 0,
    repeats: int = 1,
    keep: str | Path | None = None,
    progress: bool = True,
) -> "DataFrame":
    """A row per method and prompt: tokens, those that were timed, seconds, rounds, accepted, tried,
    whether the text is the target's own.

    own        drafts of your own, by name, that are tried beside the usual ones
    repeats    of every method on each prompt; the fastest counts
    keep       a folder where the rows of finished prompts are kept, and taken from when the same
               comparison is made again

    Every method continues a prompt by as many tokens as the target itself does, up to a stop token
    or `max_new_tokens`; reading the prompt is left out of every time, and all models are warm.
    `margin` is, where a text is not the target's own, by how many nats the target preferred its own
    token where they part, and `rounding` whether that is rounding, coarse in low precision. They
    are NaN and None where there is nothing to compare: Hugging Face draws its own noise.
    Raises ValueError if there is no prompt, one with its continuation does not fit into every
    model, or a draft has a name that is taken.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    _check(ladder, prompts, max_new_tokens, repeats)
    usual = usual_drafts(ladder, sampler)
    if taken := set(own or {}) & {*usual, *FOREIGN}:
        raise ValueError(
            f"a draft of your own needs a name of its own, got {', '.join(sorted(taken))}"
        )
    drafts = usual | dict(own or {})
    kept, found = None, dict.fromkeys(prompts)
    if keep:
        what = (ladder.target, drafts, sampler, seed, max_new_tokens, repeats, code(race, _row))
        count = len(drafts) + len(FOREIGN)
        kept = Kept(Path(keep) / f"compared-{fingerprint(*what)}", count)
        found = {prompt: kept.read(prompt) for prompt in prompts}
    missing = [prompt for prompt, rows in found.items() if rows is None]
    with neutral(ladder):  # assisted generation copies the draft's configuration as it finds it
        contenders = compared_contenders(ladder, drafts, sampler)
        texts = target_texts(ladder, missing, sampler, tokens=max_new_tokens, seed=seed)
        timings = race(contenders, texts, ladder.target, seed=seed, repeats=repeats, strict=False)
        bar = tqdm(missing, desc="compare", disable=not progress)
        for prompt, made in zip(bar, timings, strict=True):
            found[prompt] = list(map(_row, made))
            if kept:
                kept.write(prompt, found[prompt])
    table = pd.DataFrame(row for prompt in prompts for row in found[prompt])
    return table.astype({"margin": float, "rounding": object, "same": object})


def _row(timing: Timing) -> Row:
    return {
        "method": timing.method,
        "prompt": timing.prompt,
        "tokens": timing.tokens,
        "timed_tokens": timing.timed_tokens,
        "seconds": timing.least_seconds,
        "rounds": timing.rounds,
        "accepted": timing.accepted,
        "tried": timing.tried,
        "same": timing.same,
        "margin": None if math.isnan(timing.margin) else timing.margin,
        "rounding": timing.rounding,
        "loops": timing.loops,
    }


def _check(ladder: Ladder, prompts: Sequence[Prompt], max_new_tokens: int, repeats: int) -> None:
    if not prompts or max_new_tokens < 1 or repeats < 1:
        raise ValueError(
            f"a comparison needs prompts, and at least 1 new token and 1 repeat; got {len(prompts)}"
            f" prompts, max_new_tokens={max_new_tokens}, repeats={repeats}"
        )
    for prompt in prompts:
        length = len(ladder.encode(prompt))
        if length + max_new_tokens > ladder.max_positions:
            raise ValueError(
                f"the prompt {prompt.name} has {length} tokens, and {max_new_tokens} more do not"
                f" fit: the smallest model reads at most {ladder.max_positions}"
            )
