"""What `generate` was asked for: honoured, or refused by name with what is allowed."""

import sys
from collections.abc import Mapping
from importlib.metadata import version

from jaxtyping import Int
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel
from transformers.generation.configuration_utils import GenerationMode

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context

PLAIN = (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE)
ALLOWED = {  # values of the generation config, the first of them the way to say so
    **dict.fromkeys(("num_beams", "num_return_sequences"), (1, None)),
    "guidance_scale": (None, 1, 1.0),
    "use_cache": (True, None),
    "cache_implementation": (None, "dynamic"),
    **dict.fromkeys(("output_attentions", "output_hidden_states"), (False, None)),
    **dict.fromkeys(("output_scores", "output_logits", "return_dict_in_generate"), (False, None)),
    **dict.fromkeys(("prompt_lookup_num_tokens", "assistant_early_exit"), (None,)),
    **dict.fromkeys(("penalty_alpha", "dola_layers", "prefill_chunk_size"), (None,)),
    **dict.fromkeys(("constraints", "force_words_ids"), (None,)),
    **dict.fromkeys(("use_mtp", "low_memory", "token_healing"), (None, False)),
}
PREPARED = (  # what `generate` itself hands over, and what is honoured
    *("attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep"),
    *("encoder_outputs", "tokenizer", "streamer"),
)


def restore_dropped() -> None:
    """Give back to `generate` what transformers (5.17 to 5.23) drops when it is given a callable:
    streamer, tokenizer, assistant, synced_gpus.

    It collects them, and then keeps only arguments that `_sample` does not have. While it reads the
    callable's signature, both collections are its local variables: one is put into the other. No
    argument has the streamer, and to ignore it in silence would be worse than to read a frame.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_extract_generation_mode_kwargs":
        frame = frame.f_back
    if frame is not None and {"kwargs", "generation_mode_kwargs"} <= frame.f_locals.keys():
        collected, kept = frame.f_locals["generation_mode_kwargs"], frame.f_locals["kwargs"]
        if kept.get("encoder_outputs") is not None:
            raise refusal("encoder_outputs", "of your own", "None: the encoder is run here")
        kept.update(restored=collected, tokenizer=collected.get("tokenizer"))


def check_options(
    model: PreTrainedModel,
    config: GenerationConfig,
    given: Mapping[str, object],
    restored: Mapping[str, object] | None,
) -> None:
    """Raises ValueError naming the first option that speculation cannot honour: of the config, of
    what else is `given` to the model, and of what was `restored` (None if that failed).
    """
    if restored is None:
        other = f"transformers {version('transformers')} is unlike the known 5.17 to 5.23"
        lost = "streamer, synced_gpus and assistant_model would be lost"
        raise ValueError(f"{other}: {lost}; allowed is to be called by `generate` of those")
    for name, allowed in ALLOWED.items():
        if (value := vars(config).get(name)) not in allowed:
            raise refusal(name, value, " or ".join(map(repr, allowed)))
    if (mode := config.get_generation_mode()) not in PLAIN:
        raise refusal("generation mode", mode.value, " or ".join(one.value for one in PLAIN))
    cache = given.get("past_key_values")
    if cache is not None and ("_is_user_defined" in vars(cache) or cache.get_seq_length() > 0):
        raise refusal("past_key_values", cache, "None: speculation has its own cache")
    for name, value in {**restored, **given}.items():
        if name not in PREPARED and value is not None and value is not False:
            only = "only token ids and their mask are read, and the guesses come from the draft"
            raise refusal(name, value, f"None: {only}")
    if model.training:
        remedy = "False: call model.eval(), or dropout makes every pass another"
        raise refusal("model.training", True, remedy)


def prompt_of(
    model: PreTrainedModel,
    tokens: Int[Tensor, "batch length"],
    inputs: Tensor,
    given: Mapping[str, object],
) -> Context:
    """The prompt (what the decoder has so far), with the source (what `generate` was given) of an
    encoder-decoder model; raises ValueError for a batch, embeddings, padding or other positions.
    """
    if inputs.is_floating_point() or inputs.ndim != 2:
        allowed = "token ids in two dimensions (no inputs_embeds, no sound, no pictures)"
        raise refusal("inputs", inputs, allowed)
    if len(tokens) != 1 or len(inputs) != 1:
        raise refusal("the batch", f"{len(inputs)} prompts", "1 prompt per call")
    mask, positions = given.get("attention_mask"), given.get("position_ids")
    if mask is not None and not bool((mask == 1).all()):
        raise refusal("attention_mask", mask.tolist(), "1 for every token: no padding")
    if model.config.is_encoder_decoder:
        return Context.of(tokens[0].tolist(), tuple(inputs[0].tolist()))
    if positions is not None and positions[0].tolist() != list(range(tokens.shape[1])):
        raise refusal("position_ids", positions, "None: 0, 1, … along the prompt")
    return Context.of(tokens[0].tolist())


def check_length(longest: int | None, prompt: int, positions: int) -> None:
    """Raises ValueError unless the longest text, of which `prompt` tokens are there, fits."""
    if longest is None:
        raise refusal("max_length", None, "a number: give max_new_tokens or max_length")
    new, most = longest - prompt, positions + 1 - prompt
    if new > most:
        room = f"at most {most} new tokens after a prompt of {prompt}: {positions} positions"
        raise refusal("max_length", f"{longest} ({new} new tokens)", room)


def sampler_of(config: GenerationConfig) -> Sampler:
    """The sampler by which drafts rank their guesses; the target samples from processed logits."""
    if not config.do_sample:
        return Sampler(0)
    top_k, top_p = config.top_k or None, config.top_p or 1.0
    return Sampler(config.temperature or 1.0, top_k=top_k, top_p=top_p)


def refusal(name: str, value: object, allowed: str) -> ValueError:
    """The error for an option that cannot be honoured."""
    if isinstance(value, Tensor):
        value = f"a tensor of shape {list(value.shape)} and {value.dtype}"
    elif not isinstance(value, int | float | str | list | None):
        value = f"a {type(value).__name__}"
    return ValueError(f"speculative decoding does not do {name}={value}; allowed is {allowed}")
