"""How often an n-gram table foresees what a model chooses, along texts that the target wrote."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.measure.cascade.record import record
from specdec_lib.measure.ratios import interval, named_interval, sampling_of
from specdec_lib.measure.target_text import TargetText
from specdec_lib.models.katz.model import Katz
from specdec_lib.workload import Ladder, Prompt, seeds

ORDER = 3  # tokens of the longest n-gram: a table looks at one fewer
RANKS = 4  # guesses that are looked at
TEXT_TOKENS = 128  # of each text
# the chance of a text, and per token the ORDER before it, its position, and the model's choice
Along = list[tuple[Chance, list[tuple[tuple[int, ...], int, int]]]]


def places(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    texts: Sequence[TargetText] | None,
    *,
    seed: int = 0,
) -> dict[str, Along]:
    """Per draft model the first TEXT_TOKENS places of each text, with its chance.

    texts    what the target writes under this sampler and seed; without them it is decoded here
    """
    recorded = record(
        prompts,
        ladder,
        sampler,
        seed=seed,
        max_new_tokens=TEXT_TOKENS,
        texts=texts,
        progress=False,
    )
    found: dict[str, Along] = {}
    for prompt, own_seed, one in zip(prompts, seeds(prompts, seed), recorded, strict=True):
        given = ladder.encode(prompt)
        text = given + one.tokens
        for model, choices in one.choices.items():
            numbered = zip(range(len(given), len(text)), choices.tokens, strict=False)
            own = [(text[max(0, at - ORDER) : at], at, token) for at, token in numbered]
            found.setdefault(model, []).append((Chance(own_seed, sampler), own))
    return found


def knows(table: Katz, along: Along, counted_at: float) -> dict[str, float]:
    """How often the model's choice is the table's first guess, and among its first RANKS; the
    microseconds of a lookup.
    """
    guesser = NgramDraft(table, widths=(1,), counted_at=counted_at)
    hits = np.zeros((len(along), RANKS))
    seconds = 0.0
    for number, (chance, own) in enumerate(along):
        for window, at, token in own:
            guesses = guesser.rank(window, RANKS, chance, at)[0]
            hits[number, : len(guesses)] += np.array(guesses) == token
        started = time.perf_counter()
        for window, *_ in own:
            table.top(window, RANKS)
        seconds += time.perf_counter() - started
    sizes = [len(own) for _, own in along]
    found = {"prompts": len(sizes), "places": sum(sizes)}
    found |= {"lookup_microseconds": 1e6 * seconds / sum(sizes)}
    found |= named_interval("first", interval(hits[:, 0], sizes, share=True))
    return found | named_interval("among_4", interval(hits.sum(axis=1), sizes, share=True))


def foresight_table(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    texts: Mapping[Sampler, Sequence[TargetText]],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """`knows` of the ladder's own table: a row per sampler and draft model, with `sampling` and
    `model`.

    texts    per sampler what the target writes under it; none: it is decoded here

    Raises ValueError for a ladder without an n-gram table.
    """
    if ladder.katz is None:
        raise ValueError("this ladder has no n-gram table; `specdec distil` counts one")
    counted_at = ladder.card["katz"]["temperature"]
    rows = []
    for sampler, written in texts.items():
        of_models = places(ladder, prompts, sampler, written or None, seed=seed)
        for model, along in of_models.items():
            head = {"sampling": sampling_of(sampler.temperature, sampler.top_k), "model": model}
            rows.append(head | knows(ladder.katz, along, counted_at))
    return pd.DataFrame(rows)
