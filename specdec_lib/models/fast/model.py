"""The same model, faster, on a CPU: float32 arithmetic in one compiled call per pass, and the very
bits of a row whatever is computed beside it.
"""

import functools
import time
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numba
import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Usage, check_root
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.models.fast import attention, kernels, tiles, trees
from specdec_lib.models.fast.memory import Memory
from specdec_lib.models.fast.weights import COLUMNS, read

CHUNK_ROWS = 48  # a longer prompt is read in pieces: twelve tiles of four rows
SCRATCH = 128  # slots allocated at first beyond the model's positions
# bytes of weights up to which a second thread hardly pays, and trees are grown in one call on one
# thread
SMALL = 16_000_000
MOST = 4096  # nodes of a tree that is grown in one call
NO_BINS = np.empty(0), np.empty((0, 0))


@functools.cache
def _started() -> None:
    """Numba's threads are started, and PyTorch keeps its number of threads: both share one OpenMP,
    where the start sets it to all processors.
    """
    threads = torch.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    torch.set_num_threads(threads)


class FastModel:
    """A decoder of GPT-2's or Llama's kind behind a memory of paths; batch size 1.

    The interface and the counts are those of `CachedModel`.

    model      in float32 or bfloat16 on the CPU; the arithmetic is in float32
    name       how records and figures call it
    stored     "exact", or "int8": weights of eight bits, which is another law and a cheap draft of
               its own target
    threads    1, or more; None takes PyTorch's number for a large model and one for a small one

    Raises ValueError for a model of another kind, or one that the compiled pass does not know.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        name: str,
        *,
        stored: str = "exact",
        threads: int | None = None,
    ) -> None:
        self.weights = read(model.eval(), stored)
        self.model = model
        self.name = name
        self.vocabulary = self.weights.vocabulary
        self.max_positions = int(model.config.max_position_embeddings)
        self.use(
            (torch.get_num_threads() if self.weights.nbytes > SMALL else 1)
            if threads is None
            else threads
        )
        self.usage = Usage()
        self._memory = Memory()
        self._slots = -(-(min(self.max_positions, 1024) + SCRATCH) // COLUMNS) * COLUMNS
        self._keys, self._values = self.weights.buffers(self._slots)

    def use(self, threads: int) -> None:
        """Compute on so many threads from now on, or as many as the machine has; no bit of a result
        depends on it.  Raises ValueError below 1.
        """
        if threads < 1:
            raise ValueError(f"a pass runs on at least 1 thread, got {threads}")
        self.threads = min(threads, numba.config.NUMBA_NUM_THREADS)
        self._pass = kernels.many_threads if self.threads > 1 else kernels.one_thread
        if self.threads > 1:
            _started()

    @property
    def edition(self) -> str:
        """Of the compiled code."""
        return tiles.DIGEST

    @property
    def runtime(self) -> str:
        """What runs, in words."""
        return f"fast: float32 sums over {self.weights.stored} weights, {self.threads} thread{'s' if self.threads > 1 else ''}"

    def forget(self) -> None:
        """Drop everything remembered; results stay the same, to the bit."""
        self._memory = Memory()

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """One row of logits per node, root first; see `LanguageModel.score`."""
        check_root(context, tree, self.vocabulary, self.max_positions)
        memory = self._memory
        try:
            self._settle(context)
            tokens, positions, parents, keep, nodes = memory.plan(context, tree)
            if tokens:
                block = self._run(tokens, positions, memory.paths(parents, memory.used), keep)
                memory.add(parents, tokens)
                new = range(memory.used - keep, memory.used)
                memory.ready.update((slot, (block, row)) for row, slot in enumerate(new))
                if nodes == [*new]:
                    return block.clone()
            return torch.stack([block[row] for block, row in map(memory.ready.__getitem__, nodes)])
        except BaseException:
            self.forget()  # an interrupted pass leaves slots half filled
            raise

    def grow(
        self,
        context: Context,
        chance: Chance,
        *,
        widths: Sequence[int],
        budget: int | None,
        floor: float,
        match: MatchTable,
    ) -> TokenTree | None:
        """The tree that `TreeDraft` would grow level by level from "ranked" siblings, up to
        rounding of scores; None where only the long way will do.

        Its seconds in `usage` hold the choices and the planting too.

        widths    children per node at each depth; with a budget, the depth counts and the budget is
                  filled best-first
        """
        sampler, memory, weights = chance.sampler, self._memory, self.weights
        short = [
            min(width, self.vocabulary)
            for width in widths[: max(0, self.max_positions - len(context) + 1)]
        ]
        most = 2 + ((budget + 1) * budget if budget else sum(accumulate(short, mul)))
        ranked = sampler.temperature == 0 or (
            match.edges and sampler.top_p == 1 and sampler.top_k is not None
        )
        if not ranked or weights.nbytes > SMALL or not short or max(most, *short) > MOST:
            return None
        check_root(context, TokenTree.rooted(context), self.vocabulary, self.max_positions)
        try:
            self._settle(context)
            rest, positions, parents, _, _ = memory.plan(context, TokenTree.rooted(context))
            if not rest:
                return None
            start, wide = memory.used, np.array(short)
            self._reserve(start + len(rest) + most)
            keys = (
                [chance.noise_key(len(context) + depth) for depth in range(len(short))]
                if sampler.temperature
                else [0]
            )
            bins = (
                (np.array(match.edges), np.array(match.binned)) if sampler.temperature else NO_BINS
            )
            root_path = np.array(memory.paths(parents, start)[-1])
            began = time.perf_counter()
            nodes, scores, read, passes = trees.planted(
                *(
                    np.array(rest),
                    positions[0],
                    start,
                    len(memory.trunk),
                    root_path,
                    wide,
                    budget or 0,
                    float(floor),
                ),
                *(
                    (float(sampler.temperature), min(sampler.top_k or 0, self.vocabulary), *bins),
                    np.array(keys, np.uint64),
                ),
                *(
                    (weights.shape, weights.tables, weights.layers, weights.head),
                    (self._keys, self._values),
                ),
                (self.vocabulary, weights.head[0].shape[0] * COLUMNS, most),
            )
            if passes < 0:
                raise ValueError(
                    "logits must hold no NaN or +inf and at least one finite value; those of"
                    f" {self.name} do not"
                )
            self.usage += Usage(passes, len(rest) + read.shape[1], time.perf_counter() - began)
            memory.add(parents, rest)
            memory.add(read[1].tolist(), read[0].tolist())
        except BaseException:
            self.forget()  # an interrupted pass leaves slots half filled
            raise
        tokens, above = nodes[:, 1:].tolist()
        return TokenTree.rooted(context).grown(
            tokens, above, source=self.name, scores=scores[1:].tolist()
        )

    def _settle(self, context: Context) -> None:
        """Move what is known of a context together, and read a long unknown stretch of it."""
        first, sources = self._memory.settle(context)
        if sources:
            attention.moved(self._keys, self._values, np.array(sources), first)
        if len(context) - len(self._memory.trunk) > CHUNK_ROWS:
            self._read_ahead(context.tokens)

    def _read_ahead(self, tokens: tuple[int, ...]) -> None:
        """A long unknown stretch, in pieces; the last one is left to the pass that reads the tree."""
        memory = self._memory
        memory.forget_guesses()
        while len(tokens) - memory.used > CHUNK_ROWS:
            piece = tokens[memory.used : memory.used + CHUNK_ROWS]
            new = range(memory.used, memory.used + len(piece))
            self._run(piece, new, [[*range(new.start, slot + 1)] for slot in new], 1)
            memory.append(piece)

    def _run(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        paths: Sequence[Sequence[int]],
        keep: int,
    ) -> Float[Tensor, "keep vocab"]:
        """One pass over new rows, in the next slots; the logits of the last `keep` of them."""
        start, weights = self._memory.used, self.weights
        self._reserve(start + len(tokens))
        lengths = [len(path) for path in paths]
        longest = max(lengths)
        above = np.array([path + [0] * (longest - len(path)) for path in paths])
        counts = np.array(lengths)
        logits = np.empty((keep, weights.head[0].shape[0] * COLUMNS), np.float32)
        rows, places = np.array(tokens), np.array(positions)
        trunk = len(self._memory.trunk)
        began = time.perf_counter()
        if 1 < self.threads != numba.get_num_threads():
            numba.set_num_threads(self.threads)
        self._pass(
            *(rows, places, start, trunk, above, counts, keep, weights.shape),
            *(weights.tables, weights.layers, weights.head, self._keys, self._values, logits),
        )
        self.usage += Usage(1, len(tokens), time.perf_counter() - began)
        return torch.from_numpy(logits)[:, : self.vocabulary]

    def _reserve(self, slots: int) -> None:
        if slots > self._slots:
            old = self._keys, self._values
            while self._slots < slots:
                self._slots *= 2
            self._keys, self._values = self.weights.buffers(self._slots)
            self._keys[:, :, : old[0].shape[2]], self._values[:, :, :, : old[1].shape[3]] = old
