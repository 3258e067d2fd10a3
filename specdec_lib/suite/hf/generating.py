"""Any draft in Hugging Face's `generate`. Under `look_up` a target's choice is asked for exactly
once per emitted token, in the order of the text: all that `generate` does at a token is done there,
and the text ends at the same token.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteriaList,
)

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round, read_prompt, rounds
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.seq2seq import Seq2SeqModel
from specdec_lib.suite.hf.options import (
    check_encoded,
    check_length,
    check_options,
    prompt_of,
    refuse_arguments,
    sampler_of,
    with_stop_strings,
)

SEEDS = 2**62
LEAST_POSITIONS = 512  # of an encoder-decoder model, which has no limit of its own


@runtime_checkable
class Streamer(Protocol):
    """A receiver of tokens, such as a `TextStreamer` of transformers."""

    def put(self, value: Tensor) -> None:
        """Take the prompt, then each new token."""

    def end(self) -> None:
        """Take note that no more tokens come."""


@checked
@dataclass(frozen=True)
class Speculative:
    """A way of decoding for `generate`: what the model itself would write, in rounds.

    draft       any draft; its models share the target's vocabulary
    on_round    called with each round as soon as it is done, such as `rounds.append`
    streamer    gets the prompt and each token at once, as from `model.generate`

    `Speculative(draft).generate(model, inputs, …)` takes the arguments of `model.generate`. So does
    `model.generate(inputs, custom_generate=Speculative(draft), …)`, but for those that transformers
    (5.23) hands to no `custom_generate`: it calls a `streamer` with the prompt and never again,
    finds no `tokenizer` for `stop_strings`, and ignores an `assistant_model`. So there the streamer
    is given here, and stop strings as a `StopStringCriteria`.

    Greedy text is that of `generate`, token for token. With `do_sample=True` every token has the
    distribution that `generate` draws from; `torch.manual_seed` fixes the text, which is another.
    Processors, stopping criteria and streamers are honoured token by token, for a single prompt.
    Raises ValueError, before any work, naming what cannot be honoured.
    """

    draft: Draft
    on_round: Callable[[Round], None] | None = None
    streamer: Streamer | None = None

    def generate(
        self,
        model: PreTrainedModel,
        inputs: Tensor | None = None,
        *,
        streamer: Streamer | None = None,
        tokenizer: object = None,
        stop_strings: str | list[str] | None = None,
        **options: object,
    ) -> Int[Tensor, "1 longer"]:
        """Return what `model.generate` would for the same arguments, decoded in rounds.

        streamer, tokenizer, stop_strings    as of `model.generate`
        options                              all its other arguments

        Raises ValueError for an argument that cannot be honoured.
        """
        refuse_arguments(options)
        if streamer is not None and self.streamer is not None:
            raise ValueError("one streamer is allowed, got one of `generate` and one of the door")
        door = self if streamer is None else replace(self, streamer=streamer)
        options = with_stop_strings(model, tokenizer, stop_strings, options)
        network: Any = model
        return network.generate(inputs, custom_generate=door, **options)

    @torch.no_grad()
    def __call__(
        self,
        model: PreTrainedModel,
        input_ids: Int[Tensor, "batch length"],
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        *,
        inputs_tensor: Tensor | None = None,
        **given: object,
    ) -> Int[Tensor, "1 longer"]:
        """Decode; `generate` of transformers calls this."""
        check_options(model, generation_config, given)
        inputs = input_ids if inputs_tensor is None else inputs_tensor
        prompt = prompt_of(model, input_ids, inputs, given)
        longest = stopping_criteria.max_length
        if model.config.is_encoder_decoder:
            most = max(LEAST_POSITIONS, longest or 0)
            target = Seq2SeqModel(model, "target", max_positions=most)
        else:
            target = CachedModel(model, "target")
        longest = check_length(longest, input_ids.shape[1], target.max_positions)
        state = GenerationState(
            tokens=input_ids,
            processors=logits_processor,
            criteria=stopping_criteria,
            streamer=self.streamer,
            sampled=bool(generation_config.do_sample),
        )
        seed = int(torch.randint(SEEDS, (1,))) if state.sampled else 0
        chance = Chance(seed, sampler_of(generation_config))
        new_tokens = longest - input_ids.shape[1]
        self._play(target, prompt, chance, state, new_tokens=new_tokens, given=given)
        if self.streamer is not None:
            self.streamer.end()
        return state.tokens

    def _play(
        self,
        target: CachedModel | Seq2SeqModel,
        prompt: Context,
        chance: Chance,
        state: "GenerationState",
        *,
        new_tokens: int,
        given: dict[str, object],
    ) -> None:
        """Decode rounds until the text ends."""
        loop = rounds(
            target, self.draft, prompt, chance, max_new_tokens=new_tokens, rule=state.look_up
        )
        read_prompt(target, self.draft, prompt)
        if isinstance(target, Seq2SeqModel):
            check_encoded(target.encoded, given)
        if self.streamer is not None:
            self.streamer.put(state.tokens.cpu())
        for played, _ in loop:
            if self.on_round is not None:
                self.on_round(state.truncated_round(played))
            if state.stopped:
                break


@dataclass
class GenerationState:
    """The text of one `generate` call, and what is done at each new token.

    tokens          the whole text so far
    processors      change the logits that are chosen from
    criteria        decide whether a token was the last
    streamer        gets each token; None if there is none
    sampled         whether tokens are drawn from the processed distribution
    stopped         whether the text has ended
    round_tokens    how many tokens the current round has added
    """

    tokens: Int[Tensor, "1 length"]
    processors: LogitsProcessorList
    criteria: StoppingCriteriaList
    streamer: Streamer | None
    sampled: bool
    stopped: bool = False
    round_tokens: int = 0

    def look_up(
        self, tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
    ) -> Verdict:
        """Apply the rule `look_up` to processed logits; choices are emitted as they are made."""
        self.round_tokens = 0
        own = Sampler(1.0 if self.sampled else 0.0)  # processors do the rest
        emitting = EmittingChance(chance.seed, own, chance.nesting, state=self)
        return look_up(tree, target_logits, emitting)

    def truncated_round(self, played: Round) -> Round:
        """The round's record without what lies beyond the end of the text."""
        return played.first(self.round_tokens)

    def processed_logits(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """The logits that the next token is chosen from, in float32 as in `generate`."""
        raw = logits[None].to(device=self.tokens.device, dtype=torch.float32, copy=True)
        process: Any = self.processors  # of ids that are a LongTensor by name
        return process(self.tokens, raw)[0]

    def append(self, token: int) -> None:
        """Append a token, hand it to the streamer, and see whether it was the last."""
        new = torch.tensor([token], device=self.tokens.device)
        self.tokens = torch.cat([self.tokens, new[:, None]], dim=-1)
        self.round_tokens += 1
        judge: Any = self.criteria  # it may be given no scores
        self.stopped = bool(judge(self.tokens, None).all())
        if self.streamer is not None:
            self.streamer.put(new.cpu())


@dataclass(frozen=True)
class EmittingChance(Chance):
    """A `Chance` that processes the logits of a choice, and appends the chosen token to the text,
    until that has ended.
    """

    state: GenerationState = field(kw_only=True)

    def choose(self, logits: Float[Tensor, " vocab"], position: int) -> int:
        """The token at `position`, which is appended."""
        if self.state.stopped:
            return super().choose(logits, position)
        token = super().choose(self.state.processed_logits(logits), position)
        self.state.append(token)
        return token
