"""T5 as a `LanguageModel`: the encoder runs once per source, the decoder computes every path once.
Its layers are called one by one, with the position bias of the tree, whose distances run along the
path.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache, PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.kinds import shown
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Usage, check_logits, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.key_values import KeyValues, reference_runtime
from specdec_lib.models.cached.model import CHUNK_ROWS, SLACK
from specdec_lib.models.cached.path_memory import BranchMemory, weakly
from specdec_lib.models.cached.probing import check_by_probes, described
from specdec_lib.models.cut_head import output_weight

KINDS = ("t5", "mt5")


class Seq2SeqModel:
    """A T5 model behind a cache of the decoder's paths; the encoder runs once per source.

    max_positions    of the decoder; T5 has no limit of its own, and was trained on at most 512
    usage            passes and rows of the decoder; seconds of both halves
    """

    def __init__(self, model: PreTrainedModel, name: str, *, max_positions: int = 512) -> None:
        kind = model.config.model_type
        if kind not in KINDS or model.get_output_embeddings() is None:
            raise ValueError(
                f"an encoder-decoder model is a {' or '.join(KINDS)} with a head for text,"
                f" got {kind}"
            )
        self.model = model.eval()
        self._halves: Any = model  # an encoder and a decoder of T5
        self.name = name
        self.max_positions = max_positions
        self.vocabulary = len(output_weight(model))
        self.runtime = reference_runtime(model)
        self.usage = Usage()
        self._source: tuple[int, ...] | None = None
        self._cache = KeyValues()
        self._memory = BranchMemory(weakly(self.run_rows), self._cache.move, CHUNK_ROWS, SLACK)
        scaled = getattr(model.config, "scale_decoder_outputs", False)
        self._scale = model.config.d_model**-0.5 if scaled else 1.0
        check_by_probes(self, model, self._plain, encoder=True)

    @property
    def start_token(self) -> int:
        """The token that the decoder starts with.  Raises ValueError if the model names none."""
        for config in (self.model.generation_config, self.model.config):
            token = getattr(config, "decoder_start_token_id", None)
            if token is not None:
                return int(token)
        raise ValueError(
            f"{described(self.model)} names no decoder_start_token_id in config.json or"
            " generation_config.json; the decoder needs a token to start with"
        )

    def _plain(self, texts: Int[Tensor, "texts tokens"]) -> Float[Tensor, "texts tokens vocab"]:
        """The logits of whole texts, each after its first token as the source, without a cache."""
        return self.model(input_ids=texts[:, :1], decoder_input_ids=texts, use_cache=False).logits

    @property
    def encoded(self) -> Float[Tensor, "1 source width"]:
        """The encoder's output for the source that was read last."""
        assert self._encoded is not None  # a source was read
        return self._encoded

    @in_turn
    def forget(self) -> None:
        self._memory.clear()
        self._source = self._encoded = self._crossed = None

    @in_turn
    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        check_root(context, tree, self.vocabulary, self.max_positions, self.name)
        self.read_source(context)
        return self._memory.score(context, tree).clone()

    @in_turn
    @torch.no_grad()
    def read_source(self, context: Context) -> None:
        """Run the encoder over the context's source, unless it was the last one read."""
        source = context.source
        last = self.vocabulary - 1
        if not source or not 0 <= min(source) <= max(source) <= last:
            raise ValueError(
                f"{self.name} is an encoder-decoder model: the context needs a source of tokens in"
                f" 0…{last}, got {shown(source)}"
            )
        if source == self._source:
            return
        self.forget()
        started = time.perf_counter()
        tokens = torch.tensor([source], device=self.model.device)
        self._encoded = self._halves.encoder(input_ids=tokens).last_hidden_state
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
        decoder = self._halves.decoder
        bias = self._bias(sees)
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
        check_logits(logits, self.name)
        return logits

    def _bias(
        self, sees: Bool[np.ndarray, "rows entries"]
    ) -> Float[Tensor, "1 heads rows entries"]:
        """The attention bias: that of the distance, −inf where a row does not see an entry."""
        device = self.model.device
        own = self._halves.decoder.block[0].layer[0].SelfAttention
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


def distances(sees: Bool[np.ndarray, "rows entries"]) -> Int[np.ndarray, "rows entries"]:
    """How many tokens each visible cache entry lies before its row."""
    return np.maximum(sees.sum(1, keepdims=True) - sees.cumsum(1), 0)
