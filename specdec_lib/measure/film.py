"""A few rounds of several methods, pass by pass: what each waits for, at stored pass times."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import pandas as pd

from specdec_lib.core.decode import Round
from specdec_lib.core.protocols import Draft
from specdec_lib.measure.price_map import CONTEXT, TARGET
from specdec_lib.measure.replaying import generations
from specdec_lib.measure.settings.setting import GREEDY, Setting
from specdec_lib.measure.target_text import TargetText
from specdec_lib.theory import PassTable
from specdec_lib.workload import Ladder, Prompt

ROUNDS = 3
FIRST = 1  # the rounds before it, in which drafts read the prompt, are left out
TOKENS = 64  # of the text, at most: enough for these rounds


def film(
    ladder: Ladder,
    drafts: Mapping[str, Draft],
    prompt: Prompt,
    texts: Sequence[TargetText],
    tables: Mapping[str, PassTable],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """A row per pass of `ROUNDS` rounds of each method, greedily along a stored text, in order, as
    `figures.film_strip` takes it: `method`, `round`, `model`, `rows`, `start` and `milliseconds`,
    `inside` and `said`. What happens outside the models is not in it.

    drafts    by the method's name
    texts     what the target writes after the prompt
    tables    pass times by model, as `pass_tables` gives them

    Raises ValueError if a text ends before a method had its rounds.
    """
    settings = [Setting(name, draft, GREEDY) for name, draft in drafts.items()]
    found = []
    limits = {"seed": seed, "max_new_tokens": TOKENS, "progress": False}
    for setting, _, generation in generations(settings, [prompt], ladder, texts=texts, **limits):
        few = generation.rounds[FIRST : FIRST + ROUNDS]
        if len(few) < ROUNDS:
            raise ValueError(
                f"{setting.name} has {len(generation.rounds)} rounds in what the target writes"
                f" after {prompt.name}, {FIRST + ROUNDS} are needed: take another prompt"
            )
        rows = [one for number, played in enumerate(few) for one in _passes(played, number, tables)]
        ends = [*accumulate(one["milliseconds"] for one in rows)]
        tokens = sum(len(played.emitted) for played in few)
        said = f"{tokens} tokens in {ends[-1]:.0f} ms"
        for row, start in zip(rows, [0.0, *ends], strict=False):
            found.append({"method": setting.name, **row, "start": start, "said": ""})
        found[-1]["said"] = said
    return pd.DataFrame(found)


def _passes(played: Round, number: int, tables: Mapping[str, PassTable]) -> list[dict]:
    """The passes of one round: the drafts' one after the other, then the target's."""
    found = []
    for model, usage in played.usage.items():
        if model == TARGET or not usage.passes:
            continue
        size = -(-usage.rows // usage.passes)  # that of the mean pass
        time = 1000 * tables[model].at(size, CONTEXT)
        one = {"round": number, "model": model, "rows": size, "milliseconds": time, "inside": ""}
        found += [dict(one) for _ in range(usage.passes)]
    size = played.proposed + 1
    time = 1000 * tables[TARGET].at(size, CONTEXT)
    won = f"+{len(played.emitted)}"
    own = {"round": number, "model": TARGET, "rows": size, "milliseconds": time, "inside": won}
    return [*found, own]
