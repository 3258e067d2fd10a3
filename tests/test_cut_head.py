"""A cut head scores what the whole one scores, by token id, and costs no exactness."""

from dataclasses import replace

import pytest
import torch
from fakes import deviation, table_model
from transformers import LlamaConfig, LlamaForCausalLM

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.drafts.trees import ChainDraft, TreeDraft
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cut_head import cut_head
from specdec_lib.models.fast.model import FastModel

FREQUENT = range(0, 40, 3)
TREE = ((5, 0), (6, 0), (2, 1))  # token and parent of each node but the root


def network(vocabulary: int, width: int = 16) -> LlamaForCausalLM:
    """A random network in float64; the fast runtime takes one of width 32, in float32."""
    torch.manual_seed(3)
    sizes = {"hidden_size": width, "intermediate_size": 48, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "initializer_range": 0.7}
    return LlamaForCausalLM(LlamaConfig(vocab_size=vocabulary, **sizes, **heads)).double().eval()


def cut_model(vocabulary: int, frequent: tuple[int, ...]) -> CachedModel:
    found = network(vocabulary)
    cut_head(found, frequent)
    return CachedModel(found, "cut")


def scored(model: CachedModel | FastModel, context: Context) -> torch.Tensor:
    tokens, parents = zip(*TREE, strict=True)
    tree = TokenTree.rooted(context).grown(tokens, parents, source="test", scores=[0.5] * 3)
    return model.score(context, tree)


def test_the_rows_follow_their_network_to_another_precision():
    found = network(50)
    rows = cut_head(found, FREQUENT).scored_rows()
    assert found.bfloat16()(torch.tensor([[3, 4]])).logits.dtype == torch.bfloat16
    assert torch.equal(found.lm_head.rows, rows.bfloat16())


def test_random_numbers_belong_to_token_ids_not_to_places_in_the_head():
    """With equal noise a cut head chooses as the whole one; numbered by its own places not."""
    context = Context.of((7, 1, 7))
    whole = scored(CachedModel(network(9), "whole"), context)[0]
    cut = scored(cut_model(9, (0, 2, 5, 8)), context)[0]
    ids = torch.nonzero(~cut.isneginf())[:, 0]
    by_id, by_place = [], []
    for chance in (Chance(seed, Sampler(1.5)) for seed in range(200)):
        chosen = chance.choose(whole, 3)
        if chosen in ids:
            by_id.append(chance.choose(cut, 3) == chosen)
            by_place.append(int(ids[chance.choose(cut[ids], 3)]) == chosen)
    assert all(by_id) and len(by_id) > max(50, 1.2 * sum(by_place))


def careless(tree, target_logits, chance):
    """Takes the zeros of a row for a little probability, off the rest."""
    rows = [None if row is None else (row + 0.05) / (row + 0.05).sum() for row in tree.rows]
    return reject(replace(tree, rows=tuple(rows)), target_logits, chance)


@pytest.mark.parametrize("kind", ["chain", "tree without replacement"])
def test_reject_is_exact_where_the_drafts_rows_have_zeros(kind, unchecked):
    """Every branch of two rounds on four tokens, of which the head scores two and the prompt's."""
    model, target = cut_model(4, (2,)), table_model(4, 1)
    chain = ChainDraft(model, 2, siblings="iid")
    tree = TreeDraft(model, widths=(2, 1), siblings="distinct")
    draft = chain if kind == "chain" else tree
    assert deviation(target, draft, Sampler(1.0), length=2) < 1e-12
    assert deviation(target, draft, Sampler(1.0), careless, length=2) > 1e-3


def test_a_cut_head_scores_its_tokens_as_the_whole_head_does_on_both_runtimes():
    """Two prompts over the same tokens in turn and back; their rows differ, which is the control:
    logits of the other prompt, or of the head as it was read at first, would be seen.
    """
    networks = [network(61, width=32).float() for _ in range(4)]
    for found in networks[1:]:
        cut_head(found, FREQUENT)
    one, other = Context.of((50, 1, 50)).extended((7, 52)), Context.of((50, 1, 50, 7, 52))
    whole, reference = (CachedModel(found, "reference") for found in networks[:2])
    fast, stuck = (FastModel(found, "fast") for found in networks[2:])
    for context in (one, other, one, one.extended((41,)), other):
        wanted = scored(whole, context)
        kept = sorted({*FREQUENT, *context.prompt})
        for found in (scored(fast, context), scored(reference, context)):
            assert torch.equal(found[0].isfinite().nonzero()[:, 0], torch.tensor(kept))
            torch.testing.assert_close(found[:, kept], wanted[:, kept], atol=1e-5, rtol=1e-5)
    assert not torch.equal(scored(fast, one).isneginf(), scored(fast, other).isneginf())
    stuck._prepare = lambda *_: None
    assert scored(stuck, one)[0, 50].isneginf() and not scored(fast, one)[0, 50].isneginf()


def test_another_head_is_another_model_and_beyond_the_vocabulary_none():
    one, same, other = cut_model(9, (0, 2)), cut_model(9, (2, 0)), cut_model(9, (0, 3))
    scored(same, Context.of((7, 1)))  # what a prompt adds is no part of the model
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    with pytest.raises(ValueError, match="0 to 8"):
        cut_head(network(9), (3, 9))


@pytest.mark.parametrize("edition", ["exact", "int8"])
def test_a_prompt_without_tokens_of_its_own_follows_one_with_some(edition, unchecked):
    """Of a head whose frequent tokens fill whole panels."""
    whole = network(60, 32).float()
    cut_head(whole, range(16))
    model = FastModel(whole, "draft", edition=edition)
    for tokens in ((1, 40, 50), (2, 3)):
        context = Context.of(tokens)
        scored = model.score(context, TokenTree.rooted(context))[0].isfinite()
        assert scored.nonzero().flatten().tolist() == sorted({*range(16), *tokens})
