"""Prompt sets, embedded, published and your own, and a seed per prompt."""

import hashlib
import reprlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import from_json

from specdec_lib.core.files import DATA, REMEDY
from specdec_lib.core.kinds import Within, checked

DOMAINS = ("chat", "code", "summary", "math")
OURS = (*DOMAINS, "docstring")  # the last is the encoder-decoder pair's
SPLITS = ("development", "held-out")
WHOLE = "all"  # both
QUESTIONS = (
    "https://raw.githubusercontent.com/hemingkx/Spec-Bench/main/data/spec_bench/question.jsonl"
)
MULTIPLE_CHOICE = (
    "The following is a multiple choice question (with answer) about {subject}.\n\n{question}\n"
    "A. {choices[0]}\nB. {choices[1]}\nC. {choices[2]}\nD. {choices[3]}\nAnswer:"
)
PUBLISHED: dict[str, tuple[str, dict[str, str]]] = {
    # a text, zero-shot, and where `datasets` finds a line. Sources: Chen et al. 2021, Cobbe et al.
    # 2021, Hendrycks et al. 2021, Xia et al. 2024 (the first turn)
    "humaneval": ("{prompt}", {"path": "openai/openai_humaneval", "split": "test"}),
    "gsm8k": (
        "Question: {question}\nAnswer:",
        {"path": "openai/gsm8k", "name": "main", "split": "test"},
    ),
    "mmlu": (MULTIPLE_CHOICE, {"path": "cais/mmlu", "name": "all", "split": "test"}),
    "spec-bench": ("{turns[0]}", {"path": "json", "data_files": QUESTIONS, "split": "train"}),
}

Text = Annotated[str, StringConstraints(pattern=r"\S")]
"""A text that is not empty."""


@dataclass(frozen=True)
class Prompt:
    """A prompt's text, and its origin."""

    name: Text
    text: Text
    domain: Text
    split: Literal["development", "held-out"]
    origin: Text
    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")  # where a line is checked


PROMPT = TypeAdapter(Prompt)


@checked
def load_prompts(
    domain: str | Path = "chat",
    split: str | None = None,
    limit: Annotated[int, Within(1)] | None = None,
    *,
    folder: Path = DATA / "prompts",
) -> list[Prompt]:
    """The prompts of one set and split, in a fixed order.

    domain    "chat", "code", "summary", "math"; "docstring" for the encoder-decoder pair;
              "humaneval", "gsm8k", "mmlu", "spec-bench" through the package `datasets`; or a
              .jsonl file of lines {"text": …}, with any other field of `Prompt`
    split     "development", "held-out", or "all" for both; None is the held-out ones of a set, and
              all of a file
    limit     the first so many; None is all

    Raises ValueError if there is no such prompt, or a line, which it names, is damaged.
    """
    is_file = isinstance(domain, Path) or domain.endswith(".jsonl")
    if split is None:
        split = WHOLE if is_file else "held-out"
    if (not is_file and domain not in (*OURS, *PUBLISHED)) or split not in (*SPLITS, WHOLE):
        raise ValueError(
            f"prompt sets are {', '.join((*OURS, *PUBLISHED))}, or a .jsonl file, and splits"
            f" {', '.join((*SPLITS, WHOLE))}; got {str(domain)!r} and {split!r}"
        )
    if isinstance(domain, str) and domain in PUBLISHED:
        found = _distinct(domain, _published(domain))
    elif isinstance(domain, Path) or is_file:
        found = _distinct(Path(domain).name, _lines(Path(domain)))
    else:
        try:
            found = _distinct(domain, _lines(folder / f"{domain}.jsonl"))
        except ValueError as error:
            raise ValueError(f"the prompt file is damaged ({error}); {REMEDY}") from error
    chosen = [prompt for prompt in found if split in (prompt.split, WHOLE)][:limit]
    if not chosen:
        raise ValueError(
            f'{domain!s} holds {len(found)} prompts and none is {split}; split="all" takes them all'
        )
    return chosen


def _published(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The places and texts of a published set, which is downloaded once."""
    template, place = PUBLISHED[name]
    try:
        from datasets import load_dataset  # pyright: ignore[reportMissingImports]  # an extra

        found = load_dataset(**place)
    except Exception as error:  # of whichever client `datasets` uses underneath
        raise ValueError(
            f'{name} cannot be had ({error}); it needs `pip install -e ".[hub]"` and a network,'
            ' or a local file of lines {"text": …}'
        ) from error
    for number, line in enumerate(found, 1):
        words = line | {"subject": str(line.get("subject")).replace("_", " ")}  # of MMLU
        yield f"{name}, row {number}", {"text": template.format_map(words)}


def _distinct(domain: str, given: Iterator[tuple[str, object]]) -> list[Prompt]:
    """The prompts.  Raises ValueError for a repeated name, because seeds follow from names.

    Of two lines that follow each other and name no split, one gets each, so that any number of
    lines from the first is divided evenly, and lines that are added change no earlier one's.
    """
    found: dict[str, Prompt] = {}
    other = None  # the split that the second line of a pair gets
    for number, (where, line) in enumerate(given):
        if isinstance(line, Mapping):
            line = {"name": f"{domain}/{number}", "domain": domain, "origin": where, **line}
            if "split" not in line and other is None:
                line["split"] = split_of(str(line["name"]))
                other = SPLITS[1 - SPLITS.index(line["split"])]
            elif "split" not in line:
                line["split"] = other
                other = None
        try:
            prompt = PROMPT.validate_python(line)
        except ValidationError as error:
            raise ValueError(f"{where}: {wrong_fields(error, 'the line')}") from error
        if prompt.name in found:
            raise ValueError(f"{where}: the name {prompt.name!r} was there before")
        found[prompt.name] = prompt
    return [*found.values()]


def _lines(path: Path) -> Iterator[tuple[str, object]]:
    """Every line's place and value, without blank lines; ValueError for a missing or empty file, no
    UTF-8 or no JSON.
    """
    content = _read_text(path)
    if not content.strip():
        raise ValueError(f'{path} is empty: a file of prompts has a line {{"text": …}} for each')
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            value = from_json(line)
        except ValueError as error:
            why = str(error).replace(" at line 1 column ", " at column ")  # which is all it read
            raise ValueError(f"{where}: it is not JSON ({why})") from error
        yield where, value


def _read_text(path: Path) -> str:
    """The text of a file, without a byte-order mark and with line ends as here."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"there is no file {path} that can be read ({error.strerror})") from error
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in content:
        raise ValueError(f"{path} is in UTF-16, or no text: save it as UTF-8")
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: it is not UTF-8 ({error}); save it so") from error


def wrong_fields(error: ValidationError, whole: str) -> str:
    """Each wrong field, or the whole, with what is wrong and what was got."""
    wrong = []
    for one in error.errors():
        field = ".".join(map(str, one["loc"])) or whole
        wrong.append(f"{field}: {one['msg']}, got {reprlib.repr(one['input'])}")
    return "; ".join(wrong)


def split_of(name: str) -> str:
    """One of the splits, by a hash of a name: that of the first of two prompts without one."""
    return SPLITS[hashlib.sha256(name.encode()).digest()[0] % 2]


@checked
def seeds(prompts: Sequence[Prompt], seed: int) -> list[int]:
    """`prompt_seed` of each prompt, so that prompts never share noise."""
    return [prompt_seed(prompt.name, seed) for prompt in prompts]


def prompt_seed(name: str, seed: int) -> int:
    """The seed of the prompt of this name in a measurement with `seed`, by a hash of both."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:7], "big")
