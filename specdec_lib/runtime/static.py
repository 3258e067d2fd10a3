"""Passes whose shapes and addresses never change, so that a CUDA graph can replay them; on a CPU the very same passes run without a graph.

Rows are padded to one of a few bucket sizes, and what is read of the cache to one of a few lengths. Slot 0 is scratch: padding rows write there and
see nothing else, and nobody else sees it.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.runtime.network import lean

BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)  # rows
LENGTHS = (256, 512, 1024)  # slots read; then twice as many
SCRATCH = 0
WARM_UPS = 3  # passes before a capture: libraries set themselves up in the first


def uses_graphs(model: PreTrainedModel, graphs: bool | None) -> bool:
    """Whether CUDA graphs are used: as asked for, or, for None, wherever the model is on a GPU.

    Raises ValueError if they are asked for and the model is not on a GPU.
    """
    on_gpu = model.device.type == "cuda"
    if graphs and not on_gpu:
        has = "has one: load the model there" if torch.cuda.is_available() else "has none that torch can use"
        raise ValueError(
            f"CUDA graphs need a model on a GPU, this one is on {model.device}, and this machine {has}; graphs=None does without them here"
        )
    return on_gpu if graphs is None else graphs


def replayed(run: Callable[[], object], graphs: bool, reset: Callable[[], None] = lambda: None) -> Callable[[], object]:
    """`run` itself, or a CUDA graph of it.

    run      tensors at fixed addresses in and out; before the capture it is called a few times
    reset    undoes what such a call did
    """
    if not graphs:
        return run
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UPS):
            run()
            reset()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def length_for(slots: int) -> int:
    """The shortest length that so many slots fit into."""
    for length in LENGTHS:
        if slots <= length:
            return length
    return 2 * length_for((slots + 1) // 2)


def additive(sees: Bool[Tensor, "rows slots"], dtype: torch.dtype) -> Float[Tensor, "rows slots"]:
    """0 where seen, −inf elsewhere."""
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill_(~sees, float("-inf"))


class StaticNetwork:
    """A decoder with its cache, read in passes of fixed shapes.

    model     in evaluation mode; its device and dtype are used as they are
    slots     it has room for, beside the scratch slot

    Raises ValueError as `lean` and `uses_graphs` do.
    """

    def __init__(self, model: PreTrainedModel, slots: int, *, graphs: bool | None = None, attention: str = "fused") -> None:
        self.graphs = uses_graphs(model, graphs)
        self.network = lean(model.eval())
        self.attention = attention
        self.device, self.dtype = model.device, model.dtype
        self._passes: dict[tuple[int, int], StaticPass] = {}
        self.cache = self.room(slots)

    @property
    def runtime(self) -> str:
        """What runs, in words."""
        return f"{'CUDA graphs' if self.graphs else 'static shapes without graphs'}, {str(self.dtype).removeprefix('torch.')}"

    def room(self, slots: int) -> Tensor:
        """An empty cache for so many slots and the scratch slot, of one of the lengths."""
        return self.network.buffer(length_for(slots + 1))

    def move(self, cache: Tensor) -> None:
        """Use another cache from now on; what was captured for the old one is dropped."""
        self.cache = cache
        self._passes.clear()

    @torch.no_grad()
    def read(
        self, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], sees: Bool[Tensor, "rows slots"]
    ) -> Float[Tensor, "rows vocab"]:
        """One pass over at most `BUCKETS[-1]` rows: a logits row for each, valid until the next call.

        slots    where keys and values of each row go, from 1 on
        sees     up to the last slot that any row sees, the scratch slot included
        """
        rows = next(bucket for bucket in BUCKETS if bucket >= len(tokens))
        key = (rows, min(length_for(sees.shape[1]), self.cache.shape[1]))
        if key not in self._passes:
            self._passes[key] = StaticPass(self, *key)
        return self._passes[key](tokens, positions, slots, sees)

    def read_text(self, tokens: Sequence[int]) -> None:
        """Keys and values of a text from its first token on, position p into slot p + 1."""
        for first in range(0, len(tokens), BUCKETS[-1]):
            positions = range(first, min(first + BUCKETS[-1], len(tokens)))
            sees = torch.ones((len(positions), positions.stop + 1), dtype=torch.bool).tril(first + 1)
            sees[:, SCRATCH] = False
            self.read(tokens[first : positions.stop], positions, range(first + 1, positions.stop + 1), sees)


class StaticPass:
    """One pass over `rows` rows that reads the first `length` slots; `replay` does it once more with the inputs of the last call."""

    def __init__(self, whole: StaticNetwork, rows: int, length: int) -> None:
        self._whole, self._rows, self._length = whole, rows, length
        self._cache = whole.cache[:, :length]
        self._numbers = torch.zeros((3, rows), dtype=torch.long, device=whole.device)
        self._sees = torch.zeros((rows, length), dtype=torch.bool, device=whole.device)
        self._sees[:, SCRATCH] = True
        self._logits: Tensor | None = None
        self.replay = replayed(self.run, whole.graphs)

    def run(self) -> None:
        """The pass over whatever stands in the inputs."""
        tokens, positions, slots = self._numbers
        mask = additive(self._sees, self._whole.dtype)
        network = self._whole.network
        self._logits = network.static(tokens, positions, slots, self._cache, mask, keep=self._rows, attention=self._whole.attention)

    def __call__(self, tokens: Sequence[int], positions: Sequence[int], slots: Sequence[int], sees: Bool[Tensor, "rows slots"]) -> Tensor:
        rows, seen = sees.shape
        padding = [0] * (self._rows - rows)
        padded = torch.zeros((self._rows, self._length), dtype=torch.bool)
        padded[:rows, :seen] = sees
        padded[rows:, SCRATCH] = True
        self._numbers.copy_(torch.tensor([[*given, *padding] for given in (tokens, positions, slots)]))
        self._sees.copy_(padded)
        self.replay()
        return self._logits[:rows]
