"""Drafts made of some of the target's layers, and how they are stored: with the last norm alone."""

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.files import tensor_file, write_whole
from specdec_lib.models.fast.families import FAMILIES

LAYERED = tuple(kind for kind in FAMILIES if kind not in ("gpt2", "gemma3"))  # kinds of models
BY_LAYER = ("layer_types", "no_rope_layers")  # of configurations
SCALE = ".scale"
OWN = ("model.layers.", "model.norm.")


def check_layered(network: PreTrainedModel) -> None:
    """Raises ValueError unless drafts can be made of a network's layers."""
    kind = network.config.model_type
    if kind not in LAYERED:
        raise ValueError(
            f"drafts are made of layers of {', '.join(LAYERED[:-1])} and {LAYERED[-1]} models,"
            f" got {kind!r}"
        )


def build_student(target: PreTrainedModel, layers: Sequence[int]) -> PreTrainedModel:
    """A model of copies of the target's layers of these numbers; raises ValueError for others, and
    for a target of a kind that has none.
    """
    check_layered(target)
    known = target.config.num_hidden_layers
    if not layers or not all(0 <= layer < known for layer in layers):
        raise ValueError(f"layers are numbers from 0 to {known - 1}, got {list(layers)}")
    config = deepcopy(target.config)
    config.num_hidden_layers, config.name_or_path = len(layers), ""  # it does not lie in a folder
    for name in BY_LAYER:
        if of_all := getattr(config, name, None):
            setattr(config, name, [of_all[layer] for layer in layers])
    with torch.device("meta"):
        student = type(target)(config)
    student.to_empty(device=target.device)
    student.to(dtype=target.dtype)  # pyright: ignore[reportCallIssue]  # transformers wraps it
    own: Any = student.get_decoder()
    body: Any = target.get_decoder()
    for part, layer in zip(own.layers, layers, strict=True):
        part.load_state_dict(body.layers[layer].state_dict())
    own.norm.load_state_dict(body.norm.state_dict())
    own.rotary_emb = deepcopy(body.rotary_emb)
    own.set_input_embeddings(body.get_input_embeddings())
    student.set_output_embeddings(target.get_output_embeddings())
    for name, weights in student.named_parameters():
        weights.requires_grad_(name.startswith(OWN))
    student.generation_config = deepcopy(target.generation_config)
    return student.eval()


def own_weights(student: PreTrainedModel) -> dict[str, Tensor]:
    """The student's own weights by name, which are what is trained and stored."""
    return {name: own for name, own in student.named_parameters() if name.startswith(OWN)}


def save_student(student: PreTrainedModel, path: Path, about: dict) -> None:
    """Store a student's own weights, and `about` as JSON. Matrices are rounded to 8 bits
    with a scale per row, other weights stay float32.
    """
    write_whole(path, save(pack_weights(own_weights(student)), {"about": json.dumps(about)}))


def pack_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights by name as they are stored: matrices in 8 bits with a scale per row."""
    content = {}
    for name, tensor in weights.items():
        whole = tensor.detach().float().cpu().contiguous()
        if tensor.dim() != 2:
            content[name] = whole
            continue
        scale = whole.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
        content[name] = (whole / scale).round().to(torch.int8)
        content[name + SCALE] = scale
    return content


def unpack_weights(path: Path) -> dict[str, Tensor]:
    """What `pack_weights` made, from a file, in float32."""
    with tensor_file(path) as file:
        stored = {name: file.get_tensor(name).float() for name in file.keys()}
    return {
        name: tensor * stored[name + SCALE] if name + SCALE in stored else tensor
        for name, tensor in stored.items()
        if not name.endswith(SCALE)
    }


def assemble(target: PreTrainedModel, path: Path) -> PreTrainedModel:
    """Build the student whose weights `save_student` stored, with the target's embedding and head.
    Raises ValueError if the weights are those of another target's student.
    """
    weights = {name: one.to(target.dtype) for name, one in unpack_weights(path).items()}
    layers = len({name.split(".")[2] for name in weights if name.startswith("model.layers.")})
    student = build_student(target, range(layers))
    wanted = {name: tensor.shape for name, tensor in own_weights(student).items()}
    if wanted != {name: tensor.shape for name, tensor in weights.items()}:
        raise ValueError(
            f"{path} holds other weights than {layers} layers and the norm of a model like"
            f" {target.config._name_or_path}"
        )
    student.load_state_dict(weights, strict=False)
    return student


def read_about(path: Path) -> dict:
    """Return `about`, which `save_student` stored beside the weights."""
    with tensor_file(path) as file:
        return json.loads((file.metadata() or {})["about"])
