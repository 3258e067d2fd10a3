"""The fast CPU runtime: the reference's numbers, and a row's very bits whatever is beside it."""

import copy
import gc
import os
import random
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hub
from fakes import assert_refused
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.cascade import Relay
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cut_head import cut_head
from specdec_lib.models.fast import threads as fast_threads
from specdec_lib.models.fast.blocks import block_steps
from specdec_lib.models.fast.model import FastModel
from specdec_lib.workload import Prompt, load_prompts

COMMON = {"vocab_size": 61, "initializer_range": 0.2, "bos_token_id": 0, "eos_token_id": 0}
SAMPLERS = [Sampler(0), Sampler(1.0, top_k=5), Sampler(0.7, top_k=40)]


def gpt2(**changes: object) -> hub.PreTrainedModel:
    """A random GPT-2 of 61 tokens."""
    torch.manual_seed(5)
    sizes = {"n_embd": 48, "n_head": 3, "n_layer": 2, "n_positions": 96, **COMMON}
    return hub.GPT2LMHeadModel(hub.GPT2Config(**(sizes | changes))).eval()


def llama(**changes: object) -> hub.PreTrainedModel:
    """A random Llama with shared key heads."""
    torch.manual_seed(6)
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, **COMMON}
    sizes |= {"intermediate_size": 96, "num_hidden_layers": 2, "max_position_embeddings": 96}
    return hub.LlamaForCausalLM(hub.LlamaConfig(**(sizes | changes))).eval()


MODELS = {
    "gpt2": gpt2,
    "llama": llama,
    "llama with biases": lambda: llama(attention_bias=True, num_key_value_heads=4),
}


def walk(steps: int, seed: int) -> Iterator[tuple[Context, TokenTree]]:
    """Contexts and trees as a loop asks for them, and as it would not: going back and over."""
    rng, room = random.Random(seed), 96
    context = Context.of([rng.randrange(61) for _ in range(60)])
    for _ in range(steps):
        tree = TokenTree.rooted(context)
        for _ in range(rng.randint(0, 9)):
            shallow = [node for node in range(len(tree)) if tree.position(node) < room - 1]
            place = [rng.randrange(4)], [rng.choice(shallow)]
            tree = tree.grown(*place, source="test", scores=[0.0])
            if rng.random() < 0.3:
                yield context, tree
        yield context, tree
        chosen = rng.random()
        if chosen < 0.2:
            context = Context.of(context.tokens[: rng.randint(1, len(context))])
        elif chosen < 0.3 or len(context) > room - 15:
            context = Context.of([rng.randrange(61) for _ in range(rng.randint(1, 70))])
        else:
            path = tree.path_tokens(rng.randrange(len(tree)))
            context = context.extended((*path, rng.randrange(4)))


@pytest.mark.parametrize("kind", MODELS)
def test_logits_are_the_references_and_those_of_the_eight_bit_edition_near(kind: str) -> None:
    model = MODELS[kind]()
    first = [FastModel(model, "first", edition=edition) for edition in ("exact", "int8")]
    for one in first:
        one.score(*next(walk(1, seed=1)))
    compiling = [weakref.ref(one) for one in first]
    del first, one
    gc.collect()  # a call that Numba compiles for leaves a cycle of frames behind
    assert [one() for one in compiling] == [None] * 2, "a model that was dropped was not freed"
    fast, reference = FastModel(model, "fast"), CachedModel(model, "reference")
    rounded = FastModel(model, "rounded", edition="int8")
    for context, tree in walk(25, seed=1):
        wanted = reference.score(context, tree)
        assert (fast.score(context, tree) - wanted).abs().max() < 1e-4
        assert 1e-4 < (rounded.score(context, tree) - wanted).std() < 0.1 * wanted.std()
    kept = [weakref.ref(one) for one in (fast, reference, rounded)]
    del fast, reference, rounded
    assert [one() for one in kept] == [None] * 3, "a model that was dropped was not freed"


def with_cut_head(model: hub.PreTrainedModel, dtype: torch.dtype) -> hub.PreTrainedModel:
    """A copy of the model whose head scores every third token, with its numbers in a precision."""
    copied = copy.deepcopy(model)
    cut_head(copied, range(1, 61, 3))
    return copied.to(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("edition", ["exact", "int8"])
@pytest.mark.parametrize("kind", MODELS)
def test_coarser_weights_give_the_tokens_of_the_float32_model_of_those(kind, edition, dtype):
    whole = MODELS[kind]()
    for make in (lambda to: copy.deepcopy(whole).to(to), lambda to: with_cut_head(whole, to)):
        coarse = FastModel(make(dtype), "fast", edition=edition)
        same = FastModel(make(dtype).float(), "fast", edition=edition)
        other = FastModel(make(torch.float32), "fast", edition=edition)
        differ = 0.0
        for context, tree in walk(6, seed=9):
            found = coarse.score(context, tree)
            assert torch.equal(found, same.score(context, tree))
            differ = max(
                differ, float((found - other.score(context, tree)).nan_to_num().abs().max())
            )
        assert differ > 1e-4  # the control: rounding the weights shows
        for sampler in SAMPLERS[:2]:
            drafts = (TreeDraft(one, budget=9, depth=4) for one in (coarse, same))
            runs = [
                decode(one, draft, (3, 5, 7), Chance(1, sampler), max_new_tokens=20)
                for one, draft in zip((coarse, same), drafts, strict=True)
            ]
            assert runs[0].tokens == runs[1].tokens
    name = str(dtype).removeprefix("torch.")
    assert edition == "int8" or coarse.runtime.startswith(f"fast: float32 sums over {name} weights")


@pytest.mark.parametrize("edition", ["exact", "int8"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_row_has_the_same_bits_whatever_is_beside_it(kind, edition, unchecked) -> None:
    model = MODELS[kind]()
    fast, alone = (FastModel(model, name, edition=edition) for name in ("fast", "alone"))
    for context, tree in walk(20, seed=2):
        together = fast.score(context, tree)
        for node in range(len(tree)):
            alone.forget()
            path = Context.of((*context.tokens, *tree.path_tokens(node)))
            assert torch.equal(together[node], alone.score(path, TokenTree.rooted(path))[0])


def test_the_reference_has_not_the_same_bits_so_this_is_worth_a_test(ladder, prompts) -> None:
    context = Context.of(ladder.encode(prompts[0]))
    tree = TokenTree.rooted(context).grown([5, 6, 7], [0, 0, 1], source="test", scores=[0.0] * 3)
    together = ladder.target.score(context, tree)
    longer = context.extended(tree.path_tokens(3))
    ladder.target.forget()
    assert not torch.equal(together[3], ladder.target.score(longer, TokenTree.rooted(longer))[0])


@pytest.mark.skipif(os.cpu_count() < 2, reason="one processor has one thread")
def test_threads_change_no_bit_and_no_tree(monkeypatch) -> None:
    one = FastModel(gpt2(), "fast")
    monkeypatch.setattr(fast_threads, "SMALL", 0)
    torch.set_num_threads(2)
    two = FastModel(gpt2(), "fast")
    torch.set_num_threads(1)
    assert (one.threads, two.threads) == (1, 2)
    for context, tree in walk(10, seed=3):
        assert torch.equal(one.score(context, tree), two.score(context, tree))
        drafts = (TreeDraft(model, budget=9, depth=4) for model in (one, two))
        grown, same = (draft.propose(context, Chance(0)) for draft in drafts)
        assert grown == same


@pytest.mark.skipif(os.cpu_count() < 2, reason="one processor has one thread")
def test_its_threads_leave_pytorch_the_number_it_had() -> None:
    """The other process fails if PyTorch has another number of threads in the end."""
    code = (
        "import os, torch; more = os.cpu_count() + 1; torch.set_num_threads(more);"
        " from test_runtime_fast import *; fast_threads.SMALL = 0;"
        " FastModel(gpt2(), 'fast').score(*next(walk(1, seed=1)));"
        " raise SystemExit(torch.get_num_threads() != more)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


@pytest.mark.parametrize("cut", [True, False], ids=["cut heads", "whole heads"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_output_is_the_targets_own_on_the_ladder(sampler, cut, unchecked) -> None:
    fast = tiny_ladder(runtime="fast", cut=cut)
    match = fast.match("draft", sampler)
    small = TreeDraft(fast.draft, budget=5, depth=3, match=match)
    drafts = (
        ChainDraft(fast.draft, 4, match=match),
        TreeDraft(fast.draft, budget=10, depth=5, floor=0.05, match=match),
        ChainDraft(FastModel(fast.target.model, "quantised", edition="int8"), 4),
        Relay((small, MaxGram(None, 8)), (3, 8)),
        NoDraft(),
    )
    for number, prompt in enumerate(load_prompts("code", "development", 2)):
        given = fast.encode(prompt), Chance(number, sampler)
        runs = (decode(fast.target, one, *given, max_new_tokens=40) for one in drafts)
        assert len({run.tokens for run in runs}) == 1


def test_passes_and_rows_are_those_of_the_reference(prompts: list[Prompt]) -> None:
    fast, reference = (tiny_ladder(runtime=name, cut=True) for name in ("fast", "reference"))
    runs = []
    for one in (fast, reference):
        draft, given = TreeDraft(one.draft, budget=8, depth=4), one.encode(prompts[0])
        runs.append(decode(one.target, draft, given, Chance(0), max_new_tokens=30))
    assert runs[0].tokens == runs[1].tokens and len(runs[0].rounds) == len(runs[1].rounds)
    for mine, theirs in zip(*(run.rounds for run in runs), strict=True):
        for name in ("target", "draft"):
            used, known = mine.usage[name], theirs.usage[name]
            assert (used.passes, used.rows) == (known.passes, known.rows)
        assert mine.usage["target"].passes == 1


def softened(where: str) -> hub.PreTrainedModel:
    """A Gemma 3 whose logits have a soft limit."""
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8}
    config = hub.Gemma3TextConfig(**sizes, **COMMON, **{f"{where}_softcapping": 30.0})
    return hub.Gemma3ForCausalLM(config)


OPT = {"hidden_size": 16, "ffn_dim": 16, "num_attention_heads": 1, "num_hidden_layers": 1}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: FastModel(hub.OPTForCausalLM(hub.OPTConfig(**OPT, vocab_size=9)), "fast"),
            "'opt'",
        ),
        (lambda: FastModel(gpt2(scale_attn_by_inverse_layer_idx=True), "fast"), "scaled by layer"),
        (lambda: FastModel(gpt2(activation_function="relu"), "fast"), "'relu'"),
        (lambda: FastModel(gpt2(n_embd=24, n_head=3), "fast"), "a width of 24"),
        (lambda: FastModel(gpt2(n_inner=100), "fast"), "MLP of 100"),
        (lambda: FastModel(llama(rope_parameters=DYNAMIC), "fast"), "length of the text"),
        (lambda: FastModel(llama(hidden_act="relu2"), "fast"), "relu2"),
        (lambda: FastModel(softened("final_logit"), "fast"), "soft limits of logits"),
        (lambda: FastModel(softened("attn_logit"), "fast"), "soft limits of logits"),
        (lambda: FastModel(gpt2().double(), "fast"), "float64"),
        (lambda: FastModel(gpt2(), "fast", edition="int4"), "exact or int8"),
    ],
)
def test_a_model_or_setting_that_it_does_not_know_is_refused_by_name(call, said):
    assert_refused(call, said)


def test_blocks_of_a_file_of_four_or_eight_bits_give_the_very_weights_back() -> None:
    rng = np.random.default_rng(3)
    step = rng.uniform(0.001, 0.1, (4, 5, 1)).astype(np.float16).astype(np.float32)
    low = rng.uniform(-1, 0, (4, 5, 1)).astype(np.float16).astype(np.float32)
    of_four, of_eight = rng.integers(0, 16, (4, 5, 32)), rng.integers(-127, 128, (4, 5, 32))
    of_four[..., :2], of_eight[..., 0] = (0, 15), 127
    files = step * of_four.astype(np.float32) + low, step * of_eight.astype(np.float32)
    wanted = (of_four, low), (of_eight + 128, -128 * step)
    for blocks, (numbers, lowest) in zip(files, wanted, strict=True):
        found, steps, lows = block_steps(blocks)
        assert (found == numbers).all() and (steps == step[..., 0]).all()
        assert (lows.astype(np.float32) == lowest[..., 0]).all()
    others = rng.standard_normal((4, 5, 32)).astype(np.float32)
    found, steps, lows = (one.astype(np.float32) for one in block_steps(others))
    back = found * steps[..., None] + lows[..., None]
    assert 0 < np.abs(back - others).max() < 0.02  # half a step, and the rounding of both ends
