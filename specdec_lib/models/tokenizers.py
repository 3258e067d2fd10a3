"""The tokenizer of a model, and whether two models mean the same by a token."""

from collections.abc import Mapping
from pathlib import Path

from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from specdec_lib.models.hub import is_local, offline

Source = str | Path
PLAIN = (
    "TokenizersBackend",
    "PreTrainedTokenizerFast",
)  # of a tokenizer.json that is taken as it stands, by its new name and its old
SPECIAL = (
    "bos_token_id",
    "eos_token_id",
    # those for padding and for the unknown are not used here, and differ by the class that reads a
    # file
)
PROBES = (
    "def f(x):\n    return  x ** 2  # ∑ ok\n",
    "The answer is 1,234.5 – isn't it?",
    "  indented\ttabs\r\nand lines\n\n\n",
    "naïve café, 日本語, 🙂, ﬁ",
    "",
)


def load_tokenizer(source: Source) -> PreTrainedTokenizerFast:
    """The tokenizer in a model's folder, or of a model on the hub.

    Raises ValueError if there is none, or none that can be read without other packages or code of
    its own.
    """
    local = is_local(source)
    unasked = "" if local else offline()
    where = f"folder {source}" if local else f"hub model {source}"
    wanted = (
        "a tokenizer.json (`tokenizer.save_pretrained` writes one), or say where it is: tokenizer=…"
    )
    options = {"local_files_only": local or bool(unasked)}
    try:
        # AutoTokenizer takes some kinds of model for their family's own tokenizer, whatever the
        # folder says, and splits text otherwise
        plain = get_tokenizer_config(str(source), **options).get("tokenizer_class") in PLAIN
        kind = PreTrainedTokenizerFast if plain else AutoTokenizer
        found = kind.from_pretrained(str(source), trust_remote_code=False, **options)
    except Exception as error:  # of whichever parser the files chose
        raise ValueError(
            f"{where} has no tokenizer that can be read; it needs {wanted}"
            f" ({unasked or str(error).splitlines()[0]})"
        ) from error
    if (
        not isinstance(found, PreTrainedTokenizerFast) or len(found) < 2
    ):  # of a configuration alone an empty one is made
        raise ValueError(f"{where} has no tokenizer, or none of the fast kind; it needs {wanted}")
    return found


def shared_tokenizer(
    sources: Mapping[str, Source], given: Source | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer that all models share.

    sources    of the models by name, "target" among them
    given      a folder with it; it then counts for every model that has none

    Raises ValueError if they do not share one, or one cannot be read.
    """
    shared = load_tokenizer(sources["target"] if given is None else given)
    for name, source in sources.items():
        bare = given is not None and is_local(source) and not any(Path(source).glob("tokenizer*"))
        if not bare and (name != "target" or given is not None):
            check_tokenizers(shared, load_tokenizer(source), name)
    return shared


def stop_tokens(
    config: GenerationConfig | None, tokenizer: PreTrainedTokenizerFast
) -> tuple[int, ...]:
    """Those of a model's generation configuration, else the tokenizer's end of text; none where
    neither says one.
    """
    said = getattr(config, "eos_token_id", None)
    said = tokenizer.eos_token_id if said is None else said
    return () if said is None else tuple(said) if isinstance(said, list) else (said,)


def check_tokenizers(
    target: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast, name: str = "draft"
) -> None:
    """Raises ValueError unless both know the same tokens under the same numbers and encode alike,
    naming the first difference.

    name    of the model whose tokenizer is compared with the target's
    """
    own, theirs = (
        {number: token for token, number in one.get_vocab().items()} for one in (target, other)
    )  # numbers may have holes
    both = own.keys() & theirs.keys()
    differing = sorted(number for number in both if own[number] != theirs[number])
    if differing:
        first = differing[0]
        raise ValueError(
            f"the {name} must share the target's tokenizer: token {first} is {own[first]!r} to the"
            f" target and {theirs[first]!r} to the {name};"
            f" {len(differing):,} of {len(both):,} tokens differ"
        )
    if own.keys() != theirs.keys():
        least = min(own.keys() ^ theirs.keys())
        longer, more = ("target", own) if least in own else (name, theirs)
        raise ValueError(
            f"the {name} must share the target's tokenizer: the target has {len(own):,} tokens and"
            f" the {name} {len(theirs):,}; {more[least]!r}, token"
            f" {least}, is the first that only the {longer} knows"
        )
    for special in SPECIAL:
        ids = [getattr(one, special) for one in (target, other)]
        if None not in ids and ids[0] != ids[1]:  # what only one of both names contradicts nothing
            raise ValueError(
                f"the {name} must share the target's tokenizer: {special} is {ids[0]} to the target"
                f" and {ids[1]} to the {name}"
            )
    for text in PROBES:
        one, another = target.encode(text), other.encode(text)
        if one != another:
            raise ValueError(
                f"the {name} must share the target's tokenizer: both know the same tokens, but the"
                f" target encodes {text!r} as {one} and the"
                f" {name} as {another}"
            )
