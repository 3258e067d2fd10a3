"""Where a model lies, on disk or on the Hugging Face hub, and tokenizers that models share."""

import functools
from collections.abc import Mapping
from os.path import isdir
from pathlib import Path
from textwrap import shorten
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.utils import disable_progress_bars
from transformers import AutoTokenizer
from transformers import PreTrainedTokenizerFast as Tokenizer
from transformers.models.auto.tokenization_auto import get_tokenizer_config

Source = str | Path
"""A local folder in hub format, or a name on the hub."""

FILES = ("*.json", "*.jinja", "*.model", "*.safetensors", "*.txt")
TOKENS = ("tokenizer.json", "vocab*", "*.model")  # one of these holds a tokenizer's tokens
OTHERS = ("*/*", "consolidated*")  # the same model in other formats
LOCAL = {"trust_remote_code": False, "local_files_only": True}  # its code is never run
PROBES = (
    "def f(x):\n    return  x ** 2  # ∑ ok\n",
    "The answer is 1,234.5 – isn't it?",
    "  indented\ttabs\r\nand lines\n\n\n",
    "naïve café, 日本語, 🙂, ﬁ",
    "",
)


@functools.cache
def model_folder(source: Source) -> Path:
    """The folder of a model, downloaded once if it is no path.  Raises ValueError for no model."""
    if isdir(source):  # False also for what can be no path, such as a name that is too long
        return Path(source)
    if isinstance(source, Path) or source.startswith(("/", "./", "../", "~")):
        raise ValueError(f"a model is a local folder in hub format; there is no folder {source}")
    disable_progress_bars()
    try:
        found = snapshot_download(str(source), allow_patterns=[*FILES], ignore_patterns=[*OTHERS])
        return Path(found)
    except Exception as error:  # of the HTTP client that this version of huggingface_hub uses
        why = shorten(f"{type(error).__name__}: {error}", 300)
        raise ValueError(
            "a model is a local folder in hub format, or a name on the hub like"
            f' "openai-community/gpt2"; {source} cannot be had ({why})'
        ) from error


def load_tokenizer(source: Source) -> Tokenizer:
    """The tokenizer of a model.  Raises ValueError if it needs other packages or own code."""
    folder = model_folder(source)
    # without one of these, some families make a tokenizer of their special tokens
    if not any(any(folder.glob(pattern)) for pattern in TOKENS):
        raise ValueError(
            f"{source!s} has no tokenizer: there is none of {', '.join(TOKENS)} in it; save a"
            " tokenizer.json (`tokenizer.save_pretrained`), or name a folder as `tokenizer`"
        )
    try:
        # for some families AutoTokenizer takes their own class, whatever the folder says, and
        # splits text otherwise; the class of these names adds no rules
        named = get_tokenizer_config(folder).get("tokenizer_class")
        plain = named in ("TokenizersBackend", "PreTrainedTokenizerFast")
        kind: Any = Tokenizer if plain else AutoTokenizer
        found = kind.from_pretrained(folder, **LOCAL)
    except Exception as error:  # of whichever parser the files need
        why = shorten(f"{type(error).__name__}: {error}", 400)
        raise ValueError(
            f"{source!s} has no tokenizer that can be read; save a tokenizer.json"
            f" (`tokenizer.save_pretrained`), or name a folder as `tokenizer` ({why})"
        ) from error
    if not isinstance(found, Tokenizer):
        raise ValueError(
            f"{source!s} has no tokenizer of the fast kind; save a tokenizer.json"
            " (`tokenizer.save_pretrained`), or name a folder as `tokenizer`"
        )
    return found


def shared_tokenizer(sources: Mapping[str, Source], given: Source | None = None) -> Tokenizer:
    """The tokenizer that all models share, else ValueError; `given` for models without one."""
    shared = load_tokenizer(sources["target"] if given is None else given)
    for name, source in sources.items():
        own = any(model_folder(source).glob("tokenizer*"))
        if name != "target" if given is None else own:
            check_tokenizers(shared, load_tokenizer(source), name)
    return shared


def check_tokenizers(target: Tokenizer, other: Tokenizer, name: str) -> None:
    """Raises ValueError, naming the first difference, unless both encode alike by equal tokens."""
    own = target.get_vocab()  # numbers may have holes
    theirs = other.get_vocab()
    if apart := own.items() ^ theirs.items():
        token, _ = min(apart, key=lambda one: one[::-1])
        raise ValueError(
            f"the {name} must share the target's tokenizer: the token {token!r} is number"
            f" {own.get(token)} to the target and {theirs.get(token)} to the {name}"
        )
    # padding and the unknown are not used; a special token that one alone names contradicts nothing
    for special in ("bos_token_id", "eos_token_id"):
        ids = getattr(target, special), getattr(other, special)
        if None not in ids and ids[0] != ids[1]:
            raise ValueError(
                f"the {name} must share the target's tokenizer: {special} is {ids[0]} to the"
                f" target, {ids[1]} to the {name}"
            )
    for text in PROBES:
        if target.encode(text) != other.encode(text):
            raise ValueError(
                f"the {name} must share the target's tokenizer: both know the same tokens, and"
                f" encode {text!r} otherwise"
            )
