"""Tiny random models of three shapes, drafts of every kind, and what `generate` writes."""

import functools

import t5s
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from specdec_lib.drafts.cascade import from_matrix
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.seq2seq import Seq2SeqModel
from specdec_lib.suite.hf import Speculative

KINDS = ("gpt2", "llama", "t5")
TREE = "a tree with a budget"
VOCABULARY, PROMPT = 29, (3, 7, 11, 3, 7)
IDS = {"pad_token_id": 0, "eos_token_id": None}
PLAIN = IDS | {"do_sample": False}
COMMON = IDS | {"bos_token_id": 0, "vocab_size": VOCABULARY, "initializer_range": 0.4}
GPT2 = {"n_positions": 80, "n_embd": 32, "n_layer": 2, "n_head": 4}
LLAMA = {"max_position_embeddings": 80, "hidden_size": 32, "intermediate_size": 48}
LLAMA |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}


@functools.cache
def network(kind: str) -> torch.nn.Module:
    """A tiny random model in float32 whose greedy text does not loop at once."""
    if kind == "t5":
        return t5s.network("gated untied", dtype=torch.float32)
    torch.manual_seed(3)
    if kind == "gpt2":
        return GPT2LMHeadModel(GPT2Config(**GPT2, **COMMON)).eval()
    return LlamaForCausalLM(LlamaConfig(**LLAMA, **COMMON)).eval()


@functools.cache
def drafts(kind: str) -> dict:
    wrap = Seq2SeqModel if kind == "t5" else CachedModel
    named = (0.1, "draft"), (0.03, "middle")
    small, middle = (wrap(t5s.shaken(network(kind), by), name) for by, name in named)
    parts, matrix = (middle, small, MaxGram()), ((2, 1, 4), (0, 1, 4), (0, 0, 4))
    copies, tree = MaxGram(None, 4), TreeDraft(small, budget=6)
    return {
        "nothing": NoDraft(),
        "a chain": ChainDraft(small, 4),
        "a tree": TreeDraft(small, widths=(3, 2, 1)),
        TREE: TreeDraft(small, budget=12, depth=5),
        "drawn siblings": TreeDraft(small, widths=(2, 2), siblings="iid"),
        "a staged tree": StagedTree(TreeDraft(middle, budget=8, depth=4), ChainDraft(small, 3)),
        "a staged chain": StagedChain(middle, MaxGram(None, 3), 4),
        "a cascade": from_matrix(parts, matrix, lenience=2.0),
        "copies": MaxGram(None, 6),
        "copies, else a tree": FirstDraft((MaxGram(None, 4, least=2), tree)),
        "copies and a tree": MergedDraft((copies, tree)),
    }


def asked(kind: str) -> torch.Tensor:
    return torch.tensor([t5s.sources(1, seed=2)[0] if kind == "t5" else PROMPT])


def both(model, given: torch.Tensor, draft, **options) -> tuple:
    """What `generate` returns for a prompt, without and with a draft or a `Speculative`."""
    door = draft if isinstance(draft, Speculative) else Speculative(draft)
    options = {"attention_mask": torch.ones_like(given), "max_new_tokens": 30} | PLAIN | options
    found = [model.generate(given, **options, **how) for how in ({}, {"custom_generate": door})]
    return tuple(one.tolist() if isinstance(one, torch.Tensor) else one for one in found)


def written(kind: str, draft=None, *, length: int = 30, **options) -> tuple[int, ...]:
    """What `generate` returns, that of the model or of the door to a draft."""
    given = asked(kind)
    plain = {"attention_mask": torch.ones_like(given), "max_new_tokens": length} | PLAIN
    options = plain | options
    if draft is None:
        return tuple(network(kind).generate(given, **options)[0].tolist())
    return tuple(Speculative(draft).generate(network(kind), given, **options)[0].tolist())
