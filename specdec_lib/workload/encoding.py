"""How a prompt becomes tokens. Everything in this library that encodes a text does it here."""

from textwrap import shorten

from transformers import PreTrainedTokenizerFast

from specdec_lib.workload.prompts import Prompt


def encode_prompt(tokenizer: PreTrainedTokenizerFast, prompt: Prompt | str) -> tuple[int, ...]:
    """The tokens of a prompt: as a user's turn, those of `apply_chat_template(tokenize=True)`; and
    without a chat template those of `tokenizer.encode`.

    A chat template writes the begin token itself, so that none is added to what it wrote.

    Raises ValueError if the text holds half of a surrogate pair, or if the chat template raises,
    cannot be parsed, or leaves the text out.
    """
    text = prompt if isinstance(prompt, str) else prompt.text
    text.encode()  # a ValueError for half of a surrogate pair
    if tokenizer.chat_template is None:
        return tuple(tokenizer.encode(text))
    named = "a text" if isinstance(prompt, str) else f"the prompt {prompt.name}"
    written = _user_turn(tokenizer, text, named)
    return tuple(tokenizer(written, add_special_tokens=False).input_ids)


def _user_turn(tokenizer: PreTrainedTokenizerFast, text: str, named: str) -> str:
    """What the chat template makes of a user's turn, up to the beginning of the answer."""
    turn = {"role": "user", "content": text}
    folder = tokenizer.name_or_path
    try:
        written = str(
            tokenizer.apply_chat_template([turn], tokenize=False, add_generation_prompt=True)
        )
    except Exception as error:  # of whatever the template does
        why = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(f"the chat template of {folder} does not take {named}: {why}") from error
    if _without_spaces(text) not in _without_spaces(written):  # templates may strip a text
        raise ValueError(
            f"the chat template of {folder} must write the text of a user's turn as it is given,"
            f" and leaves out or changes {named}"
        )
    return written


def _without_spaces(text: str) -> str:
    return "".join(text.split())
