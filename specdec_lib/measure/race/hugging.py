"""What a user of Hugging Face would pick instead: `generate`, assisted generation with the same
draft, prompt lookup.
"""

import copy
from collections.abc import Callable, Mapping, Sequence

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import Contender, Continuation, Portions
from specdec_lib.measure.race.families import PLAIN

GENERATE, ASSIST, LOOKUP = HF = ("hf_generate", "hf_assisted", "hf_prompt_lookup")
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
# tokens per round, longest ending that is looked for
LOOKED_UP = ((3, 2), (5, 2), (10, 2), (3, 3), (5, 3), (10, 3), (10, 1), (16, 2))


def generates(model: PreTrainedModel, sampler: Sampler) -> Contender:
    """`model.generate`, token by token."""
    return _contender(GENERATE, model, sampler, PLAIN, dict)


def assisted(
    model: PreTrainedModel, draft: PreTrainedModel, sampler: Sampler, *, grid: Sequence = ASSISTED
) -> list[Contender]:
    """`model.generate(assistant_model=draft)`, a contender per setting."""
    plain = copy.deepcopy(draft.generation_config)

    def prepared(count: int, schedule: str, confidence: float) -> Callable[[], Mapping]:
        def options() -> Mapping:
            # anew each time: the heuristic schedule leaves its last value in the draft's
            config = copy.deepcopy(plain)
            config.num_assistant_tokens, config.num_assistant_tokens_schedule = count, schedule
            config.assistant_confidence_threshold = confidence
            draft.generation_config = config
            return {"assistant_model": draft}

        return options

    return [
        _contender(
            ASSIST,
            model,
            sampler,
            f"{count} tokens, {schedule}, confidence {confidence:g}",
            prepared(count, schedule, confidence),
        )
        for count, schedule, confidence in grid
    ]


def looks_up(
    model: PreTrainedModel, sampler: Sampler, *, grid: Sequence = LOOKED_UP
) -> list[Contender]:
    """`model.generate(prompt_lookup_num_tokens=…)`, a contender per setting."""
    found = []
    for count, longest in grid:
        options = {"prompt_lookup_num_tokens": count, "max_matching_ngram_size": longest}
        setting = f"{count} tokens, endings of up to {longest}"
        found.append(_contender(LOOKUP, model, sampler, setting, options.copy))
    return found


def every_setting(
    method: str, model: PreTrainedModel, draft: PreTrainedModel, sampler: Sampler
) -> list[Contender]:
    """The contenders of one of the methods `HF`."""
    if method == ASSIST:
        return assisted(model, draft, sampler)
    return looks_up(model, sampler) if method == LOOKUP else [generates(model, sampler)]


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
        made = model.generate(given, **fixed, **drawn, **options())
        return portions.continuation(tuple(made[0, len(prompt) :].tolist()))

    exact = sampler.temperature == 0 and model.dtype in (torch.float32, torch.float64)
    return Contender(method, RUNTIMES[model.dtype], setting, sampler, run, exact)
