"""A draft that reads the target's hidden states, as a `LanguageModel` on the reference runtime."""

import time
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import StateKeeper, Usage, check_logits, check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.key_values import KeyValues, reference_runtime
from specdec_lib.models.cached.path_memory import BranchMemory, weakly
from specdec_lib.models.cached.windows import check_window
from specdec_lib.models.cut_head import output_weight, score_prompt
from specdec_lib.models.network_passes import inputs_of, logits_divisor, run_body
from specdec_lib.models.reading import ReadLevel, levels_of, reading_of

CHUNK_ROWS = 256  # a longer prompt is read in pieces


class ReadingModel:
    """A draft of one layer, made with its target, whose hidden states it reads; see `reading`.

    model     a network with the draft's weights as its part `reading`
    target    hands out hidden states, and computes them where it has not read a token yet
    window    each token sees the last so many, itself among them

    To the input of a token of the context is added what the target's states of the token before
    give, to that of a guess what the draft's own output at the token before gives. So an accepted
    guess is read once more, when the target has read it, and the guesses of a tree are read level
    by level, with a pass for each. Threads that call it take turns.
    """

    def __init__(
        self, model: PreTrainedModel, target: StateKeeper, name: str, *, window: int
    ) -> None:
        check_window(window)
        self.reading = reading_of(model)
        target.keep_states(self.reading.layers)
        self.model = model.eval()
        self.target = target
        self.name = name
        self.window = window
        self.vocabulary = len(output_weight(model))
        self.max_positions = int(model.config.max_position_embeddings)
        self.runtime = reference_runtime(model)
        self.usage = Usage()
        self._memory = BranchMemory(
            weakly(self.run_rows), _unmoved, CHUNK_ROWS, reach=window, rereads=True
        )
        self._cache = KeyValues()
        weight = self.reading.from_own.weight.detach()
        # what is added to the input of an entry's children, after that of the first entry's own
        self._given = weight.new_zeros(1, len(weight))
        self._context: Context | None = None
        self._scored: tuple[int, ...] | None = None  # the tokens that a cut head scored last

    @in_turn
    def forget(self) -> None:
        self._memory.clear()

    @in_turn
    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        check_root(context, tree, self.vocabulary, self.max_positions, self.name)
        ready = self._memory.ready
        self._scored = score_prompt(self.model, context.prompt, self._scored, ready)
        self._context = context
        return self._memory.score(context, tree).clone()

    @torch.no_grad()
    def run_rows(
        self, tokens: Sequence[int], positions: Sequence[int], paths: list[list[int]], keep: int
    ) -> Float[Tensor, "keep vocab"]:
        assert self._context is not None  # `score` has set it
        states = self._states_before(positions)
        started = time.perf_counter()
        more = self._memory.used + len(tokens) + 1 - len(self._given)
        if more > 0:
            self._given = torch.cat(
                [self._given, self._given.new_zeros(more, *self._given.shape[1:])]
            )
        self._take_states(states, positions[0])
        levels = levels_of(positions, len(self._context), keep)
        found = [self._run(tokens, positions, paths, level) for level in levels]
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)
        self.usage += Usage(len(levels), len(tokens), time.perf_counter() - started)
        logits = torch.cat(found)
        check_logits(logits, self.name)
        return logits

    def _states_before(self, positions: Sequence[int]) -> Float[Tensor, "tokens states width"]:
        """The target's states of the token before each position of the context, of those that come
        first among the rows.
        """
        assert self._context is not None  # `score` has set it
        count = sum(1 for position in positions if 0 < position < len(self._context))
        first = max(positions[0] - 1, 0)
        if not count:
            return torch.empty(0, len(self.reading.layers), self.model.config.hidden_size)
        return self.target.states(self._context, first)[:count]

    def _take_states(self, states: Float[Tensor, "tokens states width"], position: int) -> None:
        """Keep what the states add to the inputs of the rows from a position of the context on."""
        if position == 0:
            self._given[0] = 0  # no token stands before the first
        entry = max(position, 1) - self._memory.first
        given = self.reading.added_by_target(states.to(self.model.device, self.model.dtype))
        self._given[entry : entry + len(given)] = given

    def _run(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        paths: list[list[int]],
        level: ReadLevel,
    ) -> Float[Tensor, "keep vocab"]:
        """Compute the rows of one level: the logits after those that are kept."""
        device = self.model.device
        body: Any = self.model.get_decoder()
        its = paths[level.first : level.stop]
        used = self._memory.used + level.first
        committed = len(self._memory.committed)
        above = [path[-2] if len(path) > 1 else committed - 1 for path in its]
        embedded = inputs_of(body, torch.tensor([tokens[level.first : level.stop]], device=device))
        inputs = embedded + self._given[torch.tensor(above, device=device) + 1]
        place = torch.tensor([positions[level.first : level.stop]], device=device)

        def sees(own: int | None) -> Bool[Tensor, "rows entries"]:
            window = min(self.window, own or self.window)
            return torch.from_numpy(self._cache.begin(used, committed, its, window)).to(device)

        output = run_body(body, inputs, place, sees, cache=self._cache)[0, -level.keep :]
        end = used + len(its) + 1
        self._given[end - level.keep : end] = self.reading.added_by_own(output)
        head: Any = self.model.get_output_embeddings()
        return head(output) / logits_divisor(self.model)


def _unmoved(entries: list[int], first: int) -> None:
    raise AssertionError("entries of a memory that reads accepted guesses again are not moved")
