"""A model on the fast CPU runtime: one compiled call per pass."""

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
from specdec_lib.models.cut_head import CutHead
from specdec_lib.models.fast import attention, compiled_trees, kernels, tiles
from specdec_lib.models.fast.path_memory import BranchMemory, PassPlan
from specdec_lib.models.fast.weights import COLUMNS, read_weights, replace_head

CHUNK_ROWS = 48  # a longer prompt is read in pieces: twelve tiles of four rows
SCRATCH = 128  # cache entries allocated at first beyond the model's positions
SMALL = 16_000_000  # bytes of weights up to which one thread is best
MOST = 4096  # nodes of a tree that is grown in one call
ARITHMETIC = {
    "exact": "float32 sums over float32 weights",
    "int8": "whole sums over rows and weights of 8 bits",
}
NO_BINS = np.empty(0), np.empty((0, 0))


class FastModel:
    """A GPT-2 or Llama model on the fast CPU runtime, with the counts of `CachedModel`; a row has
    the very bits that it has on its own, and forgetting changes none.

    model      in float32 or bfloat16 on the CPU; the arithmetic is in float32
    edition    "exact": nothing but the order of sums differs from the reference; or "int8": weights
               and rows of eight bits in blocks of 32, which is another model
    threads    None takes PyTorch's number for a large model and one for a small one

    Raises ValueError for a model that the compiled pass cannot run.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        name: str,
        *,
        edition: str = "exact",
        threads: int | None = None,
    ) -> None:
        self.weights = read_weights(model.eval(), edition)
        self.model = model
        self.name, self.edition = name, edition
        head = model.get_output_embeddings()
        self.vocabulary = len(head.weight)
        self.max_positions = int(model.config.max_position_embeddings)
        if threads is None:
            threads = torch.get_num_threads() if self.weights.nbytes > SMALL else 1
        self.set_threads(threads)
        self.usage = Usage()
        self._cut = head if isinstance(head, CutHead) else None
        self._scored = self._cut and self._cut.ids  # the tokens whose rows the weights hold
        self._ids = np.arange(self.vocabulary) if self._cut is None else self._cut.places.numpy()
        self._memory = BranchMemory()
        self._capacity = -(-(min(self.max_positions, 1024) + SCRATCH) // COLUMNS) * COLUMNS
        self._keys, self._values = self.weights.buffers(self._capacity)

    def set_threads(self, threads: int) -> None:
        """Compute on so many threads, or as many as the machine has; no bit of a result changes."""
        if threads < 1:
            raise ValueError(f"a pass runs on at least 1 thread, got {threads}")
        self.threads = min(threads, numba.config.NUMBA_NUM_THREADS)
        self._pass, self._grow = kernels.one_thread, compiled_trees.grow_on_one_thread
        if self.threads > 1:
            self._pass, self._grow = kernels.many_threads, compiled_trees.grow_on_many_threads
            _start_threads()

    @property
    def digest(self) -> str:
        """Of the compiled code."""
        return tiles.DIGEST

    @property
    def runtime(self) -> str:
        """What computes the passes, in words."""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return f"fast: {ARITHMETIC[self.edition]}, {threads}"

    def forget(self) -> None:
        """Drop everything remembered."""
        self._memory = BranchMemory()

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """The logits after each node; see `LanguageModel.score`."""
        check_root(context, tree, self.vocabulary, self.max_positions)
        if self._cut is not None:
            self._score_prompt_of(context, self._cut)
        memory = self._memory
        try:
            self._commit(context)
            tokens, positions, parents, keep, nodes = memory.plan(context, tree)
            if tokens:
                block = self._run(tokens, positions, memory.paths(parents, memory.used), keep)
                memory.add(parents, tokens)
                new = range(memory.used - keep, memory.used)
                memory.ready.update((entry, (block, row)) for row, entry in enumerate(new))
                if nodes == [*new]:
                    return block.clone()
            return torch.stack([block[row] for block, row in map(memory.ready.__getitem__, nodes)])
        except BaseException:
            self.forget()  # an interrupted pass leaves entries half filled
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
        """The tree that `TreeDraft` would grow; its logits are not kept.  See `TreeGrower.grow`."""
        sampler = chance.sampler
        room = max(0, self.max_positions - len(context) + 1)
        short = [min(width, self.vocabulary) for width in widths[:room]]
        most = 2 + ((budget + 1) * budget if budget else sum(accumulate(short, mul)))
        ranked = sampler.temperature == 0 or (match.edges and sampler.top_p == 1)
        if not ranked or not short or max(most, *short) > MOST:
            return None
        root = TokenTree.rooted(context)
        check_root(context, root, self.vocabulary, self.max_positions)
        if self._cut is not None:
            self._score_prompt_of(context, self._cut)
        try:
            self._commit(context)
            plan = self._memory.plan(context, root)
            if not plan.tokens:
                return None
            limits = np.array(short), budget or 0, float(floor)
            nodes, scores = self._grow_compiled(len(context), chance, plan, limits, match, most)
        except BaseException:
            self.forget()  # an interrupted pass leaves entries half filled
            raise
        tokens, parents = nodes[:, 1:].tolist()
        return root.grown(tokens, parents, source=self.name, scores=scores[1:].tolist())

    def _grow_compiled(
        self,
        length: int,
        chance: Chance,
        plan: PassPlan,
        limits: tuple[np.ndarray, int, float],
        match: MatchTable,
        most: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and parents of a tree's nodes, and their scores, after `length` tokens."""
        memory, weights, sampler = self._memory, self.weights, chance.sampler
        start, noisy = memory.used, sampler.temperature > 0
        self._reserve(start + len(plan.tokens) + most)
        depths = range(len(limits[0]))
        keys = [chance.noise_key(length + depth) if noisy else 0 for depth in depths]
        bins = (np.array(match.edges), np.array(match.binned)) if noisy else NO_BINS
        root_path = np.array(memory.paths(plan.parents, start)[-1])
        began = self._start()
        nodes, scores, reads, passes = self._grow(
            (plan.positions[0], start, len(memory.committed), root_path),
            np.array(plan.tokens),
            limits,
            (float(sampler.temperature), min(sampler.top_k or 0, len(self._ids)), *bins),
            (np.array(keys, np.uint64), self._ids),
            (weights.shape, weights.tables, weights.layers, weights.head),
            (self._keys, self._values),
            (weights.columns, most),
        )
        if passes < 0:
            raise ValueError(
                "logits must hold no NaN or +inf and at least one finite value; those of"
                f" {self.name} do not"
            )
        rows = len(plan.tokens) + reads.shape[1]
        self.usage += Usage(passes, rows, time.perf_counter() - began)
        memory.add(plan.parents, plan.tokens)
        memory.add(reads[1].tolist(), reads[0].tolist())
        return nodes, scores

    def _score_prompt_of(self, context: Context, head: CutHead) -> None:
        """Score the prompt's own tokens as well; the logits that are kept lack them."""
        head.set_prompt(context.prompt)
        if head.ids is not self._scored:
            self._memory.ready.clear()
            self.weights = replace_head(self.weights, head.rows)
            self._scored, self._ids = head.ids, head.places.numpy()

    def _commit(self, context: Context) -> None:
        """Make the known beginning of a context contiguous, and read a long rest in chunks."""
        memory, tokens = self._memory, context.tokens
        first, sources = memory.commit(context)
        if sources:
            attention.move_entries(self._keys, self._values, np.array(sources), first)
        if len(tokens) - len(memory.committed) <= CHUNK_ROWS:
            return
        memory.forget_branches()
        while len(tokens) - memory.used > CHUNK_ROWS:
            piece = tokens[memory.used : memory.used + CHUNK_ROWS]
            new = range(memory.used, memory.used + len(piece))
            self._run(piece, new, [[*range(new.start, entry + 1)] for entry in new], 1)
            memory.append(piece)

    def _run(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        paths: Sequence[Sequence[int]],
        keep: int,
    ) -> Float[Tensor, "keep vocab"]:
        """One pass over new rows, in the next entries; the logits of the last `keep` of them."""
        start, weights = self._memory.used, self.weights
        self._reserve(start + len(tokens))
        counts = [len(path) for path in paths]
        padded = np.array([path + [0] * (max(counts) - len(path)) for path in paths])
        committed = len(self._memory.committed)
        rows = np.array(tokens), np.array(positions), start, committed, padded, np.array(counts)
        logits = np.empty((keep, weights.columns), np.float32)
        began = self._start()
        self._pass(
            *(rows, keep, weights.shape, weights.tables, weights.layers, weights.head),
            *(self._keys, self._values, logits),
        )
        self.usage += Usage(1, len(tokens), time.perf_counter() - began)
        scored = torch.from_numpy(logits)
        return scored[:, : self.vocabulary] if self._cut is None else self._cut.spread(scored)

    def _start(self) -> float:
        """The time at which a compiled call on this model's threads begins."""
        if 1 < self.threads != numba.get_num_threads():
            numba.set_num_threads(self.threads)
        return time.perf_counter()

    def _reserve(self, entries: int) -> None:
        if entries > self._capacity:
            old = self._keys, self._values
            while self._capacity < entries:
                self._capacity *= 2
            self._keys, self._values = self.weights.buffers(self._capacity)
            self._keys[:, :, : old[0].shape[2]], self._values[:, :, :, : old[1].shape[3]] = old


@functools.cache
def _start_threads() -> None:
    """Start Numba's threads, which sets the number of PyTorch's, and restore that."""
    threads = torch.get_num_threads()
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    torch.set_num_threads(threads)
