"""What a user of Hugging Face would pick instead: `generate`, assisted generation with the same
draft, prompt lookup.
"""

import copy
import time
from collections.abc import Callable, Mapping

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import Clock, Contender, Continuation
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN
from specdec_lib.models.cut_head import CutHead

GENERATE, ASSIST, LOOKUP = HF = ("hf_generate", "hf_assisted", "hf_prompt_lookup")
DRAFT = "assistant_model"
ASSISTED = (  # tokens per round, schedule, confidence below which the draft stops
    (2, "constant", 0.0),
    (3, "constant", 0.0),
    (5, "constant", 0.0),
    (5, "heuristic_transient", 0.0),
    (5, "constant", 0.4),
    (8, "constant", 0.6),
    (20, "constant", 0.4),  # the defaults
    (5, "heuristic_transient", 0.4),
)
# tokens per round, longest ending that is looked for
LOOKED_UP = ((3, 2), (5, 2), (10, 2), (3, 3), (5, 3), (10, 3), (10, 1), (16, 2))


class Portions:
    """A streamer for Hugging Face's `generate` that notes when each portion of tokens came.

    The first portion is the prompt, the second ends the reading of it.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock = clock
        self.times: list[float] = []
        self.sizes: list[int] = []

    def put(self, tokens: object) -> None:
        """Note a portion; `generate` calls this."""
        self.times.append(self.clock())
        self.sizes.append(int(tokens.numel()))

    def end(self) -> None:
        """Note the end; `generate` calls this."""
        self.times.append(self.clock())

    def continuation(self, tokens: tuple[int, ...]) -> Continuation:
        """The generation, timed without its first portion of new tokens: the pass that made it also
        read the prompt.

        Raises ValueError unless the portions add up to the tokens and all but the first hold one or
        more.
        """
        new = self.sizes[1:]
        complete = len(self.times) == len(self.sizes) + 1 and sum(new) == len(tokens)
        if not complete or min(new, default=0) < 1:
            raise ValueError(
                f"{len(tokens)} tokens were to be timed portion by portion, got portions of {new}"
                f" at {len(self.times)} times"
            )
        seconds = self.times[-1] - self.times[1]
        return Continuation(tokens, len(tokens) - new[0], seconds, len(new))


def hugging_contenders(
    method: str, model: PreTrainedModel, draft: PreTrainedModel, sampler: Sampler
) -> list[Contender]:
    """One of the methods `HF`, a contender per setting."""
    if method == GENERATE:
        return [_contender(method, model, sampler, TOKEN_BY_TOKEN, dict)]
    if method == LOOKUP:
        return [
            _contender(
                method,
                model,
                sampler,
                f"{count} tokens, endings of up to {longest}",
                {"prompt_lookup_num_tokens": count, "max_matching_ngram_size": longest}.copy,
            )
            for count, longest in LOOKED_UP
        ]
    plain = copy.deepcopy(draft.generation_config)

    def prepared(count: int, schedule: str, confidence: float) -> Callable[[], Mapping]:
        def options() -> Mapping:
            # anew each time: the heuristic schedule leaves its last value in the draft's
            config = copy.deepcopy(plain)
            config.num_assistant_tokens, config.num_assistant_tokens_schedule = count, schedule
            config.assistant_confidence_threshold = confidence
            draft.generation_config = config
            return {DRAFT: draft}

        return options

    return [
        _contender(
            method,
            model,
            sampler,
            f"{count} tokens, {schedule}, confidence {confidence:g}",
            prepared(count, schedule, confidence),
        )
        for count, schedule, confidence in ASSISTED
    ]


def _contender(
    method: str,
    model: PreTrainedModel,
    sampler: Sampler,
    setting: str,
    options: Callable[[], Mapping],
) -> Contender:
    """A call of `generate` that emits exactly the tokens asked for: there is no stop token."""
    drawn = {"do_sample": False}
    if sampler.temperature > 0:
        drawn = {"do_sample": True, "temperature": sampler.temperature, "top_p": sampler.top_p}
        drawn["top_k"] = sampler.top_k or 0

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        given = torch.tensor([prompt], device=model.device)
        torch.manual_seed(seed)
        portions = Portions()
        fixed = {
            "attention_mask": torch.ones_like(given),
            "max_new_tokens": count,
            "eos_token_id": None,
            "pad_token_id": 0,
            "streamer": portions,
        }
        chosen = options()
        head = chosen[DRAFT].get_output_embeddings() if DRAFT in chosen else None
        if isinstance(head, CutHead):
            head.set_prompt(prompt)
        made = model.generate(given, **fixed, **drawn, **chosen)
        return portions.continuation(tuple(made[0, len(prompt) :].tolist()))

    exact = sampler.temperature == 0 and model.dtype in (torch.float32, torch.float64)
    runtime = f"Hugging Face {str(model.dtype).removeprefix('torch.')}"
    return Contender(method, runtime, setting, sampler, run, exact)
