"""Any Hugging Face decoder as a `LanguageModel` that computes every path once."""

import inspect
import time
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Usage, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.path_memory import BranchMemory
from specdec_lib.models.students import CutHead

CHUNK_ROWS = 256  # a longer prompt is read in pieces
SLACK = 32  # entries of dead branches that stay in the cache
FULL = {"full_attention", "global"}


class CachedModel:
    """A decoder-only model behind a cache of token paths, on its own device and in its own dtype.
    Threads that call it take turns.

    Raises ValueError unless its attention is full and causal with explicit positions.
    """

    def __init__(self, model: PreTrainedModel, name: str) -> None:
        check_attention(model)
        self.model, self.name = model.eval(), name
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.usage = Usage()
        self._cache = KeyValues()
        self._memory = BranchMemory(self.run_rows, self._cache.move, CHUNK_ROWS, SLACK)
        self._scored: tuple[int, ...] | None = None  # the tokens that a cut head scored last

    @property
    def runtime(self) -> str:
        return reference_runtime(self.model)

    @in_turn
    def forget(self) -> None:
        self._memory.clear()

    @in_turn
    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        check_root(context, tree, self.vocabulary, self.max_positions)
        head = self.model.get_output_embeddings()
        if isinstance(head, CutHead):
            head.set_prompt(context.prompt)
            if head.others is not self._scored:  # what is kept was computed with other rows
                self._memory.ready.clear()
            self._scored = head.others
        return self._memory.score(context, tree).clone()

    @torch.no_grad()
    def run_rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], keep: int
    ) -> Float[Tensor, "keep vocab"]:
        device, dtype, memory = self.model.device, self.model.dtype, self._memory
        sees = self._cache.begin(memory.used, len(memory.committed), paths)
        mask = torch.zeros(sees.shape, dtype=dtype, device=device)
        mask.masked_fill_(~torch.from_numpy(sees).to(device), torch.finfo(dtype).min)
        started = time.perf_counter()
        logits = self.model(
            input_ids=torch.tensor([tokens], device=device),
            position_ids=torch.tensor([list(positions)], device=device),
            attention_mask=mask[None, None],
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=keep,
        ).logits[0]
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        self.usage += Usage(1, len(tokens), time.perf_counter() - started)
        return logits


class KeyValues(DynamicCache):
    """The keys and values of cache entries, as Hugging Face decoders append them."""

    def begin(
        self, used: int, committed: int, paths: Sequence[Sequence[int]]
    ) -> Bool[np.ndarray, "rows entries"]:
        """Cut what lies beyond the entries in use, which new rows follow; returns the attention
        mask of these rows: each sees the first `committed` entries and those of its path.
        """
        for layer in self.layers:
            layer.keys, layer.values = layer.keys[:, :, :used], layer.values[:, :, :used]
        sees = np.zeros((len(paths), used + len(paths)), dtype=bool)
        sees[:, :committed] = True
        for row, path in enumerate(paths):
            sees[row, path] = True
        return sees

    def move(self, sources: list[int], first: int) -> None:
        """Move the entries `sources` to the places `first`, first + 1, …"""
        given = torch.tensor(sources)
        for layer in self.layers:
            for rows in (layer.keys, layer.values):
                rows[:, :, first : first + len(sources)] = rows[:, :, given]


def reference_runtime(model: PreTrainedModel) -> str:
    """The runtime of a model that Hugging Face's own code runs, in words."""
    return f"reference: Hugging Face in {str(model.dtype).removeprefix('torch.')} on {model.device}"


def check_attention(model: PreTrainedModel) -> None:
    """Raises ValueError for a model that a tree mask would be wrong for."""
    kind, attention = model.config.model_type, model.config._attn_implementation
    taken = inspect.signature(model.forward).parameters
    fields = model.config.get_text_config().to_dict()
    layers = {*(fields.get("layer_types") or ()), *(fields.get("attention_layers") or ())} - FULL
    slides = fields.get("sliding_window") is not None and fields.get("use_sliding_window", True)
    rope = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    growing = rope.get("rope_type", rope.get("type")) in ("longrope", "dynamic", "su")
    bidirectional = kind in ("bert", "roberta", "electra", "xlm-roberta")
    other = ", ".join(sorted(layers)) or "a sliding window"
    reasons = {
        "is an encoder-decoder model": model.config.is_encoder_decoder,
        "is bidirectional": bidirectional and fields.get("is_decoder", True) is False,
        f"has layers other than full causal attention ({other})": layers or slides,
        "takes positions from the mask (ALiBi)": fields.get("alibi") or kind in ("bloom", "mpt"),
        "takes no position_ids": "position_ids" not in taken,
        "takes no logits_to_keep": "logits_to_keep" not in taken,
        "changes its positions with the length of the text": growing,
        f"runs {attention} attention, not sdpa or eager": attention not in ("sdpa", "eager", None),
    }
    for reason, holds in reasons.items():
        if holds:
            wanted = "a decoder with full causal attention and explicit positions"
            raise ValueError(f"a token tree needs {wanted}; {kind} {reason}")
