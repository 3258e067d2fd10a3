"""Forward passes over padded batches by a network's own layers: with any window, from any input,
and with the hidden states on the way.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import Cache, PreTrainedModel

from specdec_lib.models.cached.windows import masks_by_layer

Sees = Callable[[int | None], Bool[Tensor, "*batch rows entries"]]
"""Which entries each row sees through a window; None for no window."""


def window_mask(length: int, window: int, device: torch.device) -> Bool[Tensor, "length length"]:
    """Which positions (columns) each position (rows) sees: the last `window` with its own."""
    at = torch.arange(length, device=device)
    behind = at[:, None] - at[None, :]
    return (behind >= 0) & (behind < window)


def run_body(
    body: PreTrainedModel,
    inputs: Float[Tensor, "batch length width"],
    positions: Int[Tensor, "#batch length"],
    sees: Sees,
    *,
    cache: Cache | None = None,
) -> Float[Tensor, "batch length width"]:
    """The normed output of a decoder without its head, from the inputs of its first layer.

    cache    of keys and values, to which the new ones are added
    """
    found: Any = body(
        inputs_embeds=inputs / embedding_multiplier(body),
        position_ids=positions,
        attention_mask=_masks(body, sees),
        past_key_values=cache,
        use_cache=cache is not None,
    )
    return found.last_hidden_state


def outputs_of(
    body: PreTrainedModel,
    ids: Int[Tensor, "batch length"],
    *,
    window: int | None = None,
    wanted: Sequence[int] = (),
) -> tuple[Float[Tensor, "batch length width"], list[Float[Tensor, "batch length width"]]]:
    """The normed output of a decoder without its head at every position of some texts, and the
    hidden states after the layers numbered in `wanted`, counted from 0.
    """
    length = ids.shape[1]
    masks = None
    if window is not None and window < length:
        masks = _masks(
            body, lambda own: window_mask(length, min(window, own or window), ids.device)
        )
    found: Any = body(
        input_ids=ids,
        attention_mask=masks,
        use_cache=False,
        output_hidden_states=bool(wanted),
    )
    return found.last_hidden_state, [found.hidden_states[number + 1] for number in wanted]


def _masks(body: PreTrainedModel, sees: Sees) -> Tensor | dict[str, Tensor]:
    """The attention masks of what rows see, by kind of layer if these differ."""

    def made(window: int | None) -> Tensor:
        mask = sees(window)
        mask = mask.view(*[1] * (4 - mask.dim()), *mask.shape)
        if body.config._attn_implementation != "eager":
            return mask
        hidden = torch.zeros(mask.shape, dtype=body.dtype, device=mask.device)
        return hidden.masked_fill_(~mask, torch.finfo(body.dtype).min)

    return masks_by_layer(body, made)


def inputs_of(
    body: PreTrainedModel, ids: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch length width"]:
    """What a decoder's first layer reads of tokens."""
    return body.get_input_embeddings()(ids) * embedding_multiplier(body)


def embedding_multiplier(body: PreTrainedModel) -> float:
    """What a decoder multiplies its embeddings by, after they were looked up."""
    return float(getattr(body.config, "embedding_multiplier", 1.0))


def head_logits(
    network: PreTrainedModel,
    normed: Float[Tensor, "*batch width"],
    rows: Float[Tensor, "scored width"],
) -> Float[Tensor, "*batch scored"]:
    """The logits of some rows of a network's head after each normed output."""
    return normed @ rows.T / logits_divisor(network)


def logits_divisor(network: PreTrainedModel) -> float:
    """What a network divides its logits by."""
    return float(getattr(network.config, "logits_scaling", 1.0))


def padded_ids(texts: Sequence[Sequence[int]], device: torch.device) -> Int[Tensor, "batch length"]:
    """Texts as rows of one tensor, filled with 0 behind their end."""
    longest = max(map(len, texts))
    rows = [[*text, *[0] * (longest - len(text))] for text in texts]
    return torch.tensor(rows, device=device)
