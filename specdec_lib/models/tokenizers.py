"""The tokenizer of a model, and whether two models share one."""

from collections.abc import Mapping

from transformers import AutoTokenizer, GenerationConfig, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config

from specdec_lib.models.hub import Source, model_folder

PLAIN = ("TokenizersBackend", "PreTrainedTokenizerFast")  # names of the class that adds no rules
PROBES = (
    "def f(x):\n    return  x ** 2  # ∑ ok\n",
    "The answer is 1,234.5 – isn't it?",
    "  indented\ttabs\r\nand lines\n\n\n",
    "naïve café, 日本語, 🙂, ﬁ",
    "",
)


def load_tokenizer(source: Source) -> PreTrainedTokenizerFast:
    """The tokenizer of a model.  Raises ValueError if it needs other packages or own code."""
    folder, problem = model_folder(source), f"{source!s} has no tokenizer that can be read"
    remedy = "save a tokenizer.json (`tokenizer.save_pretrained`), or name a folder as `tokenizer`"
    try:
        # for some families AutoTokenizer takes their own class, whatever the folder says, and
        # splits text otherwise
        plain = get_tokenizer_config(folder).get("tokenizer_class") in PLAIN
        kind = PreTrainedTokenizerFast if plain else AutoTokenizer
        found = kind.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # of whichever parser the files need
        why = str(error).partition("\n")[0]
        raise ValueError(f"{problem}; {remedy} ({why})") from error
    # from a configuration alone, an empty tokenizer is made
    if not isinstance(found, PreTrainedTokenizerFast) or len(found) < 2:
        raise ValueError(f"{problem}, or none of the fast kind; {remedy}")
    return found


def shared_tokenizer(
    sources: Mapping[str, Source], given: Source | None = None
) -> PreTrainedTokenizerFast:
    """The tokenizer that all models share, else ValueError; `given` for models without one."""
    shared = load_tokenizer(sources["target"] if given is None else given)
    for name, source in sources.items():
        own = any(model_folder(source).glob("tokenizer*"))
        if name != "target" if given is None else own:
            check_tokenizers(shared, load_tokenizer(source), name)
    return shared


def stop_tokens(
    config: GenerationConfig | None, tokenizer: PreTrainedTokenizerFast
) -> tuple[int, ...]:
    """The stop tokens of a model's generation configuration, else the tokenizer's end of text."""
    stops = None if config is None else config.eos_token_id
    stops = tokenizer.eos_token_id if stops is None else stops
    return tuple(stops) if isinstance(stops, list) else () if stops is None else (stops,)


def check_tokenizers(
    target: PreTrainedTokenizerFast, other: PreTrainedTokenizerFast, name: str = "draft"
) -> None:
    """Raises ValueError, naming the first difference, unless both encode alike by equal tokens."""
    problem = f"the {name} must share the target's tokenizer:"
    own, theirs = (
        {number: token for token, number in one.get_vocab().items()} for one in (target, other)
    )  # numbers may have holes
    if own != theirs:
        numbers = sorted(own.keys() | theirs.keys())
        first = next(number for number in numbers if own.get(number) != theirs.get(number))
        known = f"is {own.get(first)!r} to the target and {theirs.get(first)!r} to the {name}"
        raise ValueError(f"{problem} of {len(numbers):,} tokens, number {first} {known}")
    # padding and the unknown are not used; a special token that one alone names contradicts nothing
    for special in ("bos_token_id", "eos_token_id"):
        ids = getattr(target, special), getattr(other, special)
        if None not in ids and ids[0] != ids[1]:
            raise ValueError(
                f"{problem} {special} is {ids[0]} to the target, {ids[1]} to the {name}"
            )
    for text in PROBES:
        if target.encode(text) != other.encode(text):
            raise ValueError(f"{problem} both know the same tokens, and encode {text!r} otherwise")
