"""The cache is pure: in any order its logits are those of an uncached forward."""

import random
from itertools import pairwise

import pytest
import torch
import transformers as hub
from caches import break_once, largest_error, random_tree, uncached
from fakes import assert_refused

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.key_values import KeyValues
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.probing import plain_tokens

VOCABULARY, POSITIONS = 17, 64
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48}
SMALL |= {"num_hidden_layers": 2, "num_attention_heads": 4}
WINDOW = SMALL | {"num_key_value_heads": 2}
LOCAL = {"sliding_window": 9, "head_dim": 8}
LOCAL |= {"layer_types": ["sliding_attention", "full_attention"]}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4}
GPT2 |= {"bos_token_id": 0, "eos_token_id": 0}
MAKERS = {  # the model's class, and the sizes of its configuration
    "gpt2": (hub.GPT2LMHeadModel, GPT2),
    "llama": (hub.LlamaForCausalLM, SMALL),
    "grouped-query llama": (hub.LlamaForCausalLM, SMALL | {"num_key_value_heads": 2}),
    "qwen2": (hub.Qwen2ForCausalLM, SMALL | {"num_key_value_heads": 1}),
    "a window of all positions": (hub.MistralForCausalLM, WINDOW | {"sliding_window": POSITIONS}),
    "a window": (hub.MistralForCausalLM, WINDOW | {"sliding_window": 9}),
    "local and global layers": (hub.Gemma3ForCausalLM, WINDOW | LOCAL),
}


def network(kind: str, positions: int = POSITIONS, **more: int) -> torch.nn.Module:
    """A tiny random model in float64, of other sizes where some are given."""
    torch.manual_seed(0)
    made, sizes = MAKERS[kind]
    room = "n_positions" if kind == "gpt2" else "max_position_embeddings"
    return made(made.config_class(**(sizes | more), **{room: positions})).double().eval()


@pytest.mark.parametrize("kind", MAKERS)
def test_the_cache_is_pure(kind):
    cached = CachedModel(network(kind), "target")
    cached._memory.chunk_rows = 5
    assert largest_error(cached, 30, words=VOCABULARY) < 1e-12


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", MAKERS)
def test_a_tree_has_the_same_logits_on_a_gpu(kind):
    context = Context.of([1, 2, 3])
    tree = random_tree(context, 10, random.Random(2), VOCABULARY)
    made = CachedModel(network(kind).cuda(), "target").score(context, tree)
    assert (made.cpu() - uncached(network(kind), context, tree)).abs().max() < 1e-6


def sees_siblings(cached, begin):
    cached._cache.begin = lambda *given: begin(*given) | True


def sees_no_parent(cached, begin):
    def without_parents(used, committed, paths, window):
        sees = begin(used, committed, paths, window)
        for row, path in enumerate(paths):
            parent = path[-2] if len(path) > 1 else committed - 1
            sees[row, parent] &= parent < 0
        return sees

    cached._cache.begin = without_parents


def row_as_position(cached, _):
    run = cached._memory.run

    def by_row(tokens, positions, paths, keep):
        return run(tokens, [path[-1] % POSITIONS for path in paths], paths, keep)

    cached._memory.run = by_row


def keeps_a_wrong_row(cached, _):
    move = cached._memory.move

    def swapped(sources, first):
        move(sources, first)
        for layer in cached._cache.layers:
            kept = slice(first + len(sources))
            layer.keys[:, :, kept] = layer.keys[:, :, kept].roll(1, 2)

    cached._memory.move = swapped


@pytest.mark.parametrize("bug", [sees_siblings, sees_no_parent, row_as_position, keeps_a_wrong_row])
def test_a_model_with_a_bug_is_caught(bug):
    cached = CachedModel(network("gpt2"), "target")
    bug(cached, cached._cache.begin)
    assert largest_error(cached, 30, words=VOCABULARY) > 1e-6


def test_only_new_nodes_cost_rows():
    """It is so for a tree that grows by levels, and in the next round, which knows what was
    accepted.
    """
    cached, context = CachedModel(network("gpt2"), "target"), Context.of([1, 2, 3])
    tree = TokenTree.rooted(context)
    cached.score(context, tree)
    for level in range(1, 5):
        before, leaf = cached.usage, len(tree) - 1
        tree = tree.grown([level, level + 1], [leaf, leaf], source="draft", scores=[1.0] * 2)
        cached.score(context, tree)
        assert (cached.usage - before).rows == 2 and (cached.usage - before).passes == 1
    before, after = cached.usage, context.extended([2, 3, 9])
    for _ in range(2):
        cached.score(after, TokenTree.rooted(after))
    assert (cached.usage - before).rows == 1 and (cached.usage - before).passes == 1
    chunked, context = CachedModel(network("llama"), "target"), Context.of([1] * 50)
    chunked._memory.chunk_rows = 16
    chunked.score(context, TokenTree.rooted(context))
    assert (chunked.usage.passes, chunked.usage.rows) == (4, 50)


def test_dead_branches_and_logits_of_tokens_long_passed_do_not_pile_up():
    cached, chance = CachedModel(network("gpt2", positions=150), "target"), random.Random(0)
    context = Context.of([1])
    for _ in range(100):
        cached.score(context, random_tree(context, 12, chance, VOCABULARY))
        context = context.extended([chance.randrange(VOCABULARY)])
    assert cached._memory.used <= len(context) + 32 + 13
    assert len(cached._memory.ready) <= 66 + 32 + 13


@pytest.mark.parametrize("where", ["begin", "update", "move", "commit", "plan", "add", "keep"])
def test_a_pass_that_was_interrupted_leaves_no_trace(where):
    """`break_once` asserts that every score after it is that of an uncached model."""
    cached = CachedModel(network("gpt2"), "target")
    break_once(cached, (cached._memory, cached._cache), where, 2, VOCABULARY)


NEO = {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "window_size": 4}
NEO |= {"attention_types": [[["global", "local"], 1]]}
BART = {"d_model": 32, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 32}
T5 = {"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2}
JAMBA = {"num_key_value_heads": 2, "mamba_d_state": 4, "mamba_dt_rank": 4, "num_experts": 2}
JAMBA |= {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False}
REFUSED = {
    "local": (hub.GPTNeoForCausalLM, NEO),
    "takes no position_ids": (hub.BartForCausalLM, BART | {"is_encoder_decoder": False}),
    "bert is bidirectional: another later token changes": (hub.BertLMHeadModel, SMALL),
    "camembert is bidirectional": (hub.CamembertForCausalLM, SMALL),
    "xlm-roberta is bidirectional": (hub.XLMRobertaForCausalLM, SMALL | {"is_decoder": False}),
    "roberta has other logits behind a cache": (
        hub.RobertaForCausalLM,
        SMALL | {"is_decoder": True},
    ),
    "no cache of keys and values by position": (hub.JambaForCausalLM, SMALL | JAMBA),
    "past_key_values": (hub.OpenAIGPTLMHeadModel, GPT2),
    "mamba takes no position_ids": (hub.MambaForCausalLM, SMALL | {"state_size": 4}),
    "ALiBi": (hub.BloomForCausalLM, {"hidden_size": 32, "n_layer": 1, "n_head": 2}),
    "an encoder-decoder model": (hub.T5ForConditionalGeneration, T5),
}


def scored(tokens, tree) -> torch.Tensor:
    return CachedModel(network("gpt2"), "target").score(Context.of(tokens), tree)


def unfit(reason) -> CachedModel:
    made, sizes = REFUSED[reason]
    room = {} if issubclass(made, hub.OpenAIGPTLMHeadModel) else {"vocab_size": 17}
    return CachedModel(made(made.config_class(**(room | sizes))), "target")


CAUSAL = "causal attention, to all tokens or a window, and explicit positions.*"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: scored([1, 2], TokenTree(1, (1,))), "rooted at its context's last token"),
        (
            lambda: scored([1, 99], TokenTree(1, (99,))),
            r"the tokens of \w+ must be below the vocabulary's size 17, got 99",
        ),
        (
            lambda: scored([1] * 65, TokenTree(64, (1,))),
            r"the positions of \w+ must be below the context length 64, got 64",
        ),
        *((lambda reason=reason: unfit(reason), CAUSAL + reason) for reason in REFUSED),
    ],
)
def test_contexts_that_do_not_fit_and_models_without_tree_masks_are_refused(call, said):
    assert_refused(call, said)


@pytest.mark.parametrize("kind", MAKERS)
def test_probes_leave_no_trace_and_a_network_is_probed_once(kind):
    passes = []
    model = network(kind)
    model.register_forward_hook(lambda *_: passes.append(1))
    for known in (0, 3):
        cached = CachedModel(model, "target")
        assert len(passes) == 3 and (cached.usage.passes, cached.usage.rows) == (0, 0), known
        assert cached._memory.used == 0 and cached.usage.seconds == 0


def broken_begin(self, *given):
    return BEGIN(self, *given) | True


def broken_move(self, sources, first):
    MOVE(self, sources[::-1], first)


BEGIN, MOVE = KeyValues.begin, KeyValues.move


@pytest.mark.parametrize("part, bug", [("begin", broken_begin), ("move", broken_move)])
def test_probes_find_a_cache_with_a_bug(part, bug, monkeypatch):
    monkeypatch.setattr(KeyValues, part, bug)
    with pytest.raises(ValueError, match="gpt2 has other logits behind a cache"):
        CachedModel(network("gpt2"), "target")


@pytest.mark.parametrize("positions, fits", [(3, False), (4, True), (5, True)])
def test_a_model_reads_more_tokens_than_a_probe_has_beyond_its_context(positions, fits):
    if fits:
        assert CachedModel(network("gpt2", positions), "target").max_positions == positions
        return
    with pytest.raises(ValueError, match="read more than 3 tokens; gpt2 reads at most 3"):
        CachedModel(network("gpt2", positions), "target")


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_model_with_a_vocabulary_of_one_token_is_refused_in_plain_words(kind):
    with pytest.raises(ValueError) as refused:
        CachedModel(network(kind, vocab_size=1), "target")
    said = f"a model must know 2 tokens or more; {kind} has a vocabulary of 1"
    assert str(refused.value) == said


@pytest.mark.parametrize("vocabulary, special", [(2, {0}), (3, {0, 1}), (9, set(range(8)))])
def test_the_siblings_of_a_probe_are_two_tokens_in_any_vocabulary(vocabulary, special):
    tokens = plain_tokens(vocabulary, special, 7)
    assert all(one != other for one, other in pairwise(tokens))
    assert CachedModel(network("gpt2", vocab_size=vocabulary), "target").vocabulary == vocabulary


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rounding_is_no_reason_to_refuse(dtype):
    for kind in MAKERS:
        CachedModel(network(kind).to(getattr(torch, dtype)), "target")
