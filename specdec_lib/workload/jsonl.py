"""Reads JSONL files; every error names the file and the line."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

Line = Mapping[str, object]
KINDS = {
    **{str: "a text", int: "a whole number", float: "a number"},
    **{bool: "true or false", list: "a list", dict: "an object"},
}


def lines(path: Path) -> Iterator[tuple[str, Line]]:
    """Every line of a .jsonl file as an object, and its place for an error message, such as
    "questions.jsonl, line 3".

    A .jsonl.gz file is unpacked; a .json file holds a list of the same objects. A byte order mark
    and empty lines at the end are ignored.
    Raises ValueError if there is no such file or nothing in it, it is not UTF-8, or a line is empty
    or not a JSON object.
    """
    text = whole(path)
    if path.name.removesuffix(".gz").endswith(".json"):
        yield from _listed(path, text)
        return
    for number, line in enumerate(text.rstrip().split("\n"), 1):
        where = f"{path}, line {number}"
        if not line.strip():
            raise ValueError(
                f"{where}: it is empty, and more lines follow; a line holds one JSON object"
            )
        try:
            found = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{where}: it is not JSON ({error})") from error
        yield where, checked_object(where, found)


def whole(path: Path) -> str:
    """A file's text, without a byte order mark.

    Raises ValueError if it is missing, empty, damaged or not UTF-8.
    """
    if not path.is_file():
        raise ValueError(
            f"there is no file {path}" + (", only a folder of that name" if path.is_dir() else "")
        )
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {number}: it is not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read ({error})") from error
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return text


def _listed(path: Path, text: str) -> Iterator[tuple[str, Line]]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(
            f"{path} is not JSON ({error}); a file of one object per line is called .jsonl"
        ) from error
    if not isinstance(found, list) or not found:
        raise ValueError(
            f"{path} holds {named(found)}; a .json file holds a list of objects, and a .jsonl file"
            " one object per line"
        )
    for number, one in enumerate(found, 1):
        yield f"{path}, entry {number}", checked_object(f"{path}, entry {number}", one)


def checked_object(where: str, found: object) -> Line:
    """The object itself.  Raises ValueError for anything else."""
    if not isinstance(found, dict):
        raise ValueError(f"{where}: a line is a JSON object, got {named(found)}")
    return found


def field(
    where: str, line: Line, name: str, kind: type | tuple[type, ...] = str, *, filled: bool = True
) -> object:
    """The value of a field.

    Raises ValueError if it is missing, of another type or, with `filled`, an empty text.
    """
    if name not in line:
        raise ValueError(
            f"{where}: the field {name!r} is missing; there are"
            f" {', '.join(map(repr, line)) or 'none'}"
        )
    value, kinds = line[name], kind if isinstance(kind, tuple) else (kind,)
    fitting = isinstance(value, kinds) or (float in kinds and isinstance(value, int))
    if not fitting or (isinstance(value, bool) and bool not in kinds):
        raise ValueError(
            f"{where}: {name!r} is {' or '.join(KINDS[one] for one in kinds)}, got {named(value)}"
        )
    if filled and isinstance(value, str) and not value.strip():
        raise ValueError(f"{where}: {name!r} is an empty text")
    return value


def entries(
    where: str,
    line: Line,
    name: str,
    kind: type | tuple[type, ...],
    *,
    least: int = 1,
    filled: bool = True,
) -> list:
    """The entries of a field that is a list.

    Raises ValueError as `field` does, naming the entry, or if there are fewer than `least`.
    """
    found = field(where, line, name, list)
    if len(found) < least:
        raise ValueError(
            f"{where}: {name!r} has at least {least} {'entry' if least == 1 else 'entries'}, got"
            f" {len(found)}"
        )
    return [
        field(where, {f"{name}[{place}]": one}, f"{name}[{place}]", kind, filled=filled)
        for place, one in enumerate(found)
    ]


def named(value: object) -> str:
    """A value for an error message: its kind, and the value itself if it is short."""
    if value is None:
        return "null"
    kind = KINDS.get(type(value), type(value).__name__)
    shown = json.dumps(value, default=str, ensure_ascii=False)
    return f"{kind} ({shown})" if len(shown) <= 60 else kind
