"""Reads JSON files of one object per line; every error names the file and the line."""

import functools
import reprlib
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
    """What stands in every line of a file, with its place for an error message; raises ValueError
    if there is no such file, it is not UTF-8, or a line is not JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"there is no file {path}, or it is not UTF-8 ({error})") from error
    for number, line in enumerate(text.rstrip().split("\n"), 1):
        where = f"{path}, line {number}"
        try:
            yield where, parse_json(line)
        except ValueError as error:
            raise ValueError(f"{where}: it is not JSON ({error})") from error


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
