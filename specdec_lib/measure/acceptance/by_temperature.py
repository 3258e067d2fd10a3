"""How often the first guess of each guesser is right, by the temperature at which the target's text
is sampled: counted in one way, on the same prompts, at every temperature.
"""

from collections.abc import Sequence

import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance.prediction import position_rates, ranks_by_temperature
from specdec_lib.measure.replaying import generations
from specdec_lib.measure.settings.ladder_drafts import drafting_models
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.workload import Ladder, Prompt

PLACE = DATA / "measured" / "temperatures.csv"
TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5)
TEXT = 64  # tokens of each text that are counted, at most
NGRAM = "n-gram"
ORDER = ["guesser", "temperature", "rate", "low", "high", "at_risk", "prompts"]


def measure_temperatures(
    prompts: Sequence[Prompt],
    ladder: Ladder,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    progress: bool = True,
) -> pd.DataFrame:
    """A row per guesser (a model that drafts, or the n-gram table) and temperature: `rate`, how
    often the token that the target writes is its first guess under the noise of both, with a 95 %
    interval `low` to `high` over prompts, and `at_risk`, the tokens that were guessed.
    """
    tables = []
    guessers = _guessers(ladder)
    limits = {"max_new_tokens": TEXT, "progress": progress}
    for temperature in temperatures:
        sampler = Sampler(temperature)
        texts = texts_after(prompts, [sampler], ladder, max_new_tokens=TEXT)
        plain = Setting(f"T = {temperature:g}", NoDraft(), sampler)
        written = [*generations([plain], prompts, ladder, texts=texts, **limits)]
        for name, guesser in guessers.items():
            taken = ranks_by_temperature(written, guesser)[temperature]
            found = position_rates(taken, ranks=1)
            tables.append(found.assign(guesser=name, temperature=temperature))
    return pd.concat(tables, ignore_index=True)[ORDER]


def _guessers(ladder: Ladder) -> dict[str, Draft]:
    """What guesses, by name, each with its first guess alone."""
    found: dict[str, Draft] = {
        name: TreeDraft(model, widths=(1,)) for name, model in drafting_models(ladder).items()
    }
    if ladder.katz is not None:
        heat = ladder.card["katz"]["temperature"]
        found[NGRAM] = NgramDraft(ladder.katz, widths=(1,), counted_at=heat)
    return found
