"""The sweep itself: kept rows are read, and missing ones are decoded."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.kinds import checked
from specdec_lib.measure.sweep.grid import Setting, generation_row, generations
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import Ladder, Pair, Prompt


@checked
def sweep(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    texts: Sequence[Texts] = (),
    progress: bool = True,
    keep: str | Path | None = None,
) -> pd.DataFrame:
    """Decode every prompt under every setting, the settings interleaved within a prompt.

    texts    see `generations`
    keep     a folder where the rows of each finished prompt are kept, for sweeps of the same
             settings, models, seed, length, texts and code; a damaged file is decoded again

    The columns are: draft, temperature, top_k, top_p, rule, prompt; tokens, rounds, proposed,
    accepted, tried, repetition; per model its passes, its rows, and the length up to the
    round's root summed over its passes. They are the same whether the sweep was interrupted or not.
    """
    if not prompts:
        raise ValueError("a sweep needs prompts, got none")
    options = {"seed": seed, "max_new_tokens": max_new_tokens, "texts": texts}
    kept = Kept(Path(keep) / fingerprint(settings, ladder, options) if keep else None)

    def rows(prompt: Prompt) -> list[Row]:
        made = generations(settings, [prompt], ladder, **options, progress=False)
        return [generation_row(one, prompt, done, ladder.target.name) for one, _, done in made]

    bar = tqdm(prompts, "sweep", disable=not progress, mininterval=1)
    return pd.DataFrame([row for prompt in bar for row in kept.rows(prompt, partial(rows, prompt))])
