"""Trees and children that the fast runtime makes in one call are those of its logits; its room."""

import functools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numba import njit
from test_reading_model import pair
from test_runtime_fast import SAMPLERS, gpt2, llama, walk
from transformers import PreTrainedModel

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import MatchTable, Shape, TokenTree
from specdec_lib.drafts import ngram
from specdec_lib.drafts.cascade.reviewed import Reviewed
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cut_head import cut_head
from specdec_lib.models.fast import arithmetic, choices
from specdec_lib.models.fast.arithmetic import strip
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.katz.model import Katz

pytestmark = pytest.mark.usefixtures("unchecked")
BINNED = (0.5, 0.2, 0.1), (0.7, 0.2, 0.1), (0.9, 0.05, 0.01)
MATCH = MatchTable((0.7, 0.2, 0.1), "made up", (0.5, 2.0), BINNED)
SHAPES = [
    {"widths": (1, 1, 1, 1)},
    {"widths": (1, 1, 1, 1), "floor": 0.3},
    {"widths": (3, 2, 1)},
    {"budget": 7, "depth": 4},
    {"budget": 12, "depth": 6, "floor": 0.02},
    {"budget": 12, "depth": 6, "floor": 0.01, "deepen": 0.25},
    {"widths": (3, 2, 1), "deepen": 0.4},
]
DRAFTS = {
    "gpt2": lambda: FastModel(gpt2(), "draft"),
    "llama, cut": lambda: FastModel(cut(llama()), "draft"),
    "a window": lambda: FastModel(llama(), "draft", window=9),
    "reads its target": lambda: pair("fast", cut=True)[1],
}
SCOUTED = list(DRAFTS)[:3]  # a scout is left out of the last


def cut(network: PreTrainedModel) -> PreTrainedModel:
    """The network with a head that scores every third token and the prompt's."""
    cut_head(network, range(1, 61, 3))
    return network


def two(network: str) -> tuple[FastModel, FastModel]:
    return tuple(DRAFTS[network]() for _ in range(2))


def assert_same(tree: TokenTree, wanted: TokenTree) -> None:
    assert (tree.tokens, tree.parents) == (wanted.tokens, wanted.parents)
    assert tree.sources == wanted.sources
    assert tree.scores == pytest.approx(wanted.scores, rel=1e-5)


def assert_same_work(one: FastModel, other: FastModel) -> None:
    assert one.usage.passes == other.usage.passes and one.usage.rows == other.usage.rows


def long_way(draft: TreeDraft, model: FastModel) -> TreeDraft:
    return replace(draft, model=plain(model))


def plain(model: FastModel) -> LanguageModel:
    """The model without its choices of children: it cannot grow trees itself."""
    kept = "name vocabulary max_positions runtime usage target score forget".split()
    return SimpleNamespace(**{one: getattr(model, one) for one in kept})


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sampler", [*SAMPLERS, Sampler(0.8)], ids=str)
@pytest.mark.parametrize("network", DRAFTS)
def test_a_tree_grown_in_one_call_is_the_tree_grown_level_by_level(network, sampler, shape) -> None:
    grown, slow = two(network)
    quick = TreeDraft(grown, match=MATCH, **shape)
    for number, (context, _) in enumerate(walk(30, seed=4)):
        chance = Chance(number, sampler)
        tree = quick.propose(context, chance)
        assert_same(tree, long_way(quick, slow).propose(context, chance))
        # what was read on the way is known, and right
        assert torch.equal(grown.score(context, tree), slow.score(context, tree))
    assert grown.usage.passes > 30
    assert_same_work(grown, slow)


def test_every_token_of_a_large_head_competes_for_the_noise_without_top_k() -> None:
    """Most of 3,000 tokens lose by the bits of their noise alone."""
    network = gpt2(vocab_size=3000, n_layer=1)
    grown, slow = (FastModel(network, "draft") for _ in range(2))
    for number, temperature in enumerate((0.3, 1.0, 3.0, 30.0) * 8):
        context = Context.of([number, 5, 1000 + number])
        draft = TreeDraft(grown, widths=(6,), match=MATCH)
        given = context, Chance(number, Sampler(temperature))
        assert draft.propose(*given).tokens == long_way(draft, slow).propose(*given).tokens


@pytest.mark.parametrize("sampler", [*SAMPLERS[:2], Sampler(0.8), Sampler(1.0, top_p=0.9)], ids=str)
@pytest.mark.parametrize("network", DRAFTS)
def test_a_staged_tree_is_the_tree_grown_level_by_level(network: str, sampler: Sampler) -> None:
    staged, slow = two(network)
    scout = ChainDraft(FastModel(gpt2(n_layer=1), "scout"), 3)
    for shape in ({"budget": 9, "depth": 4}, {"shape": Shape((-1, 0, 0, 1, 1, 2, 3))}):
        draft = TreeDraft(staged, match=MATCH, **shape)
        for number, (context, _) in enumerate(walk(8, seed=7)):
            chance = Chance(number, sampler)
            staged.forget()
            slow.forget()
            tree = StagedTree(draft, scout, guided=2).propose(context, chance)
            wanted = long_way(draft, slow).propose(context, chance)
            assert_same(replace(tree, sources=wanted.sources), wanted)
    assert 0 < staged.usage.passes <= slow.usage.passes


@functools.cache
def table_of(network: str) -> Katz:
    """N-grams of what the network writes, so that its guesses are often right."""
    model, texts = DRAFTS[network](), []
    for seed, (context, _) in enumerate(walk(30, seed=4)):
        for sampler in (Sampler(0), Sampler(1.0)):
            chain = ChainDraft(model, 6).propose(context, Chance(seed, sampler))
            texts.append(np.array([*context.tokens[-2:], *chain.tokens[1:]]))
    return Katz.fit(texts, model.vocabulary)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sampler", [*SAMPLERS, Sampler(0.8)], ids=str)
@pytest.mark.parametrize("network", SCOUTED)
def test_a_staged_tree_grown_in_one_call_is_that_grown_pass_by_pass(network, sampler, shape):
    grown, slow = two(network)
    tree, scouted = TreeDraft(grown, match=MATCH, **shape), 0
    scouts = (NgramDraft(table_of(network), budget=5, depth=3), {"guided": 1})
    scouts = scouts, (NgramDraft(table_of(network), widths=(2, 2, 1, 1, 1)), {"guided": 3})
    for number, (context, _) in enumerate(walk(30, seed=4)):
        chance, (scout, options) = Chance(number, sampler), scouts[number % 2]
        quick = StagedTree(tree, scout, **options)
        found = quick.propose(context, chance)
        assert_same(found, replace(quick, draft=long_way(tree, slow)).propose(context, chance))
        assert torch.equal(grown.score(context, found), slow.score(context, found))
        scouted += found.sources.count("n-gram")
    assert_same_work(grown, slow)
    assert scouted > 10


REVIEWS = {
    "review": lambda model, scout: Reviewed(model, scout, match=MATCH),
    "comb": lambda model, scout: Reviewed(model, scout, width=3, match=MATCH),
    "staged chain": lambda model, scout: StagedChain(model, scout, 3, match=MATCH),
}


@pytest.mark.parametrize("make", REVIEWS.values(), ids=REVIEWS)
@pytest.mark.parametrize("sampler", [*SAMPLERS, Sampler(0.8)], ids=str)
@pytest.mark.parametrize("network", DRAFTS)
def test_a_review_by_ranked_children_is_that_by_logits(network, sampler, make, monkeypatch):
    grown, slow = two(network)
    scout, kept = NgramDraft(table_of(network), budget=6, depth=4), 0
    drafts = make(grown, scout), make(plain(slow), scout)
    monkeypatch.setattr(grown, "score", None)  # is not asked for logits
    for number, (context, _) in enumerate(walk(30, seed=4)):
        found, wanted = (draft.propose(context, Chance(number, sampler)) for draft in drafts)
        assert_same(found, wanted)
        kept += sum("n-gram" in source for source in found.sources)
    assert kept > 10
    assert_same_work(grown, slow)


GROWN = test_a_tree_grown_in_one_call_is_the_tree_grown_level_by_level
STAGED = test_a_staged_tree_grown_in_one_call_is_that_grown_pass_by_pass
REVIEWED = test_a_review_by_ranked_children_is_that_by_logits


def test_the_comparisons_catch_noise_of_another_position_and_another_scout(monkeypatch) -> None:
    with monkeypatch.context() as other:
        keys = choices.noise_keys  # those of the compiled calls alone
        other.setattr(choices, "noise_keys", lambda chance, *at: keys(chance, at[0] + 1, at[1]))
        for compare in (GROWN, STAGED):
            with pytest.raises(AssertionError):
                compare("llama, cut", SAMPLERS[1], SHAPES[3])
        for make in REVIEWS.values():
            with pytest.raises(AssertionError):
                REVIEWED("llama, cut", SAMPLERS[1], make, other)
    guess = ngram.grow_guesses  # not that of the compiled call
    monkeypatch.setattr(
        ngram, "grow_guesses", lambda *given: tuple(one[..., :3] for one in guess(*given))
    )
    with pytest.raises(AssertionError):
        STAGED("llama, cut", SAMPLERS[1], SHAPES[3])


def test_ties_at_the_end_of_a_top_k_are_kept_and_bad_logits_refused() -> None:
    model, given = gpt2(), (Context.of([1, 2, 3]), Chance(3, SAMPLERS[1]))
    with torch.no_grad():
        model.transformer.wte.weight.zero_()  # and the head's: every logit is 0
    grown, slow = (FastModel(model, "draft") for _ in range(2))
    quick = TreeDraft(grown, widths=(4, 1), match=MATCH)
    tree, wanted = quick.propose(*given), long_way(quick, slow).propose(*given)
    assert tree.tokens == wanted.tokens and max(tree.tokens) > 5
    with torch.no_grad():
        model.transformer.ln_f.bias[0] = float("nan")
    draft = FastModel(model, "draft")
    for sampler in SAMPLERS[:2]:
        with pytest.raises(ValueError, match="no NaN"):
            TreeDraft(draft, budget=3, match=MATCH).propose(given[0], Chance(0, sampler))


def test_a_tree_ends_where_the_context_is_full_and_a_huge_one_takes_the_long_way() -> None:
    model, full, short = FastModel(gpt2(), "draft"), [1] * 94, [1, 2]
    options = {"budget": None, "floor": 0.0, "match": MATCH}
    cases = (full, (1,) * 9, 3), (full, (2,) * 20, 14), (short, (2,) * 20, None)
    for tokens, widths, guesses in (*cases, (short, (100,), 61)):
        model.forget()  # else what is known is not read again, and the tree is grown level by level
        tree = model.grow(Context.of(tokens), Chance(0), widths=widths, **options)
        assert guesses == (tree and tree.guesses)


def test_room_is_made_for_longer_texts_and_not_for_unrelated_ones() -> None:
    model, fresh = (FastModel(gpt2(n_positions=600), name) for name in ("fast", "fresh"))
    model._buffers = model.weights.buffers(32)
    long = Context.of([number % 61 for number in range(300)])
    rows = [one.score(long, TokenTree.rooted(long)) for one in (model, fresh)]
    assert torch.equal(*rows) and model._buffers[1].shape[3] == 512
    small = FastModel(gpt2(), "fast")
    for first in range(60):
        context = Context.of([first, *range(30)])
        small.score(context, TokenTree.rooted(context))
    assert small._memory.used < 300 and small._buffers[1].shape[3] < 300


def test_the_largest_of_any_number_of_values_is_that_of_numpy() -> None:
    """The largest and the largest size, wherever it lies; a row's strip is its slice."""
    rng = np.random.default_rng(2)
    for count in range(1, 50):
        for place in range(count):
            numbers = -1 - rng.random(count, np.float32)
            numbers[place] = -1  # the largest, and the smallest in size
            assert arithmetic.largest_of(numbers, False) == -1
            numbers[place] = -3
            assert arithmetic.largest_of(numbers, True) == 3
            assert arithmetic.largest_of(numbers, False) == numbers.max()
    rows = rng.random((5, 40), np.float32)
    strips = [cut_and_sum(rows, row, 7, 20) for row in range(5)]
    assert strips == [cut_and_sum(rows[row : row + 1, 7:27].copy(), 0, 0, 20) for row in range(5)]
    assert strips != [cut_and_sum(rows, row, 8, 20) for row in range(5)]


@njit
def cut_and_sum(rows: np.ndarray, row: int, first: int, count: int) -> float:
    return strip(rows, row, first, count).sum()
