"""Any draft as `model.generate(…, custom_generate=Speculative(draft))`."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    PreTrainedModel,
    StoppingCriteriaList,
)
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round, read_prompt, rounds
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.seq2seq import Seq2SeqModel
from specdec_lib.suite.hf.options import (
    check_length,
    check_options,
    check_restored,
    prompt_of,
    refusal,
    sampler_of,
    signature,
)
from specdec_lib.suite.hf.speaking import Speech, Streamer

SEEDS = 2**62
LEAST_POSITIONS = 512  # of an encoder-decoder model that is wrapped here


@dataclass(frozen=True)
class Speculative:
    """A way of decoding for `generate`: what the model itself would write, in rounds that `draft`
    makes long.

    draft       any draft; its models share the target's vocabulary. "ranked" siblings are accepted
                most
    target      the model prepared before, such as `models.loading.fast_model` or a ladder's target,
                instead of a new `CachedModel` in every call; it must hold the very model that
                `generate` is called on
    name        how the rounds call a target that is not given
    on_round    called with each round as soon as it is done, such as `rounds.append`

    Greedy text is that of `generate`, token for token. With `do_sample=True` every token has the
    distribution that `generate` draws from, and `torch.manual_seed` fixes the text; it is another
    text than `generate` has for the seed, because the noise is another. Logits processors and
    warpers, stopping criteria, stop strings, streamers, `max_new_tokens`, `max_time`,
    `output_scores` and `output_logits` are honoured token by token. A returned dictionary has no
    `past_key_values`. A single prompt only: what else cannot be honoured is refused with a
    ValueError that names it, before any work.
    """

    draft: Draft
    target: LanguageModel | None = None
    name: str = "target"
    on_round: Callable[[Round], None] | None = None

    def __getattr__(self, name: str) -> inspect.Signature:
        if name == "__signature__":
            return signature(self.__call__)
        raise AttributeError(f"{type(self).__name__} has no {name}")

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
        assistant_model: object = None,
        assistant_tokenizer: object = None,
        spoken_to: Streamer | None = None,
        synchronised: bool = False,
        restored: bool = False,
        **given: object,
    ) -> Int[Tensor, "1 longer"] | GenerateDecoderOnlyOutput | GenerateEncoderDecoderOutput:
        """Decode: what `generate`, and only that, calls after all its preparation.

        spoken_to, synchronised    `streamer` and `synced_gpus`, under names that `generate` passes
                                   on
        restored                   whether these came through: see `restore_dropped`
        """
        check_restored(restored)
        foreign = {
            "assistant_model": assistant_model,
            "assistant_tokenizer": assistant_tokenizer,
            "synchronised": synchronised,
        }
        streamer = given.pop("streamer", spoken_to)
        check_options(model, generation_config, given | foreign)
        prompt = prompt_of(
            model, input_ids, input_ids if inputs_tensor is None else inputs_tensor, given
        )
        longest = stopping_criteria.max_length
        target = self._target(model, generation_config, longest)
        check_length(longest, input_ids.shape[1], len(prompt), target.max_positions)
        speech = _speech(
            input_ids, logits_processor, stopping_criteria, streamer, generation_config
        )
        self._speak(
            speech, target, prompt, sampler_of(generation_config), room=longest - input_ids.shape[1]
        )
        if streamer is not None:
            streamer.end()
        if not generation_config.return_dict_in_generate:
            return speech.tokens
        kind = (
            GenerateEncoderDecoderOutput
            if model.config.is_encoder_decoder
            else GenerateDecoderOnlyOutput
        )
        return kind(sequences=speech.tokens, scores=speech.scores, logits=speech.raw_logits)

    def _target(
        self, model: PreTrainedModel, config: GenerationConfig, longest: int | None
    ) -> LanguageModel:
        if self.target is not None:
            if getattr(self.target, "model", None) is not model:
                raise ValueError(
                    f"the target {self.target.name!r} holds another model than the one that"
                    " generate is called on"
                )
            if config.prefill_chunk_size is not None:
                raise refusal(
                    "prefill_chunk_size",
                    config.prefill_chunk_size,
                    "None: the target that was given reads in pieces of its own",
                )
            return self.target
        if model.config.is_encoder_decoder:
            return Seq2SeqModel(
                model, self.name, max_positions=max(LEAST_POSITIONS, longest or 0)
            )  # T5 has no limit of its own
        pieces = (
            {} if config.prefill_chunk_size is None else {"chunk_rows": config.prefill_chunk_size}
        )
        return CachedModel(model, self.name, **pieces)

    def _speak(
        self, speech: Speech, target: LanguageModel, prompt: Context, sampler: Sampler, *, room: int
    ) -> None:
        """Rounds until the speech has stopped."""
        seed = int(torch.randint(SEEDS, (1,))) if sampler.temperature > 0 else 0
        loop = rounds(
            target,
            self.draft,
            prompt,
            Chance(seed, sampler),
            max_new_tokens=room,
            rule=speech.look_up,
        )
        read_prompt(target, self.draft, prompt)
        for played, _ in loop:
            if self.on_round is not None:
                self.on_round(speech.heard(played))
            if speech.stopped:
                break


def _speech(
    tokens: Int[Tensor, "1 length"],
    processors: LogitsProcessorList,
    criteria: StoppingCriteriaList,
    streamer: Streamer | None,
    config: GenerationConfig,
) -> Speech:
    kept = [
        () if config.return_dict_in_generate and asked else None
        for asked in (config.output_scores, config.output_logits)
    ]
    return Speech(tokens, processors, criteria, streamer, bool(config.do_sample), *kept)
