"""Prompt sets, embedded, published and your own, and a seed per prompt."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec_lib.core.files import DATA, REMEDY
from specdec_lib.workload.hub_sets import rows
from specdec_lib.workload.jsonl import Line, field, lines
from specdec_lib.workload.schemas import SCHEMAS, mmlu_table, recognise

DOMAINS = ("code", "math", "prose")
DOCSTRING = "docstring"  # the encoder-decoder pair's
OURS = (*DOMAINS, DOCSTRING)
SPLITS = ("development", "held-out")
WHOLE = "all"  # both
PUBLISHED = tuple(SCHEMAS)
ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv")
OWN = ("text", "name", "domain", "split", "origin")


@dataclass(frozen=True)
class Prompt:
    """A prompt's text, and its origin."""

    name: str
    text: str
    domain: str
    split: str
    origin: str


def load_prompts(
    domain: str | Path = "code",
    split: str | None = None,
    limit: int | None = None,
    *,
    source: str | Path | None = None,
    folder: Path = DATA / "prompts",
) -> list[Prompt]:
    """The prompts of one set and split, in a fixed order.

    domain    "code", "math", "prose"; "docstring" for the encoder-decoder pair; "humaneval",
              "gsm8k", "mmlu", "spec-bench" through the package `datasets`; or a file, .jsonl,
              .jsonl.gz or .json: one of those sets as it was published, or prompts of your own
    split     "development", "held-out", or "all" for both; None is the held-out ones of a set, and
              all of a file
    limit     the first so many; None is all
    source    a local file that holds the published set, in place of the hub; for MMLU also
              SUBJECT_test.csv

    A prompt of your own is a line {"text": …} with `name`, `domain`, `split` and `origin` where you
    have them; else it is called after the file and its line. What comes without a split has one
    that follows from a hash of its name, half of all names each. Texts are put to the model as
    `schemas` says: HumanEval's prompt and Spec-Bench's first turn as they stand, `Question:
    …\\nAnswer:` for GSM8K, the question with lettered choices for MMLU.
    Raises ValueError if there is no such set, split or file, the limit is below 1, the set cannot
    be had, or a line is not what it should be: not JSON, a field missing, of another type or empty,
    a name that was there before. It names the line.
    """
    is_file = isinstance(domain, Path) or domain.endswith(ENDINGS)
    split = split or (WHOLE if is_file else "held-out")
    _check(domain, split, limit, source, is_file)
    found = (
        _own(folder / f"{domain}.jsonl", domain)
        if domain in OURS
        else _foreign(domain, source, is_file)
    )
    chosen = [prompt for prompt in found if split in (prompt.split, WHOLE)][:limit]
    if not chosen:
        raise ValueError(
            f'{domain!s} holds {len(found)} prompts and none is {split}; split="all" takes them all'
        )
    return chosen


def _check(
    domain: str | Path, split: str, limit: int | None, source: str | Path | None, is_file: bool
) -> None:
    if (not is_file and domain not in (*OURS, *PUBLISHED)) or split not in (*SPLITS, WHOLE):
        raise ValueError(
            f"prompt sets are {', '.join((*OURS, *PUBLISHED))}, or a file that ends in"
            f" {', '.join(ENDINGS)}, and splits"
            f" {', '.join((*SPLITS, WHOLE))}; got {str(domain)!r} and {split!r}"
        )
    if limit is not None and limit < 1:
        raise ValueError(f"a limit is at least 1 or None for all, got {limit}")
    if source is not None and domain not in PUBLISHED:
        raise ValueError(
            f"a source is a file of {', '.join(PUBLISHED)}, got one for {domain!s}; a file of your"
            " own is given in place of the set's name"
        )


def _own(path: Path, domain: str) -> list[Prompt]:
    """A set of ours: every field is there, and the domain is the file's."""
    if not path.is_file():
        raise ValueError(f"prompt file {path} is missing; {REMEDY}")
    try:
        found = list(
            _distinct(
                (where, Prompt(*(field(where, line, name) for name in Prompt.__annotations__)))
                for where, line in lines(path)
            )
        )
    except ValueError as error:
        raise ValueError(f"prompt file {path} is damaged ({error}); {REMEDY}") from error
    if not all(prompt.domain == domain and prompt.split in SPLITS for prompt in found):
        raise ValueError(
            f"prompt file {path} is damaged (it holds {len(found)} prompts, or one of another set);"
            f" {REMEDY}"
        )
    return found


def _foreign(domain: str | Path, source: str | Path | None, is_file: bool) -> list[Prompt]:
    """The prompts of a published set, from the hub or a file, or of a file of your own."""
    path = Path(domain if is_file else source) if is_file or source is not None else None
    name = None if is_file else str(domain)
    if path is None:
        given = rows(name)
    else:
        given = mmlu_table(path) if path.suffix == ".csv" else lines(path)
    return list(_distinct(_made(given, name, path)))


def _made(
    given: Iterable[tuple[str, Line]], name: str | None, path: Path | None
) -> Iterator[tuple[str, Prompt]]:
    """A prompt of each line, with its place.

    name    of the published set; None recognises it by the fields of a file's first line
    """
    for number, (where, line) in enumerate(given):
        if path is not None and number == 0:
            name = name or recognise(line) or ""
        if name:
            schema = SCHEMAS[name]
            called, category = schema.name(where, line, number), schema.category(where, line)
            yield (
                where,
                Prompt(
                    called,
                    schema.text(where, line),
                    f"{name}/{category}".rstrip("/"),
                    split_of(called),
                    where,
                ),
            )
        else:
            yield where, _own_prompt(where, line, f"{path.name}/{number}", path.name)


def _own_prompt(where: str, line: Line, called: str, domain: str) -> Prompt:
    """A prompt from a line of your own."""
    if unknown := set(line) - set(OWN):
        raise ValueError(
            f"{where}: a prompt of your own has the field 'text' and, where wanted,"
            f" {', '.join(map(repr, OWN[1:]))}; got {sorted(unknown)}"
            f" (a published set has the fields of {', '.join(PUBLISHED)})"
        )
    usual = {"name": called, "domain": domain, "origin": where}
    fields = usual | {name: field(where, line, name) for name in OWN if name in line}
    prompt = Prompt(
        fields["name"],
        field(where, line, "text"),
        fields["domain"],
        fields.get("split") or split_of(fields["name"]),
        fields["origin"],
    )
    if prompt.split not in SPLITS:
        raise ValueError(f"{where}: a split is one of {', '.join(SPLITS)}, got {prompt.split!r}")
    return prompt


def _distinct(given: Iterable[tuple[str, Prompt]]) -> Iterator[Prompt]:
    """The prompts.  Raises ValueError for a repeated name, because seeds follow from names."""
    first: dict[str, str] = {}
    for where, prompt in given:
        if prompt.name in first:
            raise ValueError(
                f"{where}: the name {prompt.name!r} was there before"
                f" ({first[prompt.name].rpartition(', ')[2]}); names differ"
            )
        first[prompt.name] = where
        yield prompt


def split_of(name: str) -> str:
    """The split of a prompt without one, by a hash of its name; each gets half of all names."""
    return SPLITS[hashlib.sha256(name.encode()).digest()[0] % 2]


def seeds(prompts: Sequence[Prompt], seed: int) -> list[int]:
    """A seed per prompt, by a hash of its name and `seed`, so that prompts never share noise."""
    return [
        int.from_bytes(hashlib.sha256(f"{seed}/{prompt.name}".encode()).digest()[:7], "big")
        for prompt in prompts
    ]
