"""Pieces come from archives of packages with permissive licences alone, and requests are about
them.
"""

import gzip
import io
import json
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from specdec_lib.suite.distil import passages
from specdec_lib.suite.distil.passages import Piece, package_pieces, read_pieces, write_pieces
from specdec_lib.suite.distil.places import passages_file
from specdec_lib.suite.distil.requests import KINDS, LANGUAGES, OPENINGS, Requests
from specdec_lib.suite.distil.writing import ABOUT_OTHERS, KEPT_OUT, SHORT, given_pieces, planned
from tests.verbs import run

PROSE = "\n\n".join(f"Paragraph {number} says something. " * 12 for number in range(40))
CODE = '''
def mean(numbers):
    """Return the arithmetic mean of a list of numbers, which is not empty."""
    total = sum(numbers)
    return total / len(numbers)


class Long:
    """A class."""

''' + "\n".join(f"    value_{number} = {number} * 1_000_000" for number in range(60))
STRINGS = {"The file could not be found at the place you named.\x04": ["x"]} | {
    f"The file number {number} could not be read from the disk.": [
        f"Die Datei mit der Nummer {number} konnte nicht gelesen werden."
    ]
    for number in range(5)
}


def archive(folder: Path, name: str, licence: str, wheel: bool = False) -> Path:
    """A package's archive with documentation, code, tests and translations."""
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nLicense: {licence}\n\n"
    files = {
        f"{name}.dist-info/METADATA" if wheel else f"{name}-1.0/PKG-INFO": about,
        f"{name}-1.0/docs/guide.rst": f".. toctree::\n   :maxdepth: 2\n\n{PROSE}",
        f"{name}-1.0/docs/changelog.rst": PROSE.replace("Paragraph", "Change"),
        f"{name}-1.0/src/{name}/core.py": CODE,
        f"{name}-1.0/tests/test_core.py": CODE.replace("mean", "tested"),
        f"{name}-1.0/_vendor/other.py": CODE.replace("mean", "copied"),
        f"{name}-1.0/locale/de_DE/LC_MESSAGES/{name}.json": json.dumps(STRINGS),
        f"{name}-1.0/broken.py": "def (",
    }
    if wheel:
        path = folder / f"{name}-1.0.whl"
        with zipfile.ZipFile(path, "w") as packed:
            for file, text in files.items():
                packed.writestr(file, text)
        return path
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for file, text in files.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(text.encode())
            packed.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("wheel", [False, True])
def test_pieces_are_prose_code_functions_and_translated_strings(tmp_path, wheel):
    found = package_pieces(archive(tmp_path, "sample", "MIT", wheel))
    assert {one.kind for one in found} == {"prose", "code", "function", "German"}
    assert {one.package for one in found} == {"sample 1.0"}
    for one in found:
        assert "tested" not in one.text and "copied" not in one.text and "Change" not in one.text
        assert "toctree" not in one.text
        if one.kind in ("prose", "code"):
            assert passages.CHARACTERS[0] <= len(one.text) <= passages.CHARACTERS[1]
    (function,) = [one for one in found if one.kind == "function"]
    assert function.text.startswith("def mean(numbers):") and function.text.endswith('"""')
    german = [one for one in found if one.kind == "German"]
    assert len(german) == 5 and all(one.other.startswith("Die Datei") for one in german)
    assert found == package_pieces(archive(tmp_path, "sample", "MIT", wheel))


@pytest.mark.parametrize(
    ("name", "licence", "taken"),
    [
        ("sample", "BSD-3-Clause", True),
        ("sample", "Apache License 2.0", True),
        ("sample", "GPL-3.0-or-later", False),
        ("sample", "BSD-3-Clause AND LGPL-2.1", False),
        ("sample", "", False),
        ("numpy", "BSD-3-Clause", False),
    ],
)
def test_other_licences_and_the_prompts_packages_are_left_out(tmp_path, name, licence, taken):
    assert bool(package_pieces(archive(tmp_path, name, licence))) == taken


def test_pieces_come_back_from_their_file(tmp_path):
    pieces = package_pieces(archive(tmp_path, "sample", "MIT"))
    path = tmp_path / "pieces.jsonl.gz"
    write_pieces(path, pieces)
    assert read_pieces(path) == pieces
    path.write_bytes(gzip.compress(b'{"kind": "prose"}'))
    with pytest.raises(ValueError, match="is damaged or no file of passages"):
        read_pieces(path)
    with pytest.raises(ValueError, match="`specdec distil passages` writes them"):
        read_pieces(tmp_path / "none.gz")


def test_the_command_writes_the_pieces_of_a_folder(tmp_path, capsys):
    out = tmp_path / "out" / "pieces.jsonl.gz"
    words = ["distil", "passages", "--archives", str(tmp_path), "--passages", str(out)]
    with pytest.raises(ValueError, match=r"has no archive \.tar\.gz, \.whl or \.zip"):
        run(*words)
    archive(tmp_path, "sample", "MIT")
    archive(tmp_path, "other", "GPL-3.0")
    run(*words)
    assert "pieces of 1 packages" in capsys.readouterr().out
    assert {one.package for one in read_pieces(out)} == {"sample 1.0"}


@pytest.mark.parametrize("name", ["a.tar.gz", "a.whl"])
def test_a_damaged_archive_is_named(name, tmp_path):
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=f"{name} is damaged or no archive: "):
        package_pieces(tmp_path / name)


def pieces(package: str = "sample 1.0") -> list[Piece]:
    made = [
        Piece("prose", f"Passage {number}. " * 80, "", package, "MIT", "") for number in range(9)
    ]
    made += [Piece("code", "x = 1\n" * 200, "", package, "MIT", "")]
    made += [Piece("function", 'def f():\n    """Do."""', "", package, "MIT", "")]
    return [*made, Piece("German", "A house.", "Ein Haus.", package, "MIT", "")]


def test_every_kind_of_request_is_drawn_and_is_about_its_text():
    weights = SHORT | ABOUT_OTHERS
    requests = Requests(pieces(), dict(weights), ["An article of mine."], seed=0)
    found = [requests.draw() for _ in range(3000)]
    counts = Counter(one.kind for one in found)
    assert set(counts) == set(weights) == set(KINDS)
    for one in found:
        if one.kind in ("passage", "passages"):
            assert "Passage " in one.text or "An article of mine." in one.text
        if one.kind == "file":
            assert "x = 1" in one.text and one.added == 0
        if one.added == 0:
            assert one.source
        if one.kind in OPENINGS and one.added:
            assert one.text in OPENINGS[one.kind]
    translated = [one.text for one in found if one.kind == "translation" and not one.added]
    assert any("Ein Haus." in one for one in translated)
    assert any("A house." in one for one in translated)
    assert set(LANGUAGES.values()) >= {"German"}


def test_short_kinds_alone_can_do_without_passages(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    usual = passages_file()
    assert given_pieces(usual, "short") == []
    assert "all requests are the target's own" in capsys.readouterr().out
    requests = planned([], "short", 0)
    assert {requests.draw().source for _ in range(300)} == {""}
    for path, kinds in ((usual, "long"), (usual, "kept-out"), (tmp_path / "mine.gz", "short")):
        with pytest.raises(ValueError, match="there are no passages in"):
            given_pieces(path, kinds)
    write_pieces(usual, pieces())
    assert given_pieces(usual, "short") == pieces()


def test_packages_that_are_judged_on_are_never_taught():
    both = [*pieces(), *(one for name in KEPT_OUT for one in pieces(f"{name} 2.0"))]
    for kinds in ("short", "long"):
        drawn = [planned(both, kinds, seed).draw() for seed in range(300)]
        assert {one.source for one in drawn} <= {"", "sample 1.0"}
        assert "sample 1.0" in {one.source for one in drawn}
    judged = {planned(both, "kept-out", seed).draw().source for seed in range(300)}
    assert not any("sample" in one for one in judged)
    assert all(any(name in one for one in judged) for name in KEPT_OUT)
