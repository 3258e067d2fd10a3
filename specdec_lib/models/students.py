"""Drafts made of some of the target's layers, stored with the last norm alone; and the heads where
they spend most time, cut to frequent tokens (Zhao et al. 2025, "FR-Spec") and the prompt's own.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor, nn
from transformers import LlamaForCausalLM, PreTrainedModel

from specdec_lib.core.files import tensor_file, write_whole

SCALE = ".scale"
OWN = ("model.layers.", "model.norm.")


def build_student(target: LlamaForCausalLM, layers: Sequence[int]) -> LlamaForCausalLM:
    """A model of copies of the target's layers of these numbers; raises ValueError for others."""
    known = target.config.num_hidden_layers
    if not layers or not all(0 <= layer < known for layer in layers):
        raise ValueError(f"layers are numbers from 0 to {known - 1}, got {list(layers)}")
    config = deepcopy(target.config)
    config.num_hidden_layers, config.name_or_path = len(layers), ""  # it does not lie in a folder
    with torch.device("meta"):
        student = LlamaForCausalLM(config)
    student = student.to_empty(device=target.device).to(target.dtype)
    for own, layer in zip(student.model.layers, layers, strict=True):
        own.load_state_dict(target.model.layers[layer].state_dict())
    student.model.norm.load_state_dict(target.model.norm.state_dict())
    student.model.rotary_emb = deepcopy(target.model.rotary_emb)
    student.model.embed_tokens.weight = target.model.embed_tokens.weight
    student.lm_head.weight = target.lm_head.weight
    for name, weights in student.named_parameters():
        weights.requires_grad_(name.startswith(OWN))
    student.generation_config = deepcopy(target.generation_config)
    return student.eval()


def own_weights(student: LlamaForCausalLM) -> dict[str, Tensor]:
    """The student's own weights by name, which are what is trained and stored."""
    return {name: own for name, own in student.named_parameters() if name.startswith(OWN)}


def save_student(student: LlamaForCausalLM, path: Path, about: dict) -> None:
    """Store a student's own weights, matrices in 8 bits with a scale per row; and `about`."""
    content = {}
    for name, tensor in own_weights(student).items():
        content[name] = tensor.detach().float()
        if tensor.dim() == 2:
            scale = content[name].abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
            content |= {name: (content[name] / scale).round().to(torch.int8), name + SCALE: scale}
    write_whole(path, save(content, {"about": json.dumps(about)}))


def assemble(target: LlamaForCausalLM, path: Path) -> LlamaForCausalLM:
    """What `save_student` stored, as a whole model; raises ValueError for another target's."""
    with tensor_file(path) as file:
        stored = {name: file.get_tensor(name).float() for name in file.keys()}
    weights = {
        name: (tensor * stored.get(name + SCALE, torch.ones(1))).to(target.dtype)
        for name, tensor in stored.items()
        if not name.endswith(SCALE)
    }
    layers = len({name.split(".")[2] for name in weights if name.startswith("model.layers.")})
    student = build_student(target, range(layers))
    wanted = {name: tensor.shape for name, tensor in own_weights(student).items()}
    if wanted != {name: tensor.shape for name, tensor in weights.items()}:
        fitting = f"{layers} layers and the norm of a model like {target.config._name_or_path}"
        raise ValueError(f"{path} holds other weights than {fitting}")
    student.load_state_dict(weights, strict=False)
    return student


def read_about(path: Path) -> dict:
    """What `save_student` stored beside the weights."""
    with tensor_file(path) as file:
        return json.loads((file.metadata() or {})["about"])


class CutHead(nn.Module):
    """The rows of a whole head's weight for some token ids. Logits are as wide as the vocabulary,
    −∞ elsewhere, so noise keyed by token id falls on the same tokens as with the whole head.
    """

    def __init__(self, weight: nn.Parameter, frequent: Sequence[int]) -> None:
        super().__init__()
        self.weight = weight
        self.frequent = frozenset(frequent)
        # in the state: by their weights alone, two heads of one model would look the same
        self.register_buffer("scored", torch.tensor(sorted(self.frequent), device=weight.device))
        for name in ("places", "rows"):  # they follow the weight to another device or precision
            self.register_buffer(name, None, persistent=False)
        self.prompt: tuple[int, ...] | None = None
        self.others: tuple[int, ...] | None = None
        self.set_prompt(())

    def set_prompt(self, tokens: tuple[int, ...]) -> None:
        """Score the frequent tokens, and behind them these `others`, another object if changed."""
        if tokens == self.prompt:
            return
        others = tuple(sorted(set(tokens) - self.frequent))
        if others != self.others:
            new = torch.tensor(others, dtype=torch.long, device=self.scored.device)
            self.others, self.places, self.rows = others, torch.cat([self.scored, new]), None
        self.prompt = tokens

    def scored_rows(self, first: int = 0) -> Float[Tensor, "scored width"]:
        """The rows of the tokens that are scored, in the order of `places`, from one on."""
        return self.weight.detach()[self.places[first:]]

    def forward(self, hidden: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch vocab"]:
        """The logits after each hidden state."""
        if self.rows is None:
            self.rows = self.scored_rows()
        scored = hidden @ self.rows.T
        logits = scored.new_full((*scored.shape[:-1], len(self.weight)), float("-inf"))
        logits[..., self.places] = scored
        return logits


def cut_head(network: PreTrainedModel, frequent: Sequence[int]) -> CutHead:
    """Replace a network's head by one for `frequent` and the prompt's tokens, and return it."""
    weight = network.get_output_embeddings().weight
    last, ids = len(weight) - 1, sorted(frequent)
    if not ids or not 0 <= ids[0] <= ids[-1] <= last:
        raise ValueError(f"a head scores token ids from 0 to {last}, got {ids[:3]} …")
    head = CutHead(weight, frequent)
    network.set_output_embeddings(head)
    return head
