"""A ladder of tiny random Llama models, the same in any process: a target, two drafts of some of
its layers, and an n-gram table of the target's text. All guess some tokens right and others wrong.
"""

import functools
from pathlib import Path

import numpy as np
import torch
from own_models import tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.cut_head import cut_head
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.loading import DTYPES, on_runtime, reading_on_runtime
from specdec_lib.models.prepared import PREPARED
from specdec_lib.models.reading import ReadingDraft
from specdec_lib.models.students import build_student, save_student
from specdec_lib.suite.distil.finishing import finish
from specdec_lib.workload import Ladder, Measured

SHARES = (1.0, 0.3, 0.15)  # of what a layer adds: the first layers guess what all of them say
LAYERS = {"middle": (0, 1), "draft": (0,)}
HEAD = 500  # tokens that a draft scores beside the prompt's
PAIRS = [(name, "target") for name in ("middle", "draft", "n-gram")]
PAIRS += [("draft", "middle"), ("n-gram", "draft")]
BINNED = ((0.3, 0.25, 0.1), (0.4, 0.2, 0.05), (0.5, 0.1, 0.03), (0.6, 0.05, 0.02))
BY_GAP = MatchTable((0.5, 0.2, 0.05), "by gap", (0.5, 1.5, 4.0), BINNED)


def tiny_ladder(
    dtype: str = "float32", runtime: str = "reference", *, cut: bool = True, reads: bool = False
) -> Ladder:
    """The ladder on the CPU; `cut` drafts score the frequent tokens and the prompt's only; one that
    `reads` has a draft that reads the target too.
    """
    networks = {"target": target_network().to(DTYPES[dtype])}
    for name, layers in LAYERS.items():
        networks[name] = build_student(networks["target"], layers)
        if cut:
            cut_head(networks[name], frequent_tokens())
    for name, network in networks.items():
        network.config.name_or_path = f"tiny/{name}"
    sizes = {name: sum(map(torch.numel, one.parameters())) for name, one in networks.items()}
    card = {"models": {name: {"parameters": size} for name, size in sizes.items()}}
    measured = [Measured(*pair, "ranked", Sampler(), 0, BY_GAP) for pair in PAIRS]
    for siblings in ("iid", "distinct"):
        measured.append(Measured("draft", "target", siblings, Sampler(), 0, MatchTable()))
    models = {name: on_runtime(CachedModel(one, name), runtime) for name, one in networks.items()}
    if reads:
        reader = build_student(networks["target"], (1,))
        reader.add_module("reading", ReadingDraft(reader, (0, 1)))
        cut_head(reader, frequent_tokens())
        models["reading"] = reading_on_runtime(reader, models["target"], "reading", window=64)
        measured.append(Measured("reading", "target", "ranked", Sampler(), 0, BY_GAP))
        card["models"]["reading"] = card["models"]["draft"]
    return Ladder(
        **models,
        katz=Katz.fit(written_text(), len(tokenizer())),
        tokenizer=tokenizer(),
        stop_tokens=(0,),
        card=card | {"katz": {"order": 3, "temperature": 1.0}},
        measured=tuple(measured),
    )


def target_network(*, attention: float = 0.1) -> LlamaForCausalLM:
    """Three layers, whose text follows most from its last token; few tokens are frequent."""
    config = LlamaConfig(
        vocab_size=len(tokenizer()), hidden_size=64, intermediate_size=96, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=0, pad_token_id=None,
        initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(11)
        network = LlamaForCausalLM(config).eval()
        sizes = torch.linspace(-1, 1, config.vocab_size)[torch.randperm(config.vocab_size)]
        network.model.embed_tokens.weight *= sizes.exp()[:, None]
        for layer, share in zip(network.model.layers, SHARES, strict=True):
            layer.self_attn.o_proj.weight *= share * attention
            layer.mlp.down_proj.weight *= share
    return network


@functools.cache
def written_text() -> np.ndarray:
    """Text that the target writes at T = 1, a row per start."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(12)
        starts = torch.randint(1, len(tokenizer()), (64, 2))
        options = {"do_sample": True, "top_k": 0, "max_new_tokens": 96, "pad_token_id": 0}
        mask = torch.ones_like(starts)
        return target_network().generate(starts, attention_mask=mask, **options).numpy()


@functools.cache
def frequent_tokens() -> tuple[int, ...]:
    """The most frequent tokens of that text."""
    counts = np.bincount(written_text().flatten(), minlength=len(tokenizer()))
    return tuple(np.argsort(-counts, kind="stable")[:HEAD].tolist())


def finished_folder(root: Path) -> Path:
    """The ladder as `specdec distil finish` leaves it; and its target, prepared in `root`."""
    target, prepared, drafts = target_network(), root / "smollm2", root / "drafts"
    target.save_pretrained(prepared)
    tokenizer().save_pretrained(prepared)
    (prepared / PREPARED).write_text("{}")
    drafts.mkdir()
    for name, layers in LAYERS.items():
        about = {"layers": layers, "of": name}
        save_student(build_student(target, layers), drafts / f"{name}.safetensors", about)
    Katz.fit(written_text(), len(tokenizer())).save(drafts / "katz.npz")
    finish(drafts, sorted(frequent_tokens()), root / "ladder")
    return root / "ladder"
