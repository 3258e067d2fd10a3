"""Near ties: a difference within what rounding moves is rounding; what is broken is a bug."""

import math

import pytest
import torch
from bugs import believing
from fakes import Table, table_model
from tiny import target_network

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.measure.ties import BUG, EARLY, ROUNDING, NearTie, near_tie
from specdec_lib.measure.ties.near_ties import logit_movements, rounding_gaps
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.loading import DTYPES, fast_model


def small(dtype: str) -> CachedModel:
    """A tiny random target."""
    return CachedModel(target_network().to(DTYPES[dtype]), "target")


@pytest.fixture(scope="module")
def half() -> CachedModel:
    return small("bfloat16")


def test_equal_texts_part_nowhere_and_one_that_is_the_others_beginning_stops_early():
    assert near_tie(table_model(5, 0), (1, 0), (3, 2), (3, 2)) is None
    tie = near_tie(table_model(5, 0), (1, 0), (3, 2), (3, 2, 4))
    assert (tie.place, tie.tokens, tie.verdict) == (2, (None, 4), EARLY)
    assert tie.report().startswith("one stops early: the texts part at generated token 2, the end")


def test_real_differences_in_bfloat16_are_rounding(half, ladder, unchecked):
    """On prompts that a search found; each difference must be explained, on any machine."""
    parted = 0
    for number in (0, 3, 6, 19, 21, 28):
        prompt = ladder.encode(f"def f{number}(x):\n    return x +")
        drafts = (NoDraft(), NgramDraft(ladder.katz, budget=12), MaxGram(ladder.katz.bigrams(), 5))
        made = (decode(half, draft, prompt, Chance(0), max_new_tokens=16) for draft in drafts)
        plain, *others = made
        for other in others:
            tie = near_tie(half, prompt, plain.tokens, other.tokens)
            assert tie is None or (tie.verdict == ROUNDING and tie.margin <= 0.13), tie
            parted += tie is not None
    if not parted:
        pytest.skip("none of these texts parts with this machine's kernels")


def test_the_two_best_of_a_near_tie_are_rounding_and_a_worse_token_is_a_bug(half, ladder, prompts):
    """At the closest place of a real text, whatever this machine's kernels do there."""
    prompt = ladder.encode(prompts[0])
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


def test_a_rule_that_believes_its_draft_is_a_bug_in_any_precision(ladder, prompts):
    """Negative control: the speculative text is wrong, not rounded."""
    prompt, draft = ladder.encode(prompts[1]), NgramDraft(ladder.katz, budget=6)
    for dtype in ("float32", "bfloat16"):
        model = small(dtype)
        plain, wrong = (
            decode(model, one, prompt, Chance(0), max_new_tokens=16, **rule).tokens
            for one, rule in ((NoDraft(), {}), (draft, {"rule": believing}))
        )
        assert near_tie(model, prompt, plain, wrong).verdict == BUG


def test_a_crooked_tree_pass_is_a_bug_however_small_the_margin():
    sizes = {"2 rows": 0.06, "the last bit": 0.1}
    assert NearTie(3, (1, 2), (0.0, 0.05), sizes | {"a tree": 0.19}).verdict == ROUNDING
    assert NearTie(3, (1, 2), (0.0, 0.05), sizes | {"a tree": 0.21}).verdict == BUG


def test_nothing_moves_in_float64_and_on_the_fast_runtime(ladder, prompts):
    context = Context.of(ladder.encode(prompts[0]))
    assert max(logit_movements(small("float64"), context).values()) < 1e-10
    found = logit_movements(fast_model(small("float32")), context)
    last = found.pop("the last bit")
    assert max(found.values()) == 0 < last < 1e-5


class HandsOverFloat32(Table):
    """A model that computes in another precision, and does not say so."""

    def __init__(self, model: CachedModel) -> None:
        self.name, self.vocabulary = model.name, model.vocabulary
        self.max_positions, self.forget = model.max_positions, model.forget
        self.score = lambda context, tree: model.score(context, tree).float()


def test_the_precision_of_a_model_is_seen_in_its_logits(half, ladder, prompts):
    context = Context.of(ladder.encode(prompts[0]))
    models = (half, HandsOverFloat32(half), HandsOverFloat32(small("float32")))
    said, hidden, exact = (logit_movements(model, context)["the last bit"] for model in models)
    assert said == hidden > 10_000 * exact > 0


def test_sampled_texts_are_compared_with_their_noise():
    model, chance = table_model(5, 0), Chance(3, Sampler(0.5))
    row = model.score(now := Context.of((1, 0)), TokenTree.rooted(now))[ROOT]
    tokens, gaps = chance.rank(row, 2, 3)
    tie = near_tie(model, (1, 0), tokens[:1], tokens[2:3], chance)
    assert math.isclose(tie.margin, gaps[2]) and tie.scale == 0.5 and tie.verdict == BUG
    ends = (int(row.argmax()),), (int(row.argmin()),)
    excluded = near_tie(model, (1, 0), *ends, Chance(3, Sampler(0.5, top_k=1)))
    assert excluded.margin >= float(row.max() - row.min()) / 0.5 and excluded.verdict == BUG
    cut = near_tie(model, (1, 0), *ends, Chance(3, Sampler(0.5, top_p=0.1)))
    assert math.isinf(cut.margin) and cut.verdict == BUG


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
