"""How far the int8 edition of a model is from the exact one, and that the measure would notice."""

import pandas as pd
import pytest
from test_runtime_fast import llama

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.int8_quality import edition_sums, summarise_editions
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel

PROMPT = (3, 1, 4, 1, 5)


def test_the_divergence_of_editions_is_small_and_of_another_model_is_not():
    exact, rounded = (FastModel(llama(), "m", edition=one) for one in ("exact", "int8"))
    reference, other = CachedModel(llama(), "m"), CachedModel(llama(num_attention_heads=2), "m")
    chance, rows = Chance(1, Sampler(1.0)), {}
    text = decode(reference, NoDraft(), PROMPT, chance, max_new_tokens=40).tokens
    for name, model in (("same", reference), ("int8", rounded), ("other", other)):
        found = edition_sums((exact, model), PROMPT, text)
        rows[name] = summarise_editions(pd.DataFrame(found)).set_index("edition").loc["int8"]
    assert rows["same"].divergence == pytest.approx(0, abs=1e-6) and rows["same"].same_choice == 1
    assert 1e-6 < rows["int8"].divergence < 0.1 < rows["other"].divergence
    assert rows["int8"].tokens == len(text) == 40 and rows["int8"].loss > 0
