"""A model on the fast CPU runtime: one compiled call per pass."""

import time
from collections.abc import Callable, Sequence

import numba
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Ranked, Scout, StateKeeper, Usage, check_logits, check_root
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.models.cached.path_memory import BranchMemory, PassPlan, weakly
from specdec_lib.models.cached.windows import check_layers, check_window, reach_of
from specdec_lib.models.cut_head import CutHead, output_weight
from specdec_lib.models.fast import choices
from specdec_lib.models.fast.compiled_trees import GrowthSettings, Place
from specdec_lib.models.fast.entries import larger_buffers, move_entries
from specdec_lib.models.fast.growth import growth_settings
from specdec_lib.models.fast.reading import reader_of
from specdec_lib.models.fast.threads import passes_for
from specdec_lib.models.fast.weights import EDITIONS, read_weights
from specdec_lib.models.katz.trie import NO_GUESSES
from specdec_lib.models.reading import ReadLevel, levels_of

CHUNK_ROWS = 48  # a longer prompt is read in pieces: three tiles of sixteen rows
SCRATCH = 128  # cache entries allocated at first beyond the model's positions


class FastModel:
    """A decoder of a kind in `FAMILIES` in float32 on the fast CPU runtime, with the counts of
    `CachedModel`; a row has the very bits that it has on its own, whatever was read before and on
    however many threads (PyTorch's number for a large model). Threads that call it take turns.

    model      its weights may be bfloat16 or float16: they are converted when they are read
    edition    "exact": only the order of sums differs from the reference (of a model in float32);
               "int8": another model
    window     each token sees the last so many, itself among them; None for all before it
    target     of a draft that reads its target's hidden states, see `ReadingModel`
    as_in_files
               the model's weights were just read from files and not changed: memory that maps files
               is given back while they are read

    Raises ValueError for a model that the compiled pass cannot run.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        name: str,
        *,
        edition: str = "exact",
        window: int | None = None,
        target: StateKeeper | None = None,
        as_in_files: bool = False,
    ) -> None:
        check_window(window)
        self.weights = read_weights(model.eval(), edition, window, as_in_files=as_in_files)
        self.model = model
        self.name = name
        self.edition = edition
        self.window = window
        self.layers_kept: tuple[int, ...] = ()
        self.target = target
        self._reader = reader_of(model, target, edition)
        self._context: Context | None = None
        self.vocabulary = len(output_weight(model))
        self.usage = Usage()
        self.max_positions = int(model.config.get_text_config().max_position_embeddings)
        self.run_on(torch.get_num_threads())
        head = model.get_output_embeddings()
        self._cut = head if isinstance(head, CutHead) else None
        self._others = self._cut and self._cut.others  # whose rows the weights hold too
        self._ids = np.arange(self.vocabulary) if self._cut is None else self._cut.places.numpy()
        self._memory = BranchMemory(
            weakly(self.run_rows),
            weakly(self._move),
            CHUNK_ROWS,
            reach=reach_of(model, window),
            rereads=self._reader is not None,
        )
        self._buffers = self.weights.buffers(min(self.max_positions, 1024) + SCRATCH)
        self._rotate(min(self.max_positions, 1024))

    def run_on(self, threads: int) -> None:
        """Run on so many threads from now on, as far as the machine has them; a small model runs on
        one.  Raises ValueError for less than one.
        """
        if threads < 1:
            raise ValueError(f"a model runs on 1 thread or more, got {threads}")
        self._passes = passes_for(self.model, threads)
        self.threads = self._passes.threads
        arithmetic = EDITIONS[self.edition].format(str(self.model.dtype).removeprefix("torch."))
        self.runtime = f"fast: {arithmetic}, {self.threads} thread{'s' * (self.threads > 1)}"

    @in_turn
    def forget(self) -> None:
        self._memory.clear()

    @in_turn
    def forget_after(self, context: Context) -> None:
        self._memory.clear_after(context)

    @in_turn
    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        self._prepare(context, tree)
        scored = self._memory.score(context, tree)
        if self._cut is None:
            return scored.clone()
        whole = np.full((len(scored), self.vocabulary), -np.inf, np.float32)
        for row, its in zip(whole, scored.numpy(), strict=True):  # faster than all rows at once
            row[self._ids] = its
        return torch.from_numpy(whole)

    @in_turn
    def keep_states(self, layers: Sequence[int]) -> None:
        kept = self.layers_kept
        check_layers(layers, self.model, name=self.name, kept=kept, window=self.window)
        if tuple(layers) != self.layers_kept:
            self.forget()
            self.layers_kept = tuple(layers)
            self.weights = self.weights._replace(kept=np.array(layers))
            self._buffers = self.weights.buffers(self._buffers[1].shape[3])

    @in_turn
    def states(self, context: Context, first: int) -> Float[Tensor, "tokens states width"]:
        with self._memory.whole_or_nothing():
            self._memory.read_before(context)
        kept = self._buffers[2][:, first : len(context) - 1]
        return torch.from_numpy(kept.transpose(1, 0, 2).copy())

    @in_turn
    def rank(
        self, context: Context, tree: TokenTree, chance: Chance, *, width: int, match: MatchTable
    ) -> Callable[[int], Ranked] | None:
        sampling = choices.compiled_sampling(chance.sampler, match, self.vocabulary)
        if sampling is None:
            return None
        self._prepare(context, tree)
        scored = self._memory.score(context, tree).numpy()
        keys = choices.noise_keys(chance, len(context), max(tree.depths) + 1)[[*tree.depths]]
        ids = self._ids
        width = min(width, len(ids))

        def ranked(node: int) -> Ranked:
            tokens, factors = choices.rank_row(scored[node], width, sampling, keys[node], ids)
            choices.check_finite(len(tokens), self.name)
            return tokens.tolist(), factors.tolist()

        return ranked

    @in_turn
    def grow(
        self,
        context: Context,
        chance: Chance,
        *,
        widths: Sequence[int],
        budget: int | None,
        floor: float,
        match: MatchTable,
        deepen: float = 0.0,
        scout: Scout | None = None,
    ) -> TokenTree | None:
        if scout is None or self._reader is not None:  # level by level, a scout saves no pass
            scout = Scout(NO_GUESSES, guided=0, source="")
        room = max(0, self.max_positions - len(context) + 1)
        settings = growth_settings(
            context,
            chance,
            widths=[min(width, self.vocabulary) for width in widths[:room]],
            budget=budget,
            floor=floor,
            deepen=deepen,
            match=match,
            scout=scout,
            ids=self._ids,
            vocabulary=self.vocabulary,
        )
        if settings is None:
            return None
        root = TokenTree.rooted(context)
        self._prepare(context, root)
        with self._memory.whole_or_nothing():
            self._memory.read(context)
            plan = self._memory.plan(context, root)
            if not plan.tokens:
                return None
            nodes, scores = self._grow_compiled(plan, settings._replace(ids=self._ids))
        tokens, parents, _, scouted = nodes[:, 1:].tolist()
        sources = [scout.source if its else self.name for its in scouted]
        return root.grown(tokens, parents, source=sources, scores=scores[1:].tolist())

    def _grow_compiled(
        self, plan: PassPlan, settings: GrowthSettings
    ) -> tuple[Int[np.ndarray, "4 nodes"], Float[np.ndarray, " nodes"]]:
        """Grow a tree from a planned root in one compiled call; remember what was read."""
        memory = self._memory
        start = memory.used
        rest = len(plan.tokens)
        self._reserve(start + rest + settings.most_rows)
        root_path = np.array(memory.paths(plan.parents)[-1])
        committed = len(memory.committed)
        place = Place(plan.positions[0], start, committed, root_path)
        began = self._start(plan.positions)
        nodes, scores, reads, logits, passes = self._passes.grow(
            place, np.array(plan.tokens), settings, self.weights, self._buffers
        )
        choices.check_finite(passes, self.name)
        tokens, parents = reads[:, 1:]
        self.usage += Usage(passes, rest + len(tokens), time.perf_counter() - began)
        memory.add(plan.parents, plan.tokens)
        memory.add((start + rest - 1 + parents).tolist(), tokens.tolist())
        memory.keep(torch.from_numpy(logits)[:, : len(self._ids)])
        return nodes, scores

    def _prepare(self, context: Context, tree: TokenTree) -> None:
        """Score the prompt's own tokens as well; the logits that are kept lack them."""
        check_root(context, tree, self.vocabulary, self.max_positions, self.name)
        self._context = context
        head = self._cut
        if head is not None:
            head.set_prompt(context.prompt)
            if head.others is not self._others:
                self._memory.ready.clear()
                self.weights = self.weights.with_prompt_of(head, self.edition)
                self._others = head.others
                self._ids = head.places.numpy()

    def _move(self, sources: list[int], first: int) -> None:
        move_entries(self._buffers, sources, first)

    def run_rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], keep: int
    ) -> Float[Tensor, "keep scored"]:
        start = self._memory.used
        self._reserve(start + len(tokens))
        logits = np.empty((keep, self.weights.columns), np.float32)
        levels = [ReadLevel(0, len(tokens), keep)]
        if self._reader is not None and self._context is not None:
            levels = levels_of(positions, len(self._context), keep)
        began = self._start(positions)
        done = 0
        for first, stop, count in levels:
            rows = self._rows(tokens[first:stop], positions[first:stop], paths[first:stop], first)
            self._passes.run(rows, count, self.weights, self._buffers, logits[done : done + count])
            done += count
        self.usage += Usage(len(levels), len(tokens), time.perf_counter() - began)
        scored = torch.from_numpy(logits)[:, : len(self._ids)]
        check_logits(scored, self.name)
        return scored

    def _rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], first: int
    ) -> tuple:
        """Rows as the compiled pass takes them; the first gets the cache entry number `first` of
        those that are not in use.
        """
        counts = [len(path) for path in paths]
        padded = np.array([path + [0] * (max(counts) - len(path)) for path in paths])
        start = self._memory.used + first
        committed = len(self._memory.committed)
        return np.array(tokens), np.array(positions), start, committed, padded, np.array(counts)

    def _start(self, positions: Sequence[int]) -> float:
        """Take in what the target says of the tokens before these positions, if this is a draft
        that reads it; the time at which the model's own work, on these threads, began.
        """
        reader = self._reader
        states = None
        if reader is not None and self._context is not None:
            states = reader.states(self._context, positions)
        if 1 < self.threads != numba.get_num_threads():
            numba.set_num_threads(self.threads)
        began = time.perf_counter()
        if reader is not None and positions[0] == 0:
            self._buffers[3][0] = 0  # no token stands before the first
        if reader is not None and states is not None:
            entry = max(positions[0], 1) - self._memory.first
            reader.put(states, entry, self._buffers[3])
        return began

    def _reserve(self, entries: int) -> None:
        if entries > self._buffers[1].shape[3]:
            self._buffers = larger_buffers(self.weights, self._buffers, entries)
        if (needed := min(self._memory.first + entries, self.max_positions)) > self._rotated:
            self._rotate(min(2 * needed, self.max_positions))

    def _rotate(self, positions: int) -> None:
        """Have the rotary embeddings of so many positions."""
        self.weights = self.weights.with_positions(self.model.get_decoder(), positions)
        self._rotated = positions
