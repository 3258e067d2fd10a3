"""The arguments of `generate`: honoured, or refused by name with what is allowed."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    StoppingCriteriaList,
    StopStringCriteria,
)
from transformers.generation.configuration_utils import GenerationMode

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context

PLAIN = (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE)
ALLOWED = {  # values of the generation config, the first of them the way to say so
    "num_beams": (1, None),
    "num_return_sequences": (1, None),
    "guidance_scale": (None, 1, 1.0),
    "use_cache": (True, None),
    "cache_implementation": (None, "dynamic"),
    "output_attentions": (False, None),
    "output_hidden_states": (False, None),
    "output_scores": (False, None),
    "output_logits": (False, None),
    "return_dict_in_generate": (False, None),
    "prompt_lookup_num_tokens": (None,),
    "assistant_early_exit": (None,),
    "penalty_alpha": (None,),
    "dola_layers": (None,),
    "prefill_chunk_size": (None,),
    "constraints": (None,),
    "force_words_ids": (None,),
    "use_mtp": (None, False),
    "low_memory": (None, False),
    "token_healing": (None, False),
}
PREPARED = (  # what `generate` itself hands over
    "attention_mask",
    "position_ids",
    "past_key_values",
    "use_cache",
    "logits_to_keep",
    "encoder_outputs",
)
REFUSED = {  # arguments of `generate` that cannot be honoured, and why
    "custom_generate": "None: it is the door itself",
    "assistant_model": "None: the guesses come from the draft",
    "assistant_tokenizer": "None: the guesses come from the draft",
    "synced_gpus": "None: a text is decoded on one device",
    "streamer": "None: Speculative(draft, streamer=…) takes it",
}
ONLY = "only token ids and their mask are read, and the guesses come from the draft"


def refuse_arguments(options: Mapping[str, object]) -> None:
    """Raises ValueError naming an argument of `generate` that cannot be honoured, and of which it
    would not tell.
    """
    for name, allowed in REFUSED.items():
        value = options.get(name)
        if value is not None and value is not False:
            raise refusal(name, value, allowed)


def with_stop_strings(
    model: PreTrainedModel,
    tokenizer: Any,
    stop_strings: str | list[str] | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """The options of `generate` with stop strings, its own or a config's, as a criterion: it finds
    no tokenizer for them itself.  Raises ValueError if there is none.
    """
    config = options.get("generation_config")
    configured = model.generation_config.stop_strings
    if config is not None and config.stop_strings is not None:
        configured = config.stop_strings
    wanted = configured if stop_strings is None else stop_strings
    if wanted is None:
        return dict(options)
    if tokenizer is None:
        raise ValueError(f"stop_strings={wanted!r} need the model's tokenizer, got tokenizer=None")
    criteria = options.get("stopping_criteria") or ()
    stop = StopStringCriteria(tokenizer, wanted)
    more: dict[str, Any] = {"stopping_criteria": StoppingCriteriaList([*criteria, stop])}
    if configured is not None:
        more["stop_strings"] = None
    return {**options, **more}


def check_options(
    model: PreTrainedModel, config: GenerationConfig, given: Mapping[str, Any]
) -> None:
    """Raises ValueError naming the first option that speculation cannot honour: of the config, or
    of what else is `given` to the model.
    """
    for name, allowed in ALLOWED.items():
        value = vars(config).get(name)
        if value not in allowed:
            raise refusal(name, value, " or ".join(map(repr, allowed)))
    mode = config.get_generation_mode()
    if mode not in PLAIN:
        raise refusal("generation mode", mode.value, " or ".join(one.value for one in PLAIN))
    cache = given.get("past_key_values")
    if cache is not None and ("_is_user_defined" in vars(cache) or cache.get_seq_length() > 0):
        raise refusal("past_key_values", cache, "None: speculation has its own cache")
    for name, value in given.items():
        if name not in PREPARED and value is not None and value is not False:
            raise refusal(name, value, REFUSED.get(name, f"None: {ONLY}"))
    if model.training:
        remedy = "False: call model.eval(), or dropout makes every pass another"
        raise refusal("model.training", True, remedy)


def prompt_of(
    model: PreTrainedModel,
    tokens: Int[Tensor, "batch length"],
    inputs: Tensor,
    given: Mapping[str, Any],
) -> Context:
    """The prompt (what the decoder has so far), with the source (what `generate` was given) of an
    encoder-decoder model; raises ValueError for a batch, embeddings, padding or other positions.
    """
    if inputs.is_floating_point() or inputs.ndim != 2:
        allowed = "token ids in two dimensions (no inputs_embeds, no sound, no pictures)"
        raise refusal("inputs", inputs, allowed)
    if len(tokens) != 1 or len(inputs) != 1:
        raise refusal("the batch", f"{len(inputs)} prompts", "1 prompt per call")
    mask = given.get("attention_mask")
    if mask is not None and not bool((mask == 1).all()):
        raise refusal("attention_mask", mask.tolist(), "1 for every token: no padding")
    if model.config.is_encoder_decoder:
        if int(inputs.min()) < 0:  # as `generate` makes up for encoder outputs without tokens
            raise refusal("encoder_outputs", "without inputs", f"those of the inputs: {ONLY}")
        return Context.of(tokens[0].tolist(), tuple(inputs[0].tolist()))
    positions = given.get("position_ids")
    if positions is not None and positions[0].tolist() != list(range(tokens.shape[1])):
        raise refusal("position_ids", positions, "None: 0, 1, … along the prompt")
    return Context.of(tokens[0].tolist())


def check_encoded(encoded: Float[Tensor, "1 length width"], given: Mapping[str, Any]) -> None:
    """Raises ValueError unless the encoder outputs that `generate` hands over are those of the
    inputs, as far as rounding goes.
    """
    outputs = given.get("encoder_outputs")
    if outputs is None:
        return
    other = outputs[0]
    near = 0.01 * float(encoded.abs().max())
    if other.shape != encoded.shape or not torch.allclose(other, encoded, rtol=0.0, atol=near):
        raise refusal("encoder_outputs", "of other tokens", "None: the encoder reads the inputs")


def check_length(longest: int | None, prompt: int, positions: int) -> int:
    """The length of the longest text, of which `prompt` tokens are there; raises ValueError unless
    it fits.
    """
    if longest is None:
        raise refusal("max_length", None, "a number: give max_new_tokens or max_length")
    new = longest - prompt
    most = positions + 1 - prompt
    if new > most:
        room = f"at most {most} new tokens after a prompt of {prompt}: {positions} positions"
        raise refusal("max_length", f"{longest} ({new} new tokens)", room)
    return longest


def sampler_of(config: GenerationConfig) -> Sampler:
    """The sampler by which drafts rank their guesses; the target samples from processed logits."""
    if not config.do_sample:
        return Sampler(0)
    return Sampler(config.temperature or 1.0, top_k=config.top_k or None, top_p=config.top_p or 1.0)


def refusal(name: str, value: object, allowed: str) -> ValueError:
    """The error for an option that cannot be honoured."""
    if isinstance(value, Tensor):
        value = f"a tensor of shape {list(value.shape)} and {value.dtype}"
    elif not isinstance(value, int | float | str | list | None):
        value = f"a {type(value).__name__}"
    return ValueError(f"speculative decoding does not do {name}={value}; allowed is {allowed}")
