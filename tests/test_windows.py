"""A model with a window has the logits of a masked pass over the whole text, at every edge, and
reads no more of a long prompt than these depend on.
"""

import pytest
import torch
from test_runtime_fast import SAMPLERS, llama, walk
from transformers import LlamaForCausalLM

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.fast.model import FastModel

KINDS = {"reference": CachedModel, "fast": FastModel}
WINDOWS = [1, 2, 5, 16, 17, 60, 96]  # a panel of cache entries has 16


@torch.no_grad()
def masked(network: LlamaForCausalLM, tokens: tuple[int, ...], window: int) -> torch.Tensor:
    """The logits after the last token of a text, of one pass without a cache."""
    behind = torch.arange(len(tokens))[:, None] - torch.arange(len(tokens))
    mask = (behind >= 0) & (behind < window)
    return network(torch.tensor([tokens]), attention_mask=mask[None, None]).logits[0, -1]


def texts(context: Context, tree: TokenTree) -> list[tuple[int, ...]]:
    return [(*context.tokens, *tree.path_tokens(node)) for node in range(len(tree))]


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_a_masked_pass_whatever_was_read_before(kind, window, layers):
    network = llama(num_hidden_layers=layers)
    model = KINDS[kind](network, kind, window=window)
    other = 0
    for context, tree in walk(20, seed=2):
        found = model.score(context, tree)
        for row, text in zip(found, texts(context, tree), strict=True):
            assert (row - masked(network, text, window)).abs().max() < 1e-4
            other += bool((row - masked(network, text, window + 1)).abs().max() > 1e-3)
    assert (other > 20) == (window < 96), "another window has other logits"


@pytest.mark.parametrize("window", WINDOWS)
def test_a_row_has_the_bits_that_it_has_on_its_own_with_a_window(window):
    network = llama()
    model, alone = (FastModel(network, name, window=window) for name in ("model", "alone"))
    for context, tree in walk(20, seed=3):
        for row, text in zip(model.score(context, tree), texts(context, tree), strict=True):
            alone.forget()
            own = Context.of(text)
            assert torch.equal(row, alone.score(own, TokenTree.rooted(own))[0])


@pytest.mark.parametrize(
    "layers, window, rows", [(1, 5, 5), (2, 5, 9), (3, 5, 13), (1, 60, 60), (2, 60, 90)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_long_prompt_the_last_tokens_are_read(kind, layers, window, rows):
    model = KINDS[kind](llama(num_hidden_layers=layers), kind, window=window)
    context = Context.of([number % 61 for number in range(90)])
    model.score(context, TokenTree.rooted(context))
    assert model.usage.rows == rows
    longer = context.extended([1, 2])
    model.score(longer, TokenTree.rooted(longer))
    assert model.usage.rows == rows + 2, "what was read is known"


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_draft_with_a_window_changes_no_token(kind, sampler):
    target = KINDS[kind](llama(), "target")
    draft = KINDS[kind](llama(), "draft", window=7)
    prompt = tuple(range(40))
    plain, found = (
        decode(target, guesser, prompt, Chance(1, sampler), max_new_tokens=40)
        for guesser in (NoDraft(), TreeDraft(draft, budget=6, depth=3))
    )
    assert found.tokens == plain.tokens and len(found.rounds) < len(plain.rounds)


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_of_no_token_is_refused_and_a_windowed_model_keeps_no_states(kind):
    with pytest.raises(ValueError, match="a window has 1 token or more, got 0"):
        KINDS[kind](llama(), kind, window=0)
    with pytest.raises(ValueError, match="sees a window only, and keeps no hidden states"):
        KINDS[kind](llama(num_hidden_layers=3), kind, window=4).keep_states([0])
