"""Logits that are no numbers are refused on every runtime, by a line that names the model."""

import math

import pytest
import t5s
import torch
from test_runtime_fast import llama

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import check_logits
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.seq2seq import Seq2SeqModel


def spoil(model: torch.nn.Module, value: float) -> torch.nn.Module:
    """Every logit becomes NaN or infinite."""
    with torch.no_grad():
        model.get_output_embeddings().weight.fill_(value)
    return model


def reference(value: float | None, name: str) -> CachedModel:
    made = CachedModel(llama(), name)
    if value is not None:  # after it was probed, which would have refused it
        spoil(made.model, value)
    return made


def fast(value: float | None, name: str, edition: str = "exact") -> FastModel:
    model = llama()
    return FastModel(model if value is None else spoil(model, value), name, edition=edition)


def int8(value: float | None, name: str) -> FastModel:
    return fast(value, name, "int8")


def seq2seq(value: float | None, name: str) -> Seq2SeqModel:
    made = Seq2SeqModel(t5s.network("gated untied", dtype=torch.float32), name)
    if value is not None:
        spoil(made.model, value)
    return made


@pytest.mark.parametrize("make", [reference, fast, int8, seq2seq])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_the_model_whose_logits_are_no_numbers_is_named(make, value, unchecked):
    source = (3, 4, 5) if make is seq2seq else None
    context = Context.of((1, 2, 3), source)
    good, bad = make(None, "the good one"), make(value, "the bad one")
    for sampler in (Sampler(0), Sampler(1.0)):
        chance = Chance(0, sampler)
        assert decode(good, ChainDraft(good, 2), context, chance, max_new_tokens=4).tokens
        for target, draft in (
            (bad, NoDraft()),
            (good, ChainDraft(bad, 2)),
            (good, ChainDraft(bad, 2, siblings="iid")),
            (good, TreeDraft(bad, budget=3)),
        ):
            with pytest.raises(ValueError, match="the logits of the bad one must hold no NaN"):
                decode(target, draft, context, chance, max_new_tokens=4)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_row_is_enough(value):
    logits = torch.zeros(3, 5)
    check_logits(logits, "it")
    logits[1, 0] = -math.inf  # a token that is not scored
    check_logits(logits, "it")
    if value == -math.inf:
        logits[1] = value
    else:
        logits[1, 4] = value
    with pytest.raises(ValueError, match=f"the maximum of a row is {value}"):
        check_logits(logits, "it")


def test_a_model_whose_logits_are_no_numbers_is_refused_when_it_is_loaded():
    with pytest.raises(ValueError, match="llama gives logits that are NaN or infinite"):
        CachedModel(spoil(llama(), math.nan), "target")
