"""Tiny tokenizers with chat templates, made here: of whole words, with and without a begin token
of their own.
"""

from pathlib import Path

from own_models import llama
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import GenerationConfig, PreTrainedTokenizerFast

WORDS = "<s> </s> <end> <unk> user assistant say hello to everybody ? specdec".split()
IDS = {word: number for number, word in enumerate(WORDS)}
TURNS = (
    "{% for message in messages %}{{ message.role + ' ' + message.content | trim + ' <end> ' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant ' }}{% endif %}"
)
BEGUN = "{{ bos_token + ' ' }}" + TURNS


def chat_tokenizer(
    template: str | None = TURNS, *, begins: bool = False, ends: bool = False
) -> PreTrainedTokenizerFast:
    """A tokenizer with a chat template; `begins` if it puts <s> before a text, as those of Llama 3,
    Gemma and Mistral do, and `ends` if it puts </s> after it, as those of T5 do.
    """
    inner = Tokenizer(WordLevel(IDS, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    if begins or ends:
        single = f"{'<s> ' if begins else ''}$A{' </s>' if ends else ''}"
        special = [("<s>", IDS["<s>"]), ("</s>", IDS["</s>"])]
        inner.post_processor = TemplateProcessing(single=single, special_tokens=special)
    named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    found = PreTrainedTokenizerFast(
        tokenizer_object=inner, additional_special_tokens=["<end>"], **named
    )
    found.chat_template = template
    return found


def chat_folder(folder: Path, tokenizer: PreTrainedTokenizerFast, **settings: object) -> Path:
    """A tiny Llama with this tokenizer, and such a generation configuration."""
    llama(folder)
    for path in folder.glob("tokenizer*"):
        path.unlink()
    tokenizer.save_pretrained(folder)
    GenerationConfig(**settings).save_pretrained(folder)
    return folder
