"""A decoder as a `LanguageModel` over a static cache: on a GPU each pass replays a CUDA graph, one per bucket of rows and length of cache."""

import time
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.context import Context
from specdec_lib.lm import PathMemory, SlotCache, Usage, check_root
from specdec_lib.runtime.static import BUCKETS, StaticNetwork
from specdec_lib.tree import TokenTree

ROOM = 256  # slots allocated at first beyond the longest context


class StaticSlots(SlotCache):
    """The slots of a static cache. Slot i lies at place i + 1, after the scratch slot; a cache that is full is replaced by a longer one."""

    def __init__(self, network: StaticNetwork) -> None:
        self._network = network
        super().__init__(network.cache.shape[1] - 1)
        self._view()

    def _view(self) -> None:
        """What is moved when a path is: the whole cache as one buffer of keys."""
        self._keys = [self._network.cache[:, 1:].flatten(2)[None]]

    def _reserve(self, slots: int) -> None:
        if self.capacity < slots:
            old = self._network.cache
            longer = self._network.room(max(slots, 2 * self.capacity))
            longer[:, : self.used + 1] = old[:, : self.used + 1]
            self._network.move(longer)
            self.capacity = longer.shape[1] - 1
            self._view()


class GraphModel:
    """A GPT-2 or Llama decoder behind a cache keyed by token path, with passes of static shapes; batch size 1.

    It gives what `CachedModel` gives, up to rounding.

    model        in evaluation mode; its device and dtype are used as they are
    name         how records and figures call it
    graphs       whether to use CUDA graphs; None uses them where the model is on a GPU
    attention    "fused" or "products", whichever is faster

    A pass over more than 128 rows is made of several, and counted so.
    Raises ValueError for a model of another kind, and for graphs without a GPU.
    """

    def __init__(self, model: PreTrainedModel, name: str, *, graphs: bool | None = None, attention: str = "fused") -> None:
        self.model = model.eval()
        self.name = name
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.usage = Usage()
        self._network = StaticNetwork(model, min(self.max_positions, 1024) + ROOM - 1, graphs=graphs, attention=attention)
        self._slots = StaticSlots(self._network)
        self._paths = PathMemory(self._slots, BUCKETS[-1])

    @property
    def runtime(self) -> str:
        """What runs, in words."""
        return self._network.runtime

    def forget(self) -> None:
        """Drop everything remembered; results stay the same, up to rounding."""
        self._paths.forget()

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """One row of logits per node, root first; see `LanguageModel.score`."""
        check_root(context, tree, self.vocabulary, self.max_positions)
        return self._paths.score(context.tokens, tree, self._forward)

    @torch.no_grad()
    def _forward(self, parents: Sequence[int], tokens: Sequence[int], positions: Sequence[int], keep: int) -> range:
        """The new rows in passes of at most the largest bucket; the logits of the last `keep` of them are kept."""
        new = self._slots.add(parents, tokens)
        sees = torch.nn.functional.pad(torch.from_numpy(self._slots.mask(new)), (1, 0))
        kept = []
        for first in range(0, len(tokens), BUCKETS[-1]):
            part = slice(first, first + BUCKETS[-1])
            started = time.perf_counter()
            seen = sees[part, : new[part].stop + 1]
            logits = self._network.read(tokens[part], positions[part], range(new[part].start + 1, new[part].stop + 1), seen)
            kept.append(logits[max(0, len(tokens) - keep - first) :].clone())
            if self._network.graphs:
                torch.cuda.synchronize(self.model.device)
            self.usage += Usage(1, len(logits), time.perf_counter() - started)
        self._slots.filled()
        self._slots.logits |= zip(new[len(new) - keep :], torch.cat(kept), strict=True)
        return new
