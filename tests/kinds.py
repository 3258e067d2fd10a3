"""Every kind of decoder that the installed Transformers knows, tiny and with random weights: each
is right, or refused when it is loaded. `python tests/kinds.py --keep FILE` tries them one by one,
each in a process of its own, and prints a table; the same command goes on after an interruption.
It exits with 1 if a kind decodes wrongly, or raises after it was loaded.
"""

import argparse
import copy
import json
import multiprocessing
import resource
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import torch
from caches import random_tree, uncached
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
from transformers.utils import logging

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cached.probing import difference
from specdec_lib.models.loading import load_model

RIGHT, REFUSED, UNBUILT = "right", "refused at load", "not buildable"
WRONG, LATER = "WRONG", "RAISES LATER"
OUTCOMES = (RIGHT, REFUSED, UNBUILT, WRONG, LATER)
VOCABULARY, POSITIONS, LENGTH = 97, 64, 14
MOST = 3_000_000  # parameters of a tiny model
MEMORY, SECONDS = 4 << 30, 300  # that one kind may take
ERROR = 5e-4  # a relative difference of float32 logits that rounding explains
TINY: dict[str, object] = {}  # sizes by the names that configurations have for them
TINY |= dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "emb_dim", "embedding_size"), 32)
TINY |= dict.fromkeys(("word_embed_proj_dim", "d_embed", "embedding_dim", "attention_dim"), 32)
TINY |= dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "shared_dim"), 48)
TINY |= dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "dense_intermediate_size"), 48)
TINY |= dict.fromkeys(("shared_expert_intermediate_size", "intermediate_size_mlp", "dff"), 48)
TINY |= dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers"), 2)
TINY |= dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2)
TINY |= dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4)
TINY |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
TINY |= dict.fromkeys(("num_key_value_heads", "n_head_kv", "num_kv_heads", "attention_groups"), 2)
TINY |= dict.fromkeys(("head_dim", "d_head", "v_head_dim", "d_kv", "attention_head_size"), 8)
TINY |= dict.fromkeys(("kv_channels", "kv_lora_rank", "q_lora_rank", "rotary_dim"), 8)
TINY |= dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim"), 4)
TINY |= dict.fromkeys(("max_position_embeddings", "n_positions", "seq_length"), POSITIONS)
TINY |= dict.fromkeys(("max_seq_len", "n_ctx", "max_sequence_length"), POSITIONS)
TINY |= dict.fromkeys(
    ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4
)
TINY |= dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token"), 2)
TINY |= dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1)
TINY |= dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size", "lru_width"), 32)
TINY |= dict.fromkeys(("state_size", "mamba_d_state", "ssm_state_size", "mamba_d_head"), 8)
TINY |= dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim", "mamba_head_dim"), 8)
TINY |= dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 4)
TINY |= dict.fromkeys(("initializer_range", "init_std"), 0.2)
TINY |= dict.fromkeys(("vocab_size", "vocab_size_per_layer_input", "n_vocab"), VOCABULARY)
TINY |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
LATENT = ("axk1", "deepseek_v2", "deepseek_v3", "dots3_note_text", "glm4_moe_lite", "longcat_flash")
EXTRA: dict[str, dict[str, object]] = {kind: {"num_key_value_heads": 4} for kind in LATENT}
EXTRA |= {
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8},
    "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 8},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "cohere_compass_text": {"layer_types": ["full_attention", "full_attention"]},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "xlm-roberta-xl": {"is_decoder": True},
}
"""What a kind's configuration needs beyond `TINY`."""


def kinds() -> dict[str, type[PreTrainedModel]]:
    """The class of every kind of decoder, by the kind's name."""
    found = {}
    for name, config in CONFIG_MAPPING.items():
        if config in MODEL_FOR_CAUSAL_LM_MAPPING:
            model = MODEL_FOR_CAUSAL_LM_MAPPING[config]
            found[name] = model[0] if isinstance(model, tuple) else model
    return found


def tiny_config(kind: type[PreTrainedConfig], extra: dict[str, object]) -> PreTrainedConfig:
    """A configuration of a kind whose sizes are tiny, those of its parts included."""
    default = kind().to_dict()
    known = {*default, *getattr(kind, "attribute_map", {})}
    sizes = {name: value for name, value in TINY.items() if name in known}
    renamed = getattr(kind, "attribute_map", {})
    sizes = {name: value for name, value in sizes.items() if renamed.get(name) not in sizes}
    for name in getattr(kind, "sub_configs", None) or {}:
        part = CONFIG_MAPPING.get((default.get(name) or {}).get("model_type"))
        if part is not None:
            sizes[name] = tiny_config(part, {}).to_dict()
    return kind(**sizes | extra)


def build(kind: str) -> PreTrainedModel:
    """A tiny model of a kind with random weights."""
    made = kinds()[kind]
    config = tiny_config(CONFIG_MAPPING[kind], EXTRA.get(kind, {}))
    with torch.device("meta"):
        size = made(copy.deepcopy(config)).num_parameters()
    if size > MOST:
        raise ValueError(f"it has {size:,} parameters")
    torch.manual_seed(0)
    network = made(config).eval()
    with torch.no_grad():
        network(torch.tensor([[5, 6, 7, 8]]), use_cache=False)  # its sizes go together
        for name, weights in network.named_parameters():
            if not weights.isfinite().all():
                raise ValueError(f"its tensor {name} is not filled")
    return network


def outcome(kind: str, folder: Path) -> tuple[str, str]:
    """What becomes of a kind, one of `OUTCOMES`, and why."""
    try:
        build(kind).save_pretrained(folder)
    except Exception as error:
        return UNBUILT, told(error)
    try:
        model = load_model(folder, "target", device="cpu")
    except ValueError as error:
        return REFUSED, told(error).replace(str(folder), "…")
    except Exception as error:
        return LATER, told(error)
    try:
        problem = wrong(model)
    except Exception as error:
        return LATER, told(error)
    return (RIGHT, "") if problem is None else (WRONG, problem)


def wrong(model: CachedModel) -> str | None:
    """What a loaded model does wrongly; None if its logits are those of plain forwards, no draft
    changes its output, and its greedy output is that of `generate`.
    """
    random = Random(1)
    network = model.model
    network.generation_config.eos_token_id = None
    tokens = [random.randrange(4, VOCABULARY) for _ in range(30)]
    for length in (1, 9, 5, 24, 30, 12):
        context = Context.of(tokens[:length])
        tree = random_tree(context, 10, random, VOCABULARY)
        change = difference(model.score(context, tree), uncached(network, context, tree))
        if change > ERROR:
            return f"logits of a tree after {length} tokens differ by {change:.2g} of their size"
    draft = CachedModel(shaken(network), "draft")
    prompt, accepted = tokens[:8], 0
    for temperature in (0.0, 1.0):
        chance = Chance(1, Sampler(temperature))
        plain = decode(model, NoDraft(), prompt, chance, max_new_tokens=LENGTH).tokens
        guesser = TreeDraft(draft, budget=8, depth=4)
        drafted = decode(model, guesser, prompt, chance, max_new_tokens=LENGTH)
        accepted += sum(played.accepted for played in drafted.rounds)
        if drafted.tokens != plain:
            return f"a tree changes the output at T={temperature:g}"
        if temperature == 0.0 and plain != generated(network, prompt):
            return "greedy output is not that of generate"
    return None if accepted else "no guess of a draft that is nearly the model was accepted"


def shaken(network: PreTrainedModel) -> PreTrainedModel:
    """A copy that agrees with a network often, not always."""
    other = copy.deepcopy(network)
    with torch.no_grad():
        for weights in other.parameters():
            if weights.dim() > 1:
                weights.add_(0.03 * weights.std() * torch.randn_like(weights))
    return other


@torch.no_grad()
def generated(network: PreTrainedModel, prompt: list[int]) -> tuple[int, ...]:
    """What `generate` writes greedily."""
    given = torch.tensor([prompt])
    options = {"max_new_tokens": LENGTH, "do_sample": False, "pad_token_id": 3}
    made = network.generate(given, attention_mask=torch.ones_like(given), **options)
    return tuple(made[0, len(prompt) :].tolist())


def told(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split()).removeprefix("ValueError: ")


def quiet() -> None:
    """What Transformers says about tiny models is not shown."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def _in_child(kind: str, pipe) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        pipe.send(outcome(kind, Path(folder)))


def apart(kind: str) -> tuple[str, str]:
    """The outcome of a kind that runs in a process of its own."""
    processes = multiprocessing.get_context("fork")
    here, there = processes.Pipe(duplex=False)
    child = processes.Process(target=_in_child, args=(kind, there))
    child.start()
    there.close()
    try:
        found = here.recv() if here.poll(SECONDS) else (LATER, f"still running after {SECONDS} s")
    except EOFError:
        found = LATER, "its process died"
    child.kill()
    child.join()
    return found


def main(given: list[str] | None = None) -> int:
    """Try kinds, print what became of each and how many of each outcome there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="kinds to try; all without this")
    parser.add_argument("--keep", type=Path, help="a file of outcomes, which are not tried again")
    asked = parser.parse_args(given)
    known: dict[str, list[str]] = {}
    if asked.keep is not None and asked.keep.is_file():
        known = dict(map(json.loads, asked.keep.read_text().splitlines()))
    counts: Counter[str] = Counter()
    for kind in asked.kinds or kinds():
        found = known.get(kind) or apart(kind)
        if asked.keep is not None and kind not in known:
            with asked.keep.open("a") as file:
                file.write(json.dumps([kind, found]) + "\n")
        counts[found[0]] += 1
        print(f"{kind:24} {found[0]:16} {found[1]}", flush=True)
    print(", ".join(f"{counts[name]} {name}" for name in OUTCOMES))
    return int(counts[WRONG] + counts[LATER] > 0)


if __name__ == "__main__":
    sys.exit(main())
