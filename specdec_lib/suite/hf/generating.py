"""Any draft as `model.generate(…, custom_generate=Speculative(draft))`. Under `look_up` a target's
choice is asked for exactly once per emitted token, in the order of the text: all that `generate`
does at a token is done there, and the text ends at the same token.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteriaList,
)
from transformers.generation.streamers import BaseStreamer

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Round, read_prompt, rounds
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.seq2seq import Seq2SeqModel
from specdec_lib.suite.hf.options import (
    check_length,
    check_options,
    prompt_of,
    restore_dropped,
    sampler_of,
)

SEEDS = 2**62
LEAST_POSITIONS = 512  # of an encoder-decoder model, which has no limit of its own


@checked
@dataclass(frozen=True)
class Speculative:
    """A way of decoding for `generate`: what the model itself would write, in rounds.

    draft       any draft; its models share the target's vocabulary
    on_round    called with each round as soon as it is done, such as `rounds.append`

    Greedy text is that of `generate`, token for token. With `do_sample=True` every token has the
    distribution that `generate` draws from; `torch.manual_seed` fixes the text, which is another.
    Processors, stopping criteria and streamers are honoured token by token, for a single prompt.
    Raises ValueError, before any work, naming what cannot be honoured.
    """

    draft: Draft
    on_round: Callable[[Round], None] | None = None

    def __getattr__(self, name: str) -> inspect.Signature:
        """The signature, which `generate` reads; no property, which the class would have too."""
        if name != "__signature__":
            raise AttributeError(f"{type(self).__name__} has no {name}")
        restore_dropped()
        return inspect.signature(self.__call__)

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
        tokenizer: object = None,
        restored: Mapping[str, object] | None = None,
        **given: object,
    ) -> Int[Tensor, "1 longer"]:
        """Decode, called by `generate` alone; `restored` is from `restore_dropped`."""
        check_options(model, generation_config, given, restored)
        inputs = input_ids if inputs_tensor is None else inputs_tensor
        prompt = prompt_of(model, input_ids, inputs, given)
        longest, there = stopping_criteria.max_length, input_ids.shape[1]
        if model.config.is_encoder_decoder:
            most = max(LEAST_POSITIONS, longest or 0)
            target = Seq2SeqModel(model, "target", max_positions=most)
        else:
            target = CachedModel(model, "target")
        check_length(longest, there, target.max_positions)
        streamer, sampled = restored.get("streamer"), bool(generation_config.do_sample)
        speech = Speech(input_ids, logits_processor, stopping_criteria, streamer, sampled)
        seed = int(torch.randint(SEEDS, (1,))) if sampled else 0
        chance = Chance(seed, sampler_of(generation_config))
        options = {"max_new_tokens": longest - there, "rule": speech.look_up}
        loop = rounds(target, self.draft, prompt, chance, **options)
        read_prompt(target, self.draft, prompt)
        for played, _ in loop:
            if self.on_round is not None:
                self.on_round(speech.heard(played))
            if speech.stopped:
                break
        if streamer is not None:
            streamer.end()
        return speech.tokens


@dataclass
class Speech:
    """What has been said, and what is done at each new token."""

    tokens: Int[Tensor, "1 length"]  # the whole text so far
    processors: LogitsProcessorList
    criteria: StoppingCriteriaList
    streamer: BaseStreamer | None
    sampled: bool  # whether tokens are drawn from the processed distribution
    stopped: bool = False
    said: int = 0  # how many tokens of the current round

    def look_up(
        self, tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
    ) -> Verdict:
        """The rule `look_up` on processed logits, whose choices are emitted as they are made."""
        self.said = 0
        own = Sampler(1.0 if self.sampled else 0.0)  # processors do the rest
        return look_up(tree, target_logits, Speaking(chance.seed, own, chance.nesting, speech=self))

    def heard(self, played: Round) -> Round:
        """The round without what lies beyond the end of the text."""
        said = self.said
        return replace(played, emitted=played.emitted[:said], sources=played.sources[:said])

    def processed(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """What is chosen from, in float32 as in `generate`."""
        raw = logits[None].to(device=self.tokens.device, dtype=torch.float32, copy=True)
        return self.processors(self.tokens, raw)[0]

    def say(self, token: int) -> None:
        """Append a token, tell the streamer, and see whether it was the last."""
        new = torch.tensor([token], device=self.tokens.device)
        self.tokens = torch.cat([self.tokens, new[:, None]], dim=-1)
        self.said += 1
        self.stopped = bool(self.criteria(self.tokens, None).all())
        if self.streamer is not None:
            self.streamer.put(new.cpu())


@dataclass(frozen=True)
class Speaking(Chance):
    """A `Chance` whose choices are processed before and said after, until the speech stops."""

    speech: Speech = field(kw_only=True)

    def choose(self, logits: Float[Tensor, " vocab"], position: int) -> int:
        """The token at `position`, which is said."""
        if self.speech.stopped:
            return super().choose(logits, position)
        token = super().choose(self.speech.processed(logits), position)
        self.speech.say(token)
        return token
