"""A token for each of many independent sequences per pass: a decoder over a static cache."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, PreTrainedModel

from specdec_lib.models.network_passes import head_logits, inputs_of, run_body


class PlacedCache(DynamicCache):
    """The keys and values of some sequences, each with room for so many positions.

    keys, values    [layers, sequences, heads, positions, size]
    """

    def __init__(self, shape: tuple[int, int, int, int, int], model: PreTrainedModel) -> None:
        super().__init__()
        self.keys = torch.zeros(shape, dtype=model.dtype, device=model.device)
        self.values = torch.zeros_like(self.keys)
        self._sequences: Tensor | None = None
        self._places: tuple[Tensor, Tensor] | None = None
        self._real: Tensor | None = None
        self._seen = 0

    def begin(
        self,
        positions: Int[Tensor, "rows length"],
        real: Bool[Tensor, "rows length"] | None = None,
        sequences: Int[Tensor, " rows"] | None = None,
    ) -> int:
        """Where the next pass stores its tokens; returns how many positions it sees.

        real         which tokens are stored; None for all
        sequences    the number of each row's; None for all in turn
        """
        numbers = sequences
        if numbers is None:
            numbers = torch.arange(len(positions), device=positions.device)
        whole = numbers[:, None].expand_as(positions), positions
        rows, at = (one.flatten() if real is None else one[real] for one in whole)
        self._sequences = sequences
        self._places = rows, at
        self._real = real
        self._seen = int(at.max()) + 1
        return self._seen

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values; those that the rows may see."""
        assert self._places is not None  # `begin` has set it
        rows, at = self._places
        sequences = self._sequences
        found = []
        for kept, new in ((self.keys, key_states), (self.values, value_states)):
            its = kept[layer_idx]
            given = new.transpose(1, 2)
            its[rows, :, at] = given.flatten(0, 1) if self._real is None else given[self._real]
            its = its[:, :, : self._seen] if sequences is None else its[sequences, :, : self._seen]
            found.append(its)
        return found[0], found[1]


class BatchedPasses:
    """The logits of a decoder's next token for some sequences of at most so many positions.

    dtype    None is bfloat16 where the device multiplies it: to learn from, not to measure
    head     the token ids that are scored, None for all

    It computes on the model's device. Keys and values take `cache_bytes`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sequences: int,
        positions: int,
        *,
        dtype: torch.dtype | None = None,
        head: Sequence[int] | None = None,
    ) -> None:
        config = model.config.get_text_config()
        dtype = dtype or fastest_dtype(model.device)
        self.model = model
        self.device = model.device
        self.body: Any = model.get_decoder()
        rotary = self.body.rotary_emb
        if model.dtype != dtype:
            self.body = deepcopy(self.body).to(dtype)
            self.body.rotary_emb = rotary  # bfloat16 would round its frequencies
        output: Any = model.get_output_embeddings()
        rows = output.weight.detach()
        self.head = (rows if head is None else rows[list(head)]).to(dtype)
        size = self.body.layers[0].self_attn.head_dim
        heads = int(config.num_key_value_heads or config.num_attention_heads)
        shape = (len(self.body.layers), sequences, heads, positions, int(size))
        self.cache = PlacedCache(shape, self.body)

    @property
    def cache_bytes(self) -> int:
        """The bytes of all keys and values."""
        return self.cache.keys.nbytes + self.cache.values.nbytes

    @torch.inference_mode()
    def logits(
        self, tokens: Int[Tensor, " sequences"], positions: Int[Tensor, " sequences"]
    ) -> Float[Tensor, "sequences scored"]:
        """The logits after one more token, with its position, of every sequence."""
        at = positions.to(self.device)[:, None]
        seen = self.cache.begin(at)
        hidden = self._run(tokens.to(self.device)[:, None], at, seen)
        return head_logits(self.model, hidden[:, 0], self.head)

    @torch.inference_mode()
    def read(
        self, slots: Sequence[int], texts: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> Float[Tensor, "texts scored"]:
        """The logits after the last token of each text, which is read in one pass.

        slots     which sequence each text belongs to, each at most once
        starts    the position of its first token; what the sequence holds before it is seen
        """
        place = torch.tensor(slots, device=self.device)
        first = torch.tensor(starts, device=self.device)
        sizes = torch.tensor([len(text) for text in texts], device=self.device)
        padded = [torch.tensor(text, device=self.device) for text in texts]
        ids = pad_sequence(padded, batch_first=True)
        steps = torch.arange(ids.shape[1], device=self.device)
        positions = first[:, None] + steps
        seen = self.cache.begin(positions, steps < sizes[:, None], place)
        hidden = self._run(ids, positions, seen)
        last = hidden[torch.arange(len(texts), device=self.device), sizes - 1]
        return head_logits(self.model, last, self.head)

    def _run(
        self, ids: Int[Tensor, "rows length"], positions: Int[Tensor, "rows length"], seen: int
    ) -> Float[Tensor, "rows length width"]:
        """The normed output of tokens, whose places the cache knows."""
        every = torch.arange(seen, device=self.device)

        def sees(window: int | None) -> Bool[Tensor, "rows heads length seen"]:
            behind = positions[:, None, :, None] - every
            return (behind >= 0) if window is None else (behind >= 0) & (behind < window)

        inputs = inputs_of(self.body, ids)
        return run_body(self.body, inputs, positions, sees, cache=self.cache)


def draw(
    logits: Float[Tensor, "rows scored"],
    temperature: float | Float[Tensor, " rows"],
    generator: torch.Generator,
    *,
    greedy: Tensor,
) -> Int[Tensor, " rows"]:
    """The place of each row's next token: the likeliest where `greedy`, else one drawn.

    temperature    of all rows, or one of each row; that of a greedy row is not used
    """
    best = logits.argmax(dim=-1)
    drawn = ~greedy
    if isinstance(temperature, Tensor):
        temperature = temperature[drawn, None]
    odds = (logits[drawn].float() / temperature).softmax(dim=-1).cumsum(dim=-1)
    place = torch.rand(len(odds), 1, generator=generator, device=generator.device) * odds[:, -1:]
    best[drawn] = torch.searchsorted(odds, place).squeeze(1).clamp(max=logits.shape[1] - 1)
    return best


def fastest_dtype(device: torch.device | None = None) -> torch.dtype:
    """bfloat16 where the device multiplies it, else float32, which is then far quicker.

    device    None is the processor
    """
    if device is not None and device.type == "cuda":
        return torch.bfloat16
    capable = torch.cpu.get_capabilities()
    known = any(capable.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return torch.bfloat16 if known else torch.float32
