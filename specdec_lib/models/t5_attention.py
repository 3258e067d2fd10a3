"""T5's attention for a tree: its bias depends on how far the key lies before the query along the
path, where T5's own code takes cache positions.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedModel

KINDS = ("t5", "mt5")
KeysValues = tuple[Float[Tensor, "1 heads entries size"], Float[Tensor, "1 heads entries size"]]


def distances(sees: Bool[np.ndarray, "rows entries"]) -> Int[np.ndarray, "rows entries"]:
    """How many tokens each visible cache entry lies before its row."""
    return np.maximum(sees.sum(1, keepdims=True) - sees.cumsum(1), 0)


def distance_buckets(model: PreTrainedModel, positions: int) -> Int[Tensor, " positions"]:
    """T5's bucket of each distance from 0 on."""
    layer, config = model.decoder.block[0].layer[0].SelfAttention, model.config
    return layer._relative_position_bucket(
        -torch.arange(positions),
        bidirectional=False,
        num_buckets=config.relative_attention_num_buckets,
        max_distance=config.relative_attention_max_distance,
    )


def split_heads(
    layer: torch.nn.Module, rows: Float[Tensor, "1 rows inner"]
) -> Float[Tensor, "1 heads rows size"]:
    """The rows of each attention head."""
    return rows.unflatten(2, (-1, layer.key_value_proj_dim)).transpose(1, 2)


def keys_values(layer: torch.nn.Module, hidden: Float[Tensor, "1 rows width"]) -> KeysValues:
    """The keys and values of an attention layer."""
    return split_heads(layer, layer.k(hidden)), split_heads(layer, layer.v(hidden))


def attention(
    layer: torch.nn.Module,
    hidden: Float[Tensor, "1 rows width"],
    kept: KeysValues,
    bias: Float[Tensor, "1 heads rows entries"] | None,
) -> Float[Tensor, "1 rows width"]:
    """The output of an attention layer; T5 does not scale its scores."""
    found = F.scaled_dot_product_attention(
        split_heads(layer, layer.q(hidden)), *kept, attn_mask=bias, scale=1.0
    )
    return layer.o(found.transpose(1, 2).flatten(2))


def check_t5(model: PreTrainedModel) -> None:
    """Raises ValueError for a model that is not of the T5 family with one relative bias."""
    kind = model.config.model_type
    reasons = {
        "is no encoder-decoder model": not model.config.is_encoder_decoder,
        "has a bias of its own in every layer": kind == "umt5",
        "has another attention": kind not in KINDS,
        "has no head for text": model.get_output_embeddings() is None,
    }
    for reason, found in reasons.items():
        if found:
            raise ValueError(
                f"an encoder-decoder model must be of the T5 family ({', '.join(KINDS)}) with one"
                f" relative bias; {kind} {reason}"
            )
