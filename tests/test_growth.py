"""The growth of the n-gram stage: counted on texts of the target, at what the draft takes there."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_distil import HEAD, network
from tiny import written_text

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.foresight import foresight_table, knows, places
from specdec_lib.measure.target_text import find_text
from specdec_lib.measure.text_writing import write_texts
from specdec_lib.models import batched
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.students import build_student
from specdec_lib.suite.distil import ngrams
from specdec_lib.suite.distil.ngrams import grow
from specdec_lib.suite.distil.shards import Conversation
from tests.verbs import run


def test_a_table_of_the_very_texts_knows_more_than_one_of_other_texts(ladder, prompts):
    """Where the draft is the target, it takes what is written."""
    same = replace(ladder, draft=ladder.target)
    stored = write_texts(same, prompts[:3], Sampler(0), max_new_tokens=128)
    along = places(same, prompts[:3], Sampler(0), stored)["draft"]
    texts = [tuple(token for *_, token in own) for _, own in along]
    assert texts == [find_text(stored, one).tokens for one in prompts[:3]]
    fitted = (
        Katz.fit(some, ladder.katz.vocabulary)
        for some in ([*map(np.array, texts)], [*written_text()[:3]])
    )
    known, other = (knows(table, along, 1.0) for table in fitted)
    assert known["places"] == other["places"] == sum(map(len, texts))
    assert other["first"] < known["first"] and 0.9 < known["among_4"] <= 1


def test_the_ladders_own_table_is_looked_up_for_every_draft_model(ladder, prompts):
    """Texts are those given, or are decoded; another seed has other places at temperature 1."""
    samplers = [Sampler(0), Sampler(1.0)]
    limits = {"max_new_tokens": 128}
    stored = {one: write_texts(ladder, prompts[:2], one, **limits) for one in samplers}
    found = foresight_table(ladder, prompts[:2], stored)
    models = {"draft", "middle"} if ladder.middle is not None else {"draft"}
    assert set(found.model) == models and set(found.sampling) == {"greedy", "T = 1"}
    assert found["first"].between(0, 1).all() and (found["first"] <= found.among_4).all()
    shown = ["sampling", "model", "places", "first", "among_4"]
    decoded = foresight_table(ladder, prompts[:2], dict.fromkeys(samplers, ()))
    assert decoded[shown].equals(found[shown])
    other = foresight_table(ladder, prompts[:2], dict.fromkeys(samplers, ()), seed=5)
    assert not other[shown].equals(found[shown])
    with pytest.raises(ValueError, match="has no n-gram table"):
        foresight_table(replace(ladder, katz=None), prompts[:1], stored)


def test_more_samples_are_a_larger_table_and_pruning_keeps_a_part(ladder, prompts, monkeypatch):
    samples = written_text()[:, 2:]
    for name, value in {"PIECE": samples.size, "BYTES": 4_000, "SIZES": (0.25, 1)}.items():
        monkeypatch.setattr(ngrams, name, value)
    along = {
        name: places(ladder, prompts[:1], sampler, write_texts(ladder, prompts[:1], sampler))[
            "draft"
        ]
        for name, sampler in ngrams.SAMPLERS.items()
    }
    table = grow(ladder.katz.vocabulary, samples, along)
    assert len(table) == 8 and set(table.sampling) == {"greedy", "T = 1"}
    sizes = table.set_index(["millions", "table"]).ngrams.groupby(level=[0, 1]).first()
    assert sizes[0.25, "whole"] < sizes[1, "whole"] > sizes[1, "pruned"]
    assert sizes[1, "whole"] == Katz.fit(list(samples), ladder.katz.vocabulary).ngrams
    assert table[table.table == "pruned"].bytes.max() <= 4_000


def test_more_than_there_was_sampled_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="4 million sampled tokens are wanted"):
        run("measure", "growth")


def test_samples_are_drawn_within_the_head_at_temperature_1_5(monkeypatch):
    """4,000 samples of one token fit T = 1.5, and do not fit another temperature."""
    for name, value in {"ROWS": 4000, "GIVEN": 3, "LENGTH": 1}.items():
        monkeypatch.setattr(ngrams, name, value)
    monkeypatch.setattr(batched, "fastest_dtype", lambda *device: torch.float32)
    student = build_student(network(), (0,))
    one = [Conversation((5, 9, 13, 7), ((3, 4),), True, True, "chat")]
    found, again = (list(ngrams.sample(student, HEAD, one, seed, tokens=4000)) for seed in (1, 2))
    assert len(found) == 4000 and not np.array_equal(found, again)
    counts = np.bincount(np.concatenate(found), minlength=60)
    assert counts[[token for token in range(60) if token not in HEAD]].sum() == 0
    with torch.no_grad():
        logits = student(torch.tensor([[5, 9, 13]])).logits[0, -1, HEAD]
    surprising = {}  # Pearson's statistic by temperature, about 29 for a match
    for temperature in (1.5, 1.2):
        wanted = 4000 * (logits / temperature).softmax(-1).numpy()
        surprising[temperature] = float(((counts[HEAD] - wanted) ** 2 / wanted).sum())
    assert surprising[1.5] < 70 < 100 < surprising[1.2]
