"""Whole rounds of speculative decoding on the device: draft, verify, choose, move; the host sees a round once, when its tokens are there.

Every shape is fixed: the tree has the same slots in each round, what is not there is marked, and the number of tokens so far is itself a number on
the device. So a round is one CUDA graph, one per length of cache; on a CPU the same round runs without a graph. What comes out is what `decode`
gives with a tree draft of the same shape, "ranked" siblings and the rule `look_up`, token for token and round for round.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.chance import Sampler
from specdec_lib.context import Context
from specdec_lib.runtime.choosing import Choices, noise_of, noise_starts
from specdec_lib.runtime.layout import Layout
from specdec_lib.runtime.static import StaticNetwork, additive, length_for, replayed
from specdec_lib.theory import Shape

PARTS = ("draft passes", "verify", "choice and noise", "KV moves")
ROOT_ALONE = Shape((-1,))


class GraphRounds:
    """A target and a draft that write in whole rounds on their device.

    target, draft    GPT-2 or Llama decoders that share a vocabulary and a device, in evaluation mode
    shape            of the tree; the root alone, without a draft, is plain decoding
    sampler          the seed comes with each prompt
    graphs           whether to use CUDA graphs; None uses them where the models are on a GPU
    watch            called with the name of each part of a round as soon as it was started, and then a round is not one graph but one per part

    Raises ValueError for models of another kind or of different vocabularies, for graphs without a GPU, and for a shape without a draft.
    """

    def __init__(
        self,
        target: PreTrainedModel,
        draft: PreTrainedModel | None,
        shape: Shape,
        sampler: Sampler,
        *,
        graphs: bool | None = None,
        attention: str = "fused",
        watch: Callable[[str], None] | None = None,
    ) -> None:
        if (draft is None) != (shape.guesses == 0):
            raise ValueError(f"a tree of {shape.guesses} guesses {'needs a' if draft is None else 'needs no'} draft")
        models = [model for model in (target, draft) if model is not None]
        sizes = [int(model.get_output_embeddings().weight.shape[0]) for model in models]
        if len(set(sizes)) > 1:
            raise ValueError(f"a draft must share the target's vocabulary: it has {sizes[1]} tokens, the target {sizes[0]}")
        self.vocabulary, self.choices, self.watch = sizes[0], Choices(sampler), watch
        self.layout = Layout.of(shape, target.device)
        positions = [int(model.config.get_text_config().max_position_embeddings) for model in models]
        self.max_positions, self.draft_positions = positions[0], positions[-1]
        options = {"graphs": graphs, "attention": attention}
        self.networks = [StaticNetwork(model, self.max_positions + len(shape), **options) for model in models]
        blank = torch.zeros(self.max_positions + self.layout.depth + 3, dtype=torch.long, device=target.device)
        self.history, self.starts = blank, blank.clone()
        self.length = blank[:1].clone()
        self.report = blank[: self.layout.depth + 2].clone()
        self._rounds: dict[int, Callable[[], None]] = {}

    @property
    def runtime(self) -> str:
        """What runs, in words."""
        return f"whole rounds, {self.networks[0].runtime}"

    def rounds(
        self, prompt: Context | Sequence[int], seed: int, *, max_new_tokens: int, stop_tokens: Sequence[int] = ()
    ) -> Iterator[tuple[int, ...]]:
        """What each round emits, until a stop token, the number of tokens asked for or the end of the context.

        The prompt is read, and the noise of its positions prepared, before the first round is asked for.
        Raises ValueError if the prompt is empty, does not fit or holds a token beyond the vocabulary, or no token is asked for.
        """
        context = prompt if isinstance(prompt, Context) else Context.of(prompt)
        if max_new_tokens < 1 or len(context) > self.max_positions or max(context.tokens) >= self.vocabulary:
            raise ValueError(
                f"at most {self.max_positions} tokens below {self.vocabulary} are continued by at least 1 token,"
                f" got {len(context)} tokens up to {max(context.tokens)} and max_new_tokens={max_new_tokens}"
            )
        self._begin(context.tokens, seed)
        return self._emitted(len(context), max_new_tokens, frozenset(stop_tokens))

    def _begin(self, tokens: tuple[int, ...], seed: int) -> None:
        for network, positions in zip(self.networks, (self.max_positions, self.draft_positions), strict=False):
            network.read_text(tokens[: min(len(tokens) - 1, positions)])
        self.history[: len(tokens)] = torch.tensor(tokens)
        self.length.fill_(len(tokens))
        if self.choices.needs_noise:
            self.starts.copy_(noise_starts(seed, range(len(self.starts))))

    def _emitted(self, length: int, left: int, stops: frozenset[int]) -> Iterator[tuple[int, ...]]:
        while True:
            *tokens, count = self.play(length)
            emitted = tokens[: min(count, left)]
            cut = next((place + 1 for place, token in enumerate(emitted) if token in stops), len(emitted))
            yield tuple(emitted[:cut])
            length, left = length + count, left - len(emitted)
            if cut < len(emitted) or emitted[-1] in stops or left == 0 or length > self.max_positions:
                return

    @torch.no_grad()
    def play(self, length: int) -> list[int]:
        """One round after so many tokens: what it emits, as many as the last number says; the one time that the host waits for the device."""
        seen = length_for(length + len(self.layout))
        if seen not in self._rounds:
            self._rounds[seen] = self._prepared(_Round(self, seen))
        self._rounds[seen]()
        return self.report.tolist()

    def _prepared(self, one: "_Round") -> Callable[[], None]:
        graphs, parts = self.networks[0].graphs, (one.draft, one.verify, one.choose, one.move)
        kept = self.history.clone(), self.length.clone()

        def reset() -> None:  # a round that is tried out before its capture must not count
            self.history.copy_(kept[0])
            self.length.copy_(kept[1])

        if self.watch is None:
            return replayed(lambda: [part() for part in parts], graphs, reset)
        steps = []
        for part in parts:
            steps.append(replayed(part, graphs, reset))
            if graphs:
                steps[-1]()  # the next part is tried out on what this one leaves
        reset()

        def run() -> None:
            for name, step in zip(PARTS, steps, strict=True):
                step()
                self.watch(name)

        return run


class _Round:
    """One round that reads the first `seen` slots of each cache: four parts that hand tensors on.

    Slot 0 is scratch and position p lies in slot p + 1, so that with n tokens so far the root is to be read into slot n and node i into n + i.
    """

    def __init__(self, whole: GraphRounds, seen: int) -> None:
        self.whole, self.layout = whole, whole.layout
        self.caches = [network.cache[:, :seen] for network in whole.networks]
        device = whole.length.device
        self.columns, self.nodes = torch.arange(seen, device=device), torch.arange(len(self.layout), device=device)
        self.steps = torch.arange(self.layout.depth + 1, device=device)

    def draft(self) -> None:
        """The tree: tokens, and which of them there are."""
        whole, layout, length = self.whole, self.layout, self.whole.length
        self.slots, self.positions = length + self.nodes, length - 1 + layout.depths
        offsets = self.columns - length
        below = (offsets >= 0) & (offsets < len(layout))
        committed = (self.columns > 0) & (offsets < 0)
        self.sees = committed | (below & layout.ancestry[:, offsets.clamp(0, len(layout) - 1)])
        self.noise = noise_of(whole.starts[length + self.steps], whole.vocabulary) if whole.choices.needs_noise else None
        tokens, possible = [whole.history[length - 1]], [torch.ones_like(length, dtype=torch.bool)]
        for depth, level in enumerate(layout.levels):
            logits = self._read_draft(level.readers, torch.cat(tokens), depth)
            noise = None if self.noise is None else self.noise[depth : depth + 1]
            guesses, there = whole.choices.guess(logits, noise, level.most)
            tokens.append(guesses[level.rows, level.ranks])
            possible.append(there[level.rows, level.ranks])
        fits = self.positions <= min(whole.max_positions - 1, whole.draft_positions)
        self.tokens, self.there = torch.cat(tokens), torch.cat(possible) & fits

    def _read_draft(self, readers: Tensor, tokens: Tensor, depth: int) -> Tensor:
        """The draft's logits after these nodes. The root's pass reads the token before it once more: no draft has read a deepest node."""
        network, length = self.whole.networks[-1], self.whole.length
        rows = tokens[readers], self.positions[readers], self.slots[readers], self.sees[readers]
        if depth == 0:
            before = (self.columns > 0) & (self.columns < length) | (self.columns == length - 1)
            place = (length - 2).clamp(min=0)
            rows = tuple(map(torch.cat, zip((self.whole.history[place], place, length - 1, before[None]), rows, strict=True)))
        mask = additive(rows[3], network.dtype)
        positions = rows[1].clamp(max=self.whole.draft_positions - 1)
        options = {"keep": len(readers), "attention": network.attention}
        return network.network.static(rows[0], positions, rows[2], self.caches[-1], mask, **options)

    def verify(self) -> None:
        """The target's logits after every node."""
        network = self.whole.networks[0]
        positions, mask = self.positions.clamp(max=self.whole.max_positions - 1), additive(self.sees, network.dtype)
        options = {"keep": len(self.layout), "attention": network.attention}
        self.logits = network.network.static(self.tokens, positions, self.slots, self.caches[0], mask, **options)

    def choose(self) -> None:
        """The target's own choice after every node; the nodes on the path of these choices, by depth; how many tokens that makes."""
        noise = None if self.noise is None else self.noise[self.layout.depths]
        chosen = self.whole.choices.choose(self.logits, noise)
        right = self.there & (self.tokens == chosen[self.layout.parents])
        right = right | (self.nodes == 0)
        accepted = (self.layout.ancestry & ~right).any(1).logical_not()
        self.path = ((self.layout.at_depth & accepted) * self.nodes).amax(1)
        self.count = accepted.sum().reshape(1)
        self.emitted = chosen[self.path]

    def move(self) -> None:
        """Keys and values of the path to where they belong, and the tokens into the history."""
        whole, length = self.whole, self.whole.length
        to = length + self.steps[1:]
        taken = torch.where(self.steps[1:] < self.count, length + self.path[1:], to)
        for cache in self.caches if self.layout.depth else ():
            cache.index_copy_(1, to, cache.index_select(1, taken))
        whole.history.index_copy_(0, length + self.steps, self.emitted)
        whole.report.copy_(torch.cat((self.emitted, self.count)))
        length.add_(self.count)
