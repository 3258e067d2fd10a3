"""What a model's generation configuration says, beside what decoding here does: where a text ends,
and which settings of `generate` are not applied.
"""

import reprlib
import warnings
from typing import Any

from transformers import GenerationConfig, PreTrainedModel
from transformers import PreTrainedTokenizerFast as Tokenizer

ANSWER = "specdec"  # an assistant's turn, to see what the chat template writes after it
# by name, the value of each setting that leaves a text as it is; None does so too
NEUTRAL = {
    "repetition_penalty": 1,
    "encoder_repetition_penalty": 1,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "bad_words_ids": None,
    "sequence_bias": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
    "exponential_decay_length_penalty": None,
    "guidance_scale": 1,
    "watermarking_config": None,
    "remove_invalid_values": False,
    "min_length": 0,
    "min_new_tokens": 0,
    "max_time": None,
    "stop_strings": None,
    "num_beams": 1,
    "num_beam_groups": 1,
    "penalty_alpha": None,
    "dola_layers": None,
    "constraints": None,
    "force_words_ids": None,
    "token_healing": False,
}
# the same, of those that work only where `do_sample` is on
NEUTRAL_SAMPLING = {
    "do_sample": False,
    "temperature": 1,
    "top_k": 0,
    "top_p": 1,
    "min_p": 0,
    "top_h": None,
    "typical_p": 1,
    "epsilon_cutoff": 0,
    "eta_cutoff": 0,
}


def stop_tokens(config: GenerationConfig | None, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The tokens that end a text: those of a model's generation configuration, the tokenizer's end
    of text, and what the chat template writes at the end of an assistant's turn.
    """
    named = named_stops(config)
    end: Any = tokenizer.eos_token_id  # one id
    found = (*named, end, turn_end(tokenizer))
    return tuple(dict.fromkeys(int(token) for token in found if token is not None))


def named_stops(config: GenerationConfig | None) -> tuple[int, ...]:
    """The end tokens that a generation configuration names."""
    stops = None if config is None else config.eos_token_id
    if stops is None:
        return ()
    return tuple(stops) if isinstance(stops, list) else (stops,)


def turn_end(tokenizer: Tokenizer) -> int | None:
    """The token that the chat template writes after an assistant's turn, such as `<|im_end|>`; None
    without a template, or if it writes none of the tokenizer's added tokens there.
    """
    if tokenizer.chat_template is None:
        return None
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    try:
        written = str(tokenizer.apply_chat_template(turns, tokenize=False))
    except Exception:  # a prompt that it does not take either is refused when it is encoded
        return None
    _, found, after = written.rpartition(ANSWER)
    first = tokenizer(after.lstrip(), add_special_tokens=False).input_ids[:1]
    if not found or not first or first[0] == tokenizer.unk_token_id:
        return None
    return first[0] if first[0] in tokenizer.added_tokens_decoder else None


def ignored_settings(config: GenerationConfig) -> dict[str, object]:
    """The settings of a generation configuration, by name, with which `generate` would write other
    texts than decoding here; those of sampling, which a sampler replaces, if `do_sample` is on.
    """
    neutral = NEUTRAL | (NEUTRAL_SAMPLING if config.do_sample else {})
    values = {name: getattr(config, name, None) for name in neutral}
    return {name: one for name, one in values.items() if one not in (None, [], neutral[name])}


def generation_notes(network: PreTrainedModel, tokenizer: Tokenizer) -> list[str]:
    """Sentences on what decoding here does otherwise than `generate` does with the model's own
    generation configuration; none for most models.
    """
    config = network.generation_config
    source = network.config.name_or_path
    notes = []
    named = named_stops(config)
    joined = [token for token in stop_tokens(config, tokenizer) if token not in named]
    if named and joined:
        ends = ", ".join(repr(tokenizer.convert_ids_to_tokens(token)) for token in joined)
        notes.append(
            f"a text ends at {ends} too, which the tokenizer of {source} names and its generation"
            " configuration does not: `generate` would go on"
        )
    if ignored := ignored_settings(config):
        values = ", ".join(f"{name}={reprlib.repr(one)}" for name, one in ignored.items())
        notes.append(
            f"the generation configuration of {source} has settings that are"
            f" not applied here: {values}"
        )
    return notes


def warn_of_notes(network: PreTrainedModel, tokenizer: Tokenizer, stacklevel: int) -> None:
    """Issue `generation_notes` as warnings, at so many calls above this one."""
    for note in generation_notes(network, tokenizer):
        warnings.warn(note, stacklevel=stacklevel + 1)
