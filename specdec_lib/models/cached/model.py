"""Any Hugging Face decoder, and T5, as a `LanguageModel` that computes every path once. T5's layers
are called one by one, with the position bias of the tree, whose distances run along the path.
"""

import inspect
import time
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.kinds import shown
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Usage, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.path_memory import BranchMemory, weakly
from specdec_lib.models.cut_head import CutHead

CHUNK_ROWS = 256  # a longer prompt is read in pieces
SLACK = 32  # entries of dead branches that stay in the cache
FULL = {"full_attention", "global"}
KINDS = ("t5", "mt5")


class CachedModel:
    """A decoder-only model behind a cache of token paths; threads that call it take turns.  Raises
    ValueError unless its attention is full and causal with explicit positions.
    """

    def __init__(self, model: PreTrainedModel, name: str) -> None:
        check_attention(model)
        self.model, self.name = model.eval(), name
        self.vocabulary = len(model.get_output_embeddings().weight)
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.runtime, self.usage = reference_runtime(model), Usage()
        self._cache = KeyValues()
        self._memory = BranchMemory(weakly(self.run_rows), self._cache.move, CHUNK_ROWS, SLACK)
        self._scored: tuple[int, ...] | None = None  # the tokens that a cut head scored last

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


class Seq2SeqModel:
    """A T5 model behind a cache of the decoder's paths; the encoder runs once per source.

    max_positions    of the decoder; T5 has no limit of its own, and was trained on at most 512
    usage            passes and rows of the decoder; seconds of both halves
    """

    def __init__(self, model: PreTrainedModel, name: str, *, max_positions: int = 512) -> None:
        kind = model.config.model_type
        if kind not in KINDS or model.get_output_embeddings() is None:
            wanted = f"{' or '.join(KINDS)} with a head for text"
            raise ValueError(f"an encoder-decoder model is a {wanted}, got {kind}")
        self.model, self.name, self.max_positions = model.eval(), name, max_positions
        self.vocabulary = len(model.get_output_embeddings().weight)
        self.runtime, self.usage = reference_runtime(model), Usage()
        self._source: tuple[int, ...] | None = None
        self._cache = KeyValues()
        self._memory = BranchMemory(weakly(self.run_rows), self._cache.move, CHUNK_ROWS, SLACK)
        scaled = getattr(model.config, "scale_decoder_outputs", False)
        self._scale = model.config.d_model**-0.5 if scaled else 1.0

    @in_turn
    def forget(self) -> None:
        self._memory.clear()
        self._source = self._encoded = self._crossed = None

    @in_turn
    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        check_root(context, tree, self.vocabulary, self.max_positions)
        self.read_source(context)
        return self._memory.score(context, tree).clone()

    @in_turn
    @torch.no_grad()
    def read_source(self, context: Context) -> None:
        """Run the encoder over the context's source, unless it was the last one read."""
        source, last = context.source, self.vocabulary - 1
        if not source or not 0 <= min(source) <= max(source) <= last:
            needs = f"the context needs a source of tokens in 0…{last}, got {shown(source)}"
            raise ValueError(f"{self.name} is an encoder-decoder model: {needs}")
        if source == self._source:
            return
        self.forget()
        started = time.perf_counter()
        tokens = torch.tensor([source], device=self.model.device)
        self._encoded = self.model.encoder(input_ids=tokens).last_hidden_state
        self._crossed = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self._count(started)
        self._source = source

    @torch.no_grad()
    def run_rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], keep: int
    ) -> Float[Tensor, "keep vocab"]:
        memory = self._memory
        sees = self._cache.begin(memory.used, len(memory.committed), paths)
        started = time.perf_counter()
        decoder, bias = self.model.decoder, self._bias(sees)
        hidden = decoder.embed_tokens(torch.tensor([tokens], device=self.model.device))
        mask = torch.zeros_like(bias)  # what is seen stands in the bias; None would be causal
        for block in decoder.block:
            own, across, feed_forward = block.layer
            hidden = own(hidden, mask, bias, past_key_values=self._cache)[0]
            hidden = across(hidden, self._encoded, past_key_values=self._crossed)[0]
            hidden = feed_forward(hidden)
        last = decoder.final_layer_norm(hidden[:, len(tokens) - keep :])
        logits = self.model.lm_head(last * self._scale)[0]
        self._count(started, passes=1, rows=len(tokens))
        return logits

    def _bias(
        self, sees: Bool[np.ndarray, "rows entries"]
    ) -> Float[Tensor, "1 heads rows entries"]:
        """The attention bias: that of the distance, −inf where a row does not see an entry."""
        device, own = self.model.device, self.model.decoder.block[0].layer[0].SelfAttention
        buckets = own._relative_position_bucket(
            -torch.from_numpy(distances(sees)).to(device),
            bidirectional=False,
            num_buckets=own.relative_attention_num_buckets,
            max_distance=own.relative_attention_max_distance,
        )
        bias = own.relative_attention_bias(buckets).permute(2, 0, 1)
        return bias.masked_fill(~torch.from_numpy(sees).to(device), -torch.inf)[None]

    def _count(self, started: float, *, passes: int = 0, rows: int = 0) -> None:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        self.usage += Usage(passes, rows, time.perf_counter() - started)


class KeyValues(DynamicCache):
    """The keys and values of cache entries, as Hugging Face decoders append them."""

    def begin(
        self, used: int, committed: int, paths: Sequence[Sequence[int]]
    ) -> Bool[np.ndarray, "rows entries"]:
        """Cut to `used` entries; the mask of new rows, which see the committed and their paths."""
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


def distances(sees: Bool[np.ndarray, "rows entries"]) -> Int[np.ndarray, "rows entries"]:
    """How many tokens each visible cache entry lies before its row."""
    return np.maximum(sees.sum(1, keepdims=True) - sees.cumsum(1), 0)
