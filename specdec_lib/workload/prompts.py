"""Prompt sets, embedded, published and your own, and a seed per prompt."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict

from specdec_lib.core.files import DATA, REMEDY
from specdec_lib.core.kinds import Within, checked
from specdec_lib.workload.jsonl import Text, checked_line, lines
from specdec_lib.workload.schemas import SCHEMAS, hub_lines, recognise

DOMAINS = ("chat", "code", "summary", "math")
DOCSTRING = "docstring"  # the encoder-decoder pair's
OURS = (*DOMAINS, DOCSTRING)
SPLITS = ("development", "held-out")
WHOLE = "all"  # both
PUBLISHED = tuple(SCHEMAS)
ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz")


@dataclass(frozen=True)
class Prompt:
    """A prompt's text, and its origin."""

    name: Text
    text: Text
    domain: Text
    split: Literal["development", "held-out"]
    origin: Text
    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")  # where a line is checked


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
              file, .jsonl, .jsonl.gz or .json, of a published set or of your own
    split     "development", "held-out", or "all" for both; None is the held-out ones of a set, and
              all of a file
    limit     the first so many; None is all

    A prompt of your own is a line {"text": …}, with `name` (else file and line), `domain`, `split`
    (else by a hash of its name) and `origin` where you have them. Raises ValueError if there is no
    such set, split or file, the limit is below 1, the set cannot be had, or a line, which it names,
    is not what it should be.
    """
    is_file = isinstance(domain, Path) or domain.endswith(ENDINGS)
    split = split or (WHOLE if is_file else "held-out")
    if (not is_file and domain not in (*OURS, *PUBLISHED)) or split not in (*SPLITS, WHOLE):
        sets, splits = ", ".join((*OURS, *PUBLISHED)), ", ".join((*SPLITS, WHOLE))
        known = f"{sets}, or a file that ends in {', '.join(ENDINGS)}, and splits {splits}"
        raise ValueError(f"prompt sets are {known}; got {str(domain)!r} and {split!r}")
    if domain in OURS:
        found = _own(folder / f"{domain}.jsonl", domain)
    elif is_file:
        found = _distinct(_from_file(Path(domain)))
    else:
        found = _distinct(_published(hub_lines(domain), SCHEMAS[domain]))
    chosen = [prompt for prompt in found if split in (prompt.split, WHOLE)][:limit]
    if not chosen:
        remedy = 'split="all" takes them all'
        raise ValueError(f"{domain!s} holds {len(found)} prompts and none is {split}; {remedy}")
    return chosen


def _own(path: Path, domain: str) -> list[Prompt]:
    """A set of ours: every field is there, and the domain is the file's."""
    try:
        found = _distinct((where, checked_line(where, line, Prompt)) for where, line in lines(path))
        if any(prompt.domain != domain for prompt in found):
            raise ValueError("it holds a prompt of another set")
    except ValueError as error:
        raise ValueError(f"prompt file {path} is damaged ({error}); {REMEDY}") from error
    return found


def _published(given: Iterable[tuple[str, object]], schema: type) -> Iterator[tuple[str, Prompt]]:
    for number, (where, line) in enumerate(given):
        name, text, domain = checked_line(where, line, schema).as_prompt(number)
        yield where, Prompt(name, text, domain, split_of(name), where)


def _from_file(path: Path) -> Iterator[tuple[str, Prompt]]:
    """A prompt of each line; the first one tells whether the file is a published set."""
    given = list(lines(path))
    schema = recognise(given[0][1])
    if schema is not None:
        yield from _published(given, schema)
        return
    for number, (where, line) in enumerate(given):
        usual = {"name": f"{path.name}/{number}", "domain": path.name, "origin": where}
        if isinstance(line, dict):
            line = usual | line
            line.setdefault("split", split_of(str(line["name"])))
        yield where, checked_line(where, line, Prompt)


def _distinct(given: Iterable[tuple[str, Prompt]]) -> list[Prompt]:
    """The prompts.  Raises ValueError for a repeated name, because seeds follow from names."""
    first: dict[str, tuple[str, Prompt]] = {}
    for where, prompt in given:
        if prompt.name in first:
            place = first[prompt.name][0].rpartition(", ")[2]
            raise ValueError(f"{where}: the name {prompt.name!r} was there before ({place})")
        first[prompt.name] = where, prompt
    return [prompt for _, prompt in first.values()]


def check_text(text: str) -> str:
    """The text.  Raises ValueError if it holds half of a surrogate pair, which has no tokens."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"the lone surrogate {text[error.start]!r} at {error.start}"
        raise ValueError(f"a text holds whole characters, got {half}") from error
    return text


def split_of(name: str) -> str:
    """The split of a prompt without one, by a hash of its name; each gets half of all names."""
    return SPLITS[hashlib.sha256(name.encode()).digest()[0] % 2]


@checked
def seeds(prompts: Sequence[Prompt], seed: int) -> list[int]:
    """A seed per prompt, by a hash of its name and `seed`, so that prompts never share noise."""
    return [
        int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:7], "big")
        for name in (check_text(prompt.name) for prompt in prompts)
    ]
