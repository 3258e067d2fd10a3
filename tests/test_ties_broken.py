"""Negative controls of near ties: models with wrong masks, caches or numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from fakes import table_model
from tiny import target_network

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.ties import BUG, near_tie, near_ties
from specdec_lib.measure.ties.near_ties import logit_movements
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.loading import DTYPES
from specdec_lib.models.students import build_student

SHORT = "def f(x):"  # so that one token more is seen


def small(dtype: str) -> CachedModel:
    """A tiny random target in which every token counts for those after it."""
    network = target_network(attention=1.0)
    with torch.no_grad():
        for layer in network.model.layers:
            layer.self_attn.q_proj.weight *= 0.3
    return CachedModel(network.to(DTYPES[dtype]), "target")


class Leaky(CachedModel):
    """A model in whose tree passes a node sees others too, those that `sees` says."""

    def __init__(self, model: CachedModel, sees) -> None:
        super().__init__(model.model, "target")
        begin = self._cache.begin

        def leaky(used: int, committed: int, paths: list[list[int]]) -> np.ndarray:
            seen = begin(used, committed, paths)
            lines = [[*range(committed), *one] for one in paths]
            for row, mine in enumerate(lines):
                seen[row, [other[-1] for other in lines if sees(mine, other)]] = True
            return seen

        self._cache.begin = leaky


def siblings(mine: list[int], other: list[int]) -> bool:
    return other[-1] <= mine[-1] and other[-2:-1] == mine[-2:-1]


def siblings_children(mine: list[int], other: list[int]) -> bool:
    return mine[-3:-2] == other[-3:-2] and mine[-2:-1] != other[-2:-1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_broken_tree_mask_is_a_bug(ladder, dtype):
    """Negative control: the broken model too sees its tree passes stand out of its plain ones."""
    right = small(dtype)
    broken, prompt = Leaky(right, siblings), ladder.encode(SHORT)
    draft = TreeDraft(CachedModel(build_student(right.model, [0]), "draft"), widths=(3, 2, 2))
    plain = decode(broken, NoDraft(), prompt, Chance(0), max_new_tokens=32).tokens
    assert plain == decode(right, NoDraft(), prompt, Chance(0), max_new_tokens=32).tokens
    other = decode(broken, draft, prompt, Chance(0), max_new_tokens=32).tokens
    tie = near_tie(broken, prompt, plain, other)
    assert tie.verdict == BUG
    assert tie.moved["a tree"] > 2 * max(size for way, size in tie.moved.items() if way != "a tree")
    assert near_tie(right, prompt, plain, other).verdict == BUG


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_children_of_wrong_siblings_must_not_be_seen(ladder, dtype):
    """Negative control."""
    context = Context.of(ladder.encode(SHORT))
    found = logit_movements(Leaky(small(dtype), siblings_children), context)
    plain = max(size for way, size in found.items() if way != "a tree")
    assert found["a tree"] > 4 * plain
    assert logit_movements(small(dtype), context)["a tree"] <= 2 * plain


class Rolled(CachedModel):
    """A model that hands over other tokens' logits where a pass has more than one row."""

    def run_rows(self, tokens, positions, paths, keep):
        logits = super().run_rows(tokens, positions, paths, keep)
        return logits.roll(7, dims=-1) if len(tokens) > 1 else logits


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_moves_its_plain_passes_beyond_rounding_is_a_bug(ladder, prompts, dtype):
    """Negative control: by its own noise every difference would be rounding."""
    right, prompt = small(dtype), ladder.encode(prompts[0])
    text = decode(right, NoDraft(), prompt, Chance(0), max_new_tokens=8).tokens
    row = right.score(now := Context.of(prompt).extended(text[:7]), TokenTree.rooted(now))[ROOT]
    other = (*text[:7], int(row.float().topk(3).indices[2]))
    tie = near_tie(Rolled(right.model, "target"), prompt, text, other)
    assert tie.verdict == BUG and tie.margin < tie.noise and tie.wild < tie.noise / 2
    largest = max(logit_movements(right, Context.of(prompt)).values())
    assert near_tie(right, prompt, text, other).wild > 8 * largest


@pytest.mark.parametrize("spoilt", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["a tree", "one pass"])
def test_what_is_not_finite_is_no_movement_only_where_both_rows_hold_it(spoilt, where, monkeypatch):
    model, context = table_model(5, 0, support=4), Context.of((1, 0, 2, 3))
    row = model.score(context, TokenTree.rooted(context))[ROOT]
    assert row.isinf().sum() == 1 and max(logit_movements(model, context).values()) < 1e-9
    name = "_through_tree" if where == "a tree" else "_read"
    honest = getattr(near_ties, name)

    def wrong(model, context, *rows):
        made = honest(model, context, *rows).clone()
        if rows in ((), (len(context),)):
            made[int(row.argmax())] = spoilt
        return made

    monkeypatch.setattr(near_ties, name, wrong)
    assert logit_movements(model, context)[where] == math.inf
    best, second = row.topk(2).indices.tolist()
    tie = near_tie(model, context, (best,), (second,))
    assert tie.verdict == replace(tie, gaps=(0.0, 0.0)).verdict == BUG
