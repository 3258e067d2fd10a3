"""What a user of Hugging Face would pick instead: `generate`, assisted generation with the same
draft, prompt lookup.
"""

import copy
from collections.abc import Callable, Mapping, Sequence

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import Contender, Played, Portions
from specdec_lib.measure.race.families import PLAIN

RUNTIMES = {
    torch.float32: "Hugging Face float32",
    torch.bfloat16: "Hugging Face bfloat16",
    torch.float64: "Hugging Face float64",
}
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
LOOKED_UP = (
    (3, 2),
    (5, 2),
    (10, 2),
    (3, 3),
    (5, 3),
    (10, 3),
    (10, 1),
    (16, 2),
)  # tokens per round, longest ending that is looked for


def generates(model: PreTrainedModel, sampler: Sampler) -> Contender:
    """`model.generate`, token by token."""
    return _contender("hf_generate", model, sampler, PLAIN, lambda: {})


def assisted(
    model: PreTrainedModel, draft: PreTrainedModel, sampler: Sampler, *, grid: Sequence = ASSISTED
) -> list[Contender]:
    """`model.generate(assistant_model=draft)`, a contender per setting."""

    def prepared(count: int, schedule: str, confidence: float) -> Callable[[], Mapping]:
        def options() -> Mapping:
            config = copy.deepcopy(
                plain
            )  # the heuristic schedule leaves its last value in the draft's
            config.num_assistant_tokens, config.num_assistant_tokens_schedule = count, schedule
            config.assistant_confidence_threshold = confidence
            draft.generation_config = config
            return {"assistant_model": draft}

        return options

    plain = copy.deepcopy(draft.generation_config)
    named = {
        f"{count} tokens, {schedule}, confidence {confidence:g}": prepared(
            count, schedule, confidence
        )
        for count, schedule, confidence in grid
    }
    return [
        _contender("hf_assisted", model, sampler, setting, options)
        for setting, options in named.items()
    ]


def looks_up(
    model: PreTrainedModel, sampler: Sampler, *, grid: Sequence = LOOKED_UP
) -> list[Contender]:
    """`model.generate(prompt_lookup_num_tokens=…)`, a contender per setting."""
    found = []
    for count, longest in grid:
        options = {"prompt_lookup_num_tokens": count, "max_matching_ngram_size": longest}
        setting = f"{count} tokens, endings of up to {longest}"
        found.append(
            _contender("hf_prompt_lookup", model, sampler, setting, lambda options=options: options)
        )
    return found


def _contender(
    method: str,
    model: PreTrainedModel,
    sampler: Sampler,
    setting: str,
    options: Callable[[], Mapping],
) -> Contender:
    """A call of `generate` that emits exactly the tokens asked for: there is no stop token."""
    sampled = {
        "do_sample": True,
        "temperature": sampler.temperature,
        "top_k": sampler.top_k or 0,
        "top_p": sampler.top_p,
    }
    drawn = sampled if sampler.temperature > 0 else {"do_sample": False}

    def play(prompt: tuple[int, ...], count: int, seed: int) -> Played:
        asked = torch.tensor([prompt], device=model.device)
        torch.manual_seed(seed)
        portions = Portions()
        fixed = {
            "attention_mask": torch.ones_like(asked),
            "max_new_tokens": count,
            "eos_token_id": None,
            "pad_token_id": 0,
            "streamer": portions,
        }
        made = model.generate(asked, **fixed, **drawn, **options())
        return portions.played(tuple(made[0, len(prompt) :].tolist()))

    exact = sampler.temperature == 0 and model.dtype in (torch.float32, torch.float64)
    return Contender(method, RUNTIMES[model.dtype], setting, sampler, play, exact)
