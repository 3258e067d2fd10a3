"""Reads JSON files of one object per line; every error names the file and the line."""

import functools
import gzip
import reprlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import StringConstraints, TypeAdapter, ValidationError

from specdec_lib.core.files import parse_json

Text = Annotated[str, StringConstraints(pattern=r"\S")]
"""A text that is not empty."""
Kind = TypeVar("Kind")
ADAPTER = functools.cache(TypeAdapter)


def lines(path: Path) -> Iterator[tuple[str, object]]:
    """What stands in every line of a .jsonl file, or in a .json file's list, maybe packed as .gz,
    and its place for an error message, such as "questions.jsonl, line 3".

    Raises ValueError if there is no such file or nothing in it, it is not UTF-8, or it is not JSON.
    """
    text = _whole(path)
    if path.name.removesuffix(".gz").endswith(".json"):
        found = _parsed(text, f"{path}: a file of one object per line is called .jsonl")
        if not isinstance(found, list) or not found:
            raise ValueError(f"{path}: a .json file holds a list of objects, got {text[:40]!r}")
        for number, one in enumerate(found, 1):
            yield f"{path}, entry {number}", one
        return
    for number, line in enumerate(text.rstrip().split("\n"), 1):
        where = f"{path}, line {number}"
        yield where, _parsed(line, where)


def checked_line(where: str, line: object, kind: type[Kind]) -> Kind:
    """A line as a dataclass; raises ValueError naming the place and each wrong field."""
    try:
        return ADAPTER(kind).validate_python(line)
    except ValidationError as error:
        raise ValueError(f"{where}: {wrong_fields(error, 'the line')}") from error


def wrong_fields(error: ValidationError, whole: str) -> str:
    """Each wrong field, or the whole, with what is wrong and what was got."""
    found = [(".".join(map(str, one["loc"])) or whole, one) for one in error.errors()]
    return "; ".join(f"{at}: {one['msg']}, got {reprlib.repr(one['input'])}" for at, one in found)


def _parsed(text: str, where: str) -> object:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{where}: it is not JSON ({error})") from error


def _whole(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {number}: it is not UTF-8 ({error.reason}); save it as UTF-8"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read ({error})") from error
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return text
