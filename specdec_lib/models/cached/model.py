"""Any Hugging Face decoder as a `LanguageModel` that computes every path once."""

import time
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Usage, check_logits, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.key_values import KeyValues, reference_runtime
from specdec_lib.models.cached.path_memory import BranchMemory, weakly
from specdec_lib.models.cached.probing import check_attention, check_by_probes
from specdec_lib.models.cached.windows import (
    check_layers,
    check_window,
    masks_by_layer,
    reach_of,
)
from specdec_lib.models.cut_head import output_weight, score_prompt

CHUNK_ROWS = 256  # a longer prompt is read in pieces
SLACK = 32  # entries of dead branches that stay in the cache


class CachedModel:
    """A decoder-only model behind a cache of token paths; threads that call it take turns.

    window    each token sees the last so many, itself among them; None for all before it

    Raises ValueError unless the network's attention is causal with explicit positions, and a few
    tokens have the logits behind the cache that they have without.
    """

    def __init__(self, model: PreTrainedModel, name: str, *, window: int | None = None) -> None:
        check_attention(model)
        check_window(window)
        self.model = model.eval()
        self.name = name
        self.vocabulary = len(output_weight(model))
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.runtime = reference_runtime(model)
        self.usage = Usage()
        self._cache = KeyValues()
        self._memory = BranchMemory(weakly(self.run_rows), self._cache.move, CHUNK_ROWS, SLACK)
        self._scored: tuple[int, ...] | None = None  # the tokens that a cut head scored last
        self.window: int | None = None
        self.layers_kept: tuple[int, ...] = ()
        check_by_probes(self, model, lambda texts: model(texts, use_cache=False).logits)
        self.window = window
        self._memory.reach = reach_of(model, window)

    @in_turn
    def keep_states(self, layers: Sequence[int]) -> None:
        kept = self.layers_kept
        check_layers(layers, self.model, name=self.name, kept=kept, window=self.window)
        if tuple(layers) != self.layers_kept:
            self.layers_kept = tuple(layers)
            self.forget()

    @in_turn
    def states(self, context: Context, first: int) -> Float[Tensor, "tokens states width"]:
        with self._memory.whole_or_nothing():
            self._memory.read_before(context)
        kept = self._cache.states
        if kept is None:
            return torch.empty(0, len(self.layers_kept), 0)
        return kept[first : len(context) - 1]

    @in_turn
    def forget(self) -> None:
        self._memory.clear()

    @in_turn
    def forget_after(self, context: Context) -> None:
        self._memory.clear_after(context)

    @in_turn
    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        check_root(context, tree, self.vocabulary, self.max_positions, self.name)
        ready = self._memory.ready
        self._scored = score_prompt(self.model, context.prompt, self._scored, ready)
        return self._memory.score(context, tree).clone()

    @torch.no_grad()
    def run_rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], keep: int
    ) -> Float[Tensor, "keep vocab"]:
        device = self.model.device
        mask = masks_by_layer(self.model, lambda window: self._mask(paths, window))
        started = time.perf_counter()
        found = self.model(
            input_ids=torch.tensor([tokens], device=device),
            position_ids=torch.tensor([list(positions)], device=device),
            attention_mask=mask,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=keep,
            output_hidden_states=bool(self.layers_kept),
        )
        if self.layers_kept:
            self._cache.add_states([found.hidden_states[one + 1] for one in self.layers_kept])
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        self.usage += Usage(1, len(tokens), time.perf_counter() - started)
        logits = found.logits[0]
        check_logits(logits, self.name)
        return logits

    def _mask(
        self, paths: list[list[int]], window: int | None
    ) -> Float[Tensor, "1 1 rows entries"]:
        """What is added to attention's scores, so that each row sees its path, and of this at most
        a layer's and the model's own window.
        """
        dtype = self.model.dtype
        memory = self._memory
        limit = min(filter(None, (window, self.window)), default=None)
        sees = self._cache.begin(memory.used, len(memory.committed), paths, limit)
        mask = torch.zeros(sees.shape, dtype=dtype, device=self.model.device)
        mask.masked_fill_(~torch.from_numpy(sees).to(mask.device), torch.finfo(dtype).min)
        return mask[None, None]
