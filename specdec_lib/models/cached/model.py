"""Any Hugging Face decoder as a `LanguageModel` that computes every path once."""

import inspect
import time
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Usage, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.paths import PathMemory
from specdec_lib.models.cached.slots import SlotCache

SCRATCH = 128  # slots allocated at first beyond the prompt


class CachedModel:
    """A decoder-only model behind a cache keyed by token path; batch size 1.

    A tree grown level by level costs one row per new node, accepted nodes are known in the next
    round, and a caller may go back to a shorter context, or over to another prompt, without saying
    so.

    model         in evaluation mode; its device and dtype are used as they are
    name          how records and figures call it
    chunk_rows    a longer prompt is read in pieces of this many tokens

    Raises ValueError for a model whose attention is not full and causal with explicit positions:
    the tree mask would be wrong.
    """

    def __init__(self, model: PreTrainedModel, name: str, *, chunk_rows: int = 256) -> None:
        check_attention(model)
        self.model = model.eval()
        self.name = name
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.usage = Usage()
        self._slots = SlotCache(min(self.max_positions, 1024) + SCRATCH)
        self._paths = PathMemory(self._slots, chunk_rows)

    @property
    def runtime(self) -> str:
        """What runs, in words."""
        return f"reference: Hugging Face in {str(self.model.dtype).removeprefix('torch.')} on {self.model.device}"

    def forget(self) -> None:
        """Drop everything remembered; results stay the same, up to rounding."""
        self._paths.forget()

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """One row of logits per node, root first; see `LanguageModel.score`."""
        check_root(context, tree, self.vocabulary, self.max_positions)
        return self._paths.score(context.tokens, tree, self._forward)

    @torch.no_grad()
    def _forward(
        self, parents: Sequence[int], tokens: Sequence[int], positions: Sequence[int], keep: int
    ) -> range:
        """One pass over new rows; the logits of the last `keep` of them are kept."""
        device, dtype = self.model.device, self.model.dtype
        new = self._slots.add(parents, tokens)
        sees = torch.from_numpy(self._slots.mask(new)).to(device)
        mask = torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill_(
            ~sees, torch.finfo(dtype).min
        )
        started = time.perf_counter()
        logits = self.model(
            input_ids=torch.tensor([tokens], device=device),
            position_ids=torch.tensor([list(positions)], device=device),
            attention_mask=mask[None, None],
            past_key_values=self._slots,
            use_cache=True,
            logits_to_keep=keep,
        ).logits[0]
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        self.usage += Usage(1, len(tokens), time.perf_counter() - started)
        self._slots.filled()
        self._slots.logits |= zip(new[len(new) - keep :], logits, strict=True)
        return new


def check_attention(model: PreTrainedModel) -> None:
    """Raises ValueError naming what a token tree cannot work with."""
    config, kind = model.config.get_text_config(), model.config.model_type
    taken = inspect.signature(model.forward).parameters
    layers = {
        *(getattr(config, "layer_types", None) or ()),
        *(getattr(config, "attention_layers", None) or ()),
    } - {"full_attention", "global"}
    slides = getattr(config, "sliding_window", None) is not None and getattr(
        config, "use_sliding_window", True
    )
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    reasons = {
        "is an encoder-decoder model": model.config.is_encoder_decoder,
        "is bidirectional": getattr(config, "is_decoder", True) is False
        and kind in ("bert", "roberta", "electra", "xlm-roberta"),
        f"has layers other than full causal attention ({', '.join(sorted(layers)) or 'a sliding window'})": bool(
            layers
        )
        or slides,
        "takes positions from the mask (ALiBi)": getattr(config, "alibi", False)
        or kind in ("bloom", "mpt"),
        "takes no position_ids": "position_ids" not in taken,
        "takes no logits_to_keep": "logits_to_keep" not in taken,
        "changes its positions with the length of the text": rope.get("rope_type", rope.get("type"))
        in ("longrope", "dynamic", "su"),
        f"runs {config._attn_implementation} attention, not sdpa or eager": config._attn_implementation
        not in ("sdpa", "eager", None),
    }
    for reason, found in reasons.items():
        if found:
            raise ValueError(
                "a token tree needs a decoder with full causal attention and explicit positions;"
                f" {kind} {reason}"
            )
