"""An encoder-decoder model as a `LanguageModel`: the source comes with the context, and every
decoder path is computed once.

T5 adds a bias to each score that follows from how far the key lies before the query *along the
path*. Its own attention takes that distance from cache slots, which is wrong for a tree, so the
decoder's layers are called one by one here with the mask and bias of the tree.
"""

import time
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Usage, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.paths import PathMemory
from specdec_lib.models.cached.slots import SlotCache

KINDS = ("t5", "mt5")
SLOTS = 256  # allocated at first
PROBE = 24  # tokens that a new model is tried on
TOLERANCES = {
    torch.float64: 1e-6,
    torch.float32: 1e-3,
}  # of the logits' norm; coarser types are checked to 0.05

KeysValues = tuple[Float[Tensor, "1 heads slots size"], Float[Tensor, "1 heads slots size"]]


class Seq2SeqModel:
    """A T5-shaped model behind a cache keyed by the decoder's path; batch size 1.

    The encoder runs once per source: its keys and values are kept until another source comes. All
    else is as for `CachedModel`.

    model            in evaluation mode; its device and dtype are used as they are
    name             how records and figures call it
    max_positions    of the decoder; T5 has no limit of its own, and was trained on at most 512
    chunk_rows       longer decoder text is read in pieces of this many tokens
    usage            passes and rows of the decoder; seconds of both halves
    encoder_passes   how often the encoder ran

    Raises ValueError for a model that is no T5 or whose logits differ from its own forward's:
    distances would be wrong.
    """

    def __init__(
        self, model: PreTrainedModel, name: str, *, max_positions: int = 512, chunk_rows: int = 256
    ) -> None:
        _check_kind(model)
        if max_positions < 1:
            raise ValueError(f"max_positions must be at least 1, got {max_positions}")
        self.model = model.eval()
        self.name = name
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.max_positions = max_positions
        self.usage = Usage()
        self.encoder_passes = 0
        self._source: tuple[int, ...] | None = None
        self._crossed: list[KeysValues] = []
        self._slots = SlotCache(SLOTS)
        self._paths = PathMemory(self._slots, chunk_rows)
        self._buckets = _buckets(
            model, max(max_positions, PROBE) + 1
        )  # a slot that is not seen may seem one further
        self._scale = self._head_scale()

    @property
    def runtime(self) -> str:
        """What computes the passes: always the reference."""
        kind = str(self.model.dtype).removeprefix("torch.")
        return f"reference: Hugging Face in {kind} on {self.model.device}"

    def forget(self) -> None:
        """Drop everything remembered, the source too; results stay the same, up to rounding."""
        self._paths.forget()
        self._source, self._crossed = None, []

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """One row of logits per node, root first; see `LanguageModel.score`.

        Raises ValueError too if the context has no source.
        """
        check_root(context, tree, self.vocabulary, self.max_positions)
        self.read_source(context)
        return self._paths.score(context.tokens, tree, self._forward)

    @torch.no_grad()
    def read_source(self, context: Context) -> None:
        """Run the encoder over the context's source, unless it was the last one read.

        Raises ValueError if there is no source, or it is empty or holds a token beyond the
        vocabulary.
        """
        source = self._checked(context)
        if source == self._source:
            return
        self.forget()
        started = time.perf_counter()
        encoded = self.model.encoder(
            input_ids=torch.tensor([source], device=self.model.device)
        ).last_hidden_state
        layers = [block.layer[1].EncDecAttention for block in self.model.decoder.block]
        self._crossed = [
            (_heads(layer, layer.k(encoded)), _heads(layer, layer.v(encoded))) for layer in layers
        ]
        self._count(started)
        self.encoder_passes += 1
        self._source = source

    def _checked(self, context: Context) -> tuple[int, ...]:
        source = context.source
        if not source:
            raise ValueError(
                f"{self.name} is an encoder-decoder model: the context needs a source of at least"
                f" one token, got {source}"
            )
        if not 0 <= min(source) <= max(source) < self.vocabulary:
            raise ValueError(
                f"the source's tokens must lie in 0…{self.vocabulary - 1}, got"
                f" {min(source)}…{max(source)}"
            )
        return source

    @torch.no_grad()
    def _forward(
        self, parents: Sequence[int], tokens: Sequence[int], positions: Sequence[int], keep: int
    ) -> range:
        """One decoder pass over new rows; the logits of the last `keep` of them are kept.

        Positions follow from what a row sees.
        """
        new = self._slots.add(parents, tokens)
        sees = self._slots.mask(new)
        started = time.perf_counter()
        decoder, bias = self.model.decoder, self._bias(sees, distances(sees))
        hidden = decoder.embed_tokens(torch.tensor([tokens], device=self.model.device))
        for number, (block, crossed) in enumerate(zip(decoder.block, self._crossed, strict=True)):
            own, across, feed_forward = block.layer
            normed, layer = own.layer_norm(hidden), own.SelfAttention
            kept = self._slots.update(
                _heads(layer, layer.k(normed)), _heads(layer, layer.v(normed)), number
            )
            hidden = hidden + _attended(layer, normed, kept, bias)
            hidden = hidden + _attended(
                across.EncDecAttention, across.layer_norm(hidden), crossed, None
            )
            hidden = feed_forward(hidden)
        logits = self.model.lm_head(
            decoder.final_layer_norm(hidden[:, len(tokens) - keep :]) * self._scale
        )[0]
        self._count(started, passes=1, rows=len(tokens))
        self._slots.filled()
        self._slots.logits |= zip(new[len(new) - keep :], logits, strict=True)
        return new

    def _bias(
        self, sees: Bool[np.ndarray, "rows slots"], apart: Int[np.ndarray, "rows slots"]
    ) -> Float[Tensor, "1 heads rows slots"]:
        """What is added to every score: the bias of the distance, −inf where a row does not see a
        slot.
        """
        weights, device = (
            self.model.decoder.block[0].layer[0].SelfAttention.relative_attention_bias,
            self.model.device,
        )
        bias = weights(self._buckets[torch.from_numpy(apart)].to(device)).permute(2, 0, 1)
        return bias.masked_fill(~torch.from_numpy(sees).to(device), -torch.inf)[None]

    def _count(self, started: float, *, passes: int = 0, rows: int = 0) -> None:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        self.usage += Usage(passes, rows, time.perf_counter() - started)

    @torch.no_grad()
    def _head_scale(self) -> float:
        """What the decoder's output is multiplied by before the head: 1 or d_model^−½, by model and
        by version of transformers.

        Raises ValueError if neither gives the logits that the model itself gives on a short text.
        """
        text = tuple((7 * at + 1) % self.vocabulary for at in range(PROBE))
        given = torch.tensor([text], device=self.model.device)
        wanted = self.model(input_ids=given, decoder_input_ids=given, use_cache=False).logits[0]
        self._scale = 1.0
        context = Context.of(text, text)
        self.read_source(context)
        slots = self._forward([-1, *range(PROBE - 1)], text, range(PROBE), PROBE)
        found = torch.stack([self._slots.logits[slot] for slot in slots])
        self.forget()
        self.usage, self.encoder_passes = Usage(), 0
        errors = {
            scale: float((scale * found - wanted).norm() / wanted.norm())
            for scale in (1.0, self.model.config.d_model**-0.5)
        }
        scale = min(errors, key=lambda one: errors[one])
        if not errors[scale] <= TOLERANCES.get(self.model.dtype, 0.05):
            raise ValueError(
                f"{self.model.config.model_type} does not work as a T5 does: its logits differ from"
                f" ours by {errors[scale]:.1%}"
            )
        return scale


def distances(sees: Bool[np.ndarray, "rows slots"]) -> Int[np.ndarray, "rows slots"]:
    """How many tokens each seen slot lies before its row: a row sees its own path, in order."""
    return np.maximum(sees.sum(1, keepdims=True) - sees.cumsum(1), 0)


def _buckets(model: PreTrainedModel, positions: int) -> Int[Tensor, " positions"]:
    """T5's bucket of each distance."""
    layer, config = model.decoder.block[0].layer[0].SelfAttention, model.config
    sizes = {
        "num_buckets": config.relative_attention_num_buckets,
        "max_distance": config.relative_attention_max_distance,
    }
    return layer._relative_position_bucket(-torch.arange(positions), bidirectional=False, **sizes)


def _heads(
    layer: torch.nn.Module, rows: Float[Tensor, "1 rows inner"]
) -> Float[Tensor, "1 heads rows size"]:
    return rows.unflatten(2, (-1, layer.key_value_proj_dim)).transpose(1, 2)


def _attended(
    layer: torch.nn.Module,
    hidden: Float[Tensor, "1 rows width"],
    kept: KeysValues,
    bias: Float[Tensor, "1 heads rows slots"] | None,
) -> Float[Tensor, "1 rows width"]:
    """One attention; T5 does not scale its products."""
    found = F.scaled_dot_product_attention(
        _heads(layer, layer.q(hidden)), *kept, attn_mask=bias, scale=1.0
    )
    return layer.o(found.transpose(1, 2).flatten(2))


def _check_kind(model: PreTrainedModel) -> None:
    kind = model.config.model_type
    reasons = {
        "is no encoder-decoder model": not model.config.is_encoder_decoder,
        "has a bias of its own in every layer": kind == "umt5",
        "has another attention": kind not in KINDS,
        "has no head for text": not hasattr(model, "lm_head"),
    }
    for reason, found in reasons.items():
        if found:
            raise ValueError(
                f"an encoder-decoder model must be of the T5 family ({', '.join(KINDS)}) with one"
                f" relative bias; {kind} {reason}"
            )
