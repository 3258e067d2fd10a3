"""Near ties: a difference within what rounding moves is rounding, what is broken is a bug."""

import math

import numpy as np
import pytest
import torch
from fakes import fixed_model, table_model
from tiny import target_network, tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure import comparing, near_ties
from specdec_lib.measure.near_ties import (
    BUG,
    EARLY,
    ROUNDING,
    logit_movements,
    near_tie,
    rounding_gaps,
)
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.loading import DTYPES, on_runtime
from specdec_lib.models.students import build_student
from tests.verbs import run

DTYPES_SEEN = pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
FEW = ["--device", "cpu", "--dtype", "float32", "--limit", "1", "--max-new-tokens", "6"]
SHORT = "def f(x):"  # so that one token more is seen


def small(dtype: str, *, attentive: bool = False) -> CachedModel:
    """A tiny random target; if attentive, every token counts for those after it."""
    network = target_network(attention=1.0) if attentive else target_network()
    with torch.no_grad():
        for layer in network.model.layers if attentive else ():
            layer.self_attn.q_proj.weight *= 0.3
    return CachedModel(network.to(DTYPES[dtype]), "target")


def test_equal_texts_part_nowhere_and_one_that_is_the_others_beginning_stops_early():
    assert near_tie(table_model(5, 0), (1, 0), (3, 2), (3, 2)) is None
    tie = near_tie(table_model(5, 0), (1, 0), (3, 2), (3, 2, 4))
    assert (tie.place, tie.tokens, tie.verdict) == (2, (None, 4), EARLY)
    assert tie.report().startswith("one stops early: the texts part at generated token 2, the end")


def test_the_two_best_of_a_near_tie_are_rounding_and_a_worse_token_is_a_bug(ladder, prompts):
    """The closest place of a real text is looked at, whatever this machine's kernels do there."""
    half, prompt = small("bfloat16"), ladder.encode(prompts[0])
    text = decode(half, NoDraft(), prompt, Chance(0), max_new_tokens=48).tokens
    context = Context.of(prompt)
    contexts = [context.extended(text[:place]) for place in range(48)]
    rows = [half.score(one, TokenTree.rooted(one))[ROOT].float() for one in contexts]
    leads = [float((top := row.topk(2).values)[0] - top[1]) for row in rows]
    place = leads.index(min(leads))
    best, second, *_, worse = rows[place].topk(12).indices.tolist()
    tie = near_tie(half, prompt, (*text[:place], best), (*text[:place], second))
    assert tie.verdict == ROUNDING and tie.place == place and tie.margin <= tie.noise < 0.5
    wrong = near_tie(half, prompt, (*text[:place], best), (*text[:place], worse))
    assert wrong.verdict == BUG and wrong.margin > 2 * wrong.noise
    assert wrong.report(ladder.text).startswith(f"bug: the texts part at generated token {place}, ")


@pytest.mark.parametrize("crooked, verdict", [(0.19, ROUNDING), (0.21, BUG)])
def test_a_crooked_tree_pass_is_a_bug_however_small_the_margin(crooked, verdict, monkeypatch):
    sizes = {"2 rows": 0.06, "the last bit": 0.1, "a tree": crooked}
    monkeypatch.setattr(near_ties, "logit_movements", lambda *_: sizes)
    tie = near_tie(fixed_model([0.5, 0.49, 0.01]), (1, 0), (0, 0), (0, 1))
    assert (tie.place, tie.verdict, tie.noise) == (1, verdict, 0.2)


def test_nothing_moves_in_float64_and_on_the_fast_runtime(ladder, prompts):
    context = Context.of(ladder.encode(prompts[0]))
    assert max(logit_movements(small("float64"), context).values()) < 1e-10
    found = logit_movements(on_runtime(small("float32"), "fast"), context)
    last = found.pop("the last bit")
    assert max(found.values()) == 0 < last < 1e-5


@DTYPES_SEEN
def test_the_precision_of_a_model_is_seen_in_its_logits(ladder, prompts, dtype):
    """A model may compute in another one than it hands over."""
    context = Context.of(ladder.encode(prompts[0]))
    row = small(dtype).score(context, TokenTree.rooted(context))[ROOT]
    assert (
        near_ties._epsilon(row)
        == near_ties._epsilon(row.double())
        == torch.finfo(DTYPES[dtype]).eps
    )


def test_sampled_texts_are_compared_with_their_noise():
    model, chance = table_model(5, 0), Chance(3, Sampler(0.5))
    row = model.score(now := Context.of((1, 0)), TokenTree.rooted(now))[ROOT]
    tokens, gaps = chance.rank(row, 2, 3)
    tie = near_tie(model, (1, 0), tokens[:1], tokens[2:3], chance)
    assert math.isclose(tie.margin, gaps[2]) and tie.verdict == BUG
    assert tie.noise == 4 * max(size for way, size in tie.moved.items() if way != "a tree")
    ends, apart = ((int(row.argmax()),), (int(row.argmin()),)), float(row.max() - row.min()) / 0.5
    for sampler, least in ((Sampler(0.5, top_k=1), apart), (Sampler(0.5, top_p=0.1), math.inf)):
        excluded = near_tie(model, (1, 0), *ends, Chance(3, sampler))
        assert excluded.margin >= least and excluded.verdict == BUG


def test_a_token_at_the_edge_of_top_k_is_as_far_away_as_the_edge():
    """Rounding decides which of two logits is the k-th: either text may be the model's own."""
    row = torch.tensor([2.0, 1.0, 0.5, 0.499, -9.0], dtype=torch.float64)
    sampler = Sampler(0.5, top_k=3)
    # of all five tokens
    wins = {Chance(seed, Sampler(0.5)).choose(row, 7): seed for seed in range(200)}
    entered = Chance(wins[3], sampler)
    chosen = entered.choose(row, 7)
    near = rounding_gaps(row, 7, (chosen, 3), entered)
    assert chosen != 3 and near == pytest.approx([0, 0.001 / 0.5])
    fallen = Chance(wins[2], sampler)  # where token 2 falls out, the best of the others is written
    others = Chance(wins[2], Sampler(0.5, top_k=2)).choose(row, 7)
    assert rounding_gaps(row, 7, (2, others), fallen)[0] == 0
    assert rounding_gaps(row, 7, (others,), fallen)[0] <= 0.002 + 1e-9
    assert rounding_gaps(row, 7, (4,), fallen)[0] >= 9.5 / 0.5  # control: far below the edge
    far = Chance(wins[0], sampler)  # so is what loses to a token that is no edge case
    assert rounding_gaps(row, 7, (3,), far)[0] == pytest.approx(
        min(Chance(wins[0], Sampler(0.5)).gaps(row, 7, (3,))[0], (2.0 - 0.499) / 0.5)
    )


class Leaky(CachedModel):
    """A model in whose tree passes a node sees others too, those that `sees` says."""

    def __init__(self, model: CachedModel, sees) -> None:
        super().__init__(model.model, "target")
        begin = self._cache.begin

        def leaky(used: int, committed: int, paths: list[list[int]], window: None) -> np.ndarray:
            seen = begin(used, committed, paths, window)
            lines = [[*range(committed), *one] for one in paths]
            for row, mine in enumerate(lines):
                seen[row, [other[-1] for other in lines if sees(mine, other)]] = True
            return seen

        self._cache.begin = leaky


@DTYPES_SEEN
def test_a_broken_tree_mask_is_a_bug(ladder, dtype):
    """Negative control: the broken model too sees its tree passes stand out of its plain ones."""
    right = small(dtype, attentive=True)

    def elder(mine: list[int], other: list[int]) -> bool:
        return other[-1] <= mine[-1] and other[-2:-1] == mine[-2:-1]

    broken, prompt = Leaky(right, elder), ladder.encode(SHORT)
    draft = TreeDraft(CachedModel(build_student(right.model, [0]), "draft"), widths=(3, 2, 2))
    plain = decode(broken, NoDraft(), prompt, Chance(0), max_new_tokens=32).tokens
    assert plain == decode(right, NoDraft(), prompt, Chance(0), max_new_tokens=32).tokens
    other = decode(broken, draft, prompt, Chance(0), max_new_tokens=32).tokens
    tie = near_tie(broken, prompt, plain, other)
    assert tie.verdict == BUG
    assert tie.moved["a tree"] > 2 * max(size for way, size in tie.moved.items() if way != "a tree")
    assert near_tie(right, prompt, plain, other).verdict == BUG


@DTYPES_SEEN
def test_the_children_of_wrong_siblings_must_not_be_seen(ladder, dtype):
    """Negative control."""
    context = Context.of(ladder.encode(SHORT))

    def cousins(mine: list[int], other: list[int]) -> bool:
        return mine[-3:-2] == other[-3:-2] and mine[-2:-1] != other[-2:-1]

    found = logit_movements(Leaky(small(dtype, attentive=True), cousins), context)
    plain = max(size for way, size in found.items() if way != "a tree")
    assert found["a tree"] > 4 * plain
    assert logit_movements(small(dtype, attentive=True), context)["a tree"] <= 2 * plain


class Rolled(CachedModel):
    """A model that hands over other tokens' logits where a pass has more than one row."""

    def run_rows(self, tokens, positions, paths, keep):
        logits = super().run_rows(tokens, positions, paths, keep)
        return logits.roll(7, dims=-1) if len(tokens) > 1 else logits


@DTYPES_SEEN
def test_a_model_that_moves_its_plain_passes_beyond_rounding_is_a_bug(ladder, prompts, dtype):
    """Negative control: by its own noise every difference would be rounding."""
    right, prompt = small(dtype, attentive=True), ladder.encode(prompts[0])
    text = decode(right, NoDraft(), prompt, Chance(0), max_new_tokens=8).tokens
    row = right.score(now := Context.of(prompt).extended(text[:7]), TokenTree.rooted(now))[ROOT]
    other = (*text[:7], int(row.float().topk(3).indices[2]))
    tie = near_tie(Rolled(right.model, "target"), prompt, text, other)
    assert tie.verdict == BUG and tie.margin < tie.noise
    moved = logit_movements(right, Context.of(prompt))
    allowed = moved["the last bit"] * min(near_ties.BITS, near_ties.SHARE / near_ties._epsilon(row))
    assert allowed > 8 * max(moved.values())


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
    assert near_tie(model, context.tokens, (best,), (second,), floor=9.0).verdict == BUG


def test_the_command_prints_every_difference_and_fails_on_a_bug(capsys, monkeypatch):
    monkeypatch.setattr(
        "specdec_lib.workload.load_ladder", lambda *_, dtype, **__: tiny_ladder(dtype)
    )
    assert run("ties", *FEW) == 0
    out = capsys.readouterr().out
    assert out.endswith("2 equal, 0 rounding, 0 bug, 0 one stops early\n")
    right = comparing.greedy_texts

    def wrong(ladder, prompt, tokens):
        texts = right(ladder, prompt, tokens)
        *begun, last = texts["plain"]
        other = (*begun, (last + 1) % ladder.target.vocabulary)
        return texts | {"speculative": tuple(begun), "generate": other}

    monkeypatch.setattr(comparing, "greedy_texts", wrong)
    assert run("ties", *FEW) == 1
    out = capsys.readouterr().out
    assert "plain against generate: bug: the texts part at generated token 5" in out
    assert out.endswith("0 equal, 0 rounding, 1 bug, 1 one stops early\n")
    with pytest.raises(ValueError, match="got 4000"):
        run("ties", *FEW[:-1], "4000")
