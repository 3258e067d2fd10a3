"""A damaged file of Numba's cache is deleted, and its function compiled again."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numba
import pytest

from specdec_lib.models.fast import tiles
from specdec_lib.models.fast.tiles import compiled

DAMAGES = {
    "cut in half": lambda whole: whole[: len(whole) // 2],
    "emptied": lambda whole: b"",
    "without its last byte": lambda whole: whole[:-1],
    "with a bit flipped": lambda whole: whole[:99] + bytes([whole[99] ^ 1]) + whole[100:],
    "lengthened": lambda whole: whole + b"x",
}


def one_more(number: int) -> int:
    return number + 1


def hits(function: Callable) -> int:
    """How often a call was answered from the files, by a dispatcher that has just been made."""
    assert function(3) == 4
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Path]]:
    """The files of a cache in a folder of its own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return lambda: sorted(path for path in tmp_path.rglob("*.nb*") if path.is_file())


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_function_whose_stored_code_is_damaged_is_compiled_again(files, damage):
    assert hits(compiled()(one_more)) == 0
    whole = {path: path.read_bytes() for path in files()}
    assert {path.suffix for path in whole} == {".nbi", ".nbc"}
    assert hits(compiled()(one_more)) == 1  # the control: whole files are read
    for path in whole:
        path.write_bytes(damage(path.read_bytes()))
        assert hits(compiled()(one_more)) == 0
        assert hits(compiled()(one_more)) == 1  # stored again
    assert files() == [*whole]


def test_code_that_was_compiled_from_another_version_is_compiled_again(files, monkeypatch):
    """Of the loops, which lie in another file than the functions that they are compiled into."""
    assert [hits(compiled()(one_more)) for _ in range(2)] == [0, 1]
    monkeypatch.setattr(tiles, "DIGEST", "of another version")
    assert [hits(compiled()(one_more)) for _ in range(2)] == [0, 1]
    assert len(files()) == 2, "what is stale does not pile up"


class Pair(NamedTuple):
    first: int
    second: int


class Two(NamedTuple):
    first: int
    second: int


def sum_of(pair: Pair) -> int:
    return pair.first + pair.second


def test_code_for_a_class_that_is_no_longer_there_is_compiled_again(files, monkeypatch):
    def summed(kind: type) -> int:
        function = compiled()(sum_of)
        assert function(kind(1, 3)) == 4
        return sum(function.stats.cache_hits.values())

    assert [summed(Pair) for _ in range(2)] == [0, 1]
    monkeypatch.delattr(sys.modules[__name__], "Pair")
    assert [summed(Two) for _ in range(2)] == [0, 1]


def test_numba_itself_fails_at_every_start_so_this_is_worth_a_test(files):
    assert hits(numba.njit(cache=True)(one_more)) == 0
    for path in files():
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        for _ in range(2):
            with pytest.raises((pickle.UnpicklingError, EOFError)):
                numba.njit(cache=True)(one_more)(3)
        path.write_bytes(whole)


def test_a_later_start_meets_shortened_files_and_works(tmp_path):
    code = (
        "from specdec_lib.models.fast.choices import noise_bits as bits; print(bits(7, 5));"
        " print(*bits.stats.cache_hits.values())"
    )
    options = {"env": os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, "text": True, "check": True}

    def start() -> list[str]:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, **options)
        return done.stdout.splitlines()

    bits, _ = start()
    stored = [path for path in tmp_path.rglob("*.nb*") if path.is_file()]
    assert len(stored) >= 2
    for path in stored:
        path.write_bytes(path.read_bytes()[:100])
    assert start() == [bits, ""]
    assert start() == [bits, "1"]
