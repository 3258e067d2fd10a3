"""Kept rows stay with the code that made them."""

import linecache

import pytest

from specdec_lib.core.verify import look_up
from specdec_lib.measure import fingerprints

pytestmark = pytest.mark.usefixtures("unchecked")
TREE = {
    "__init__.py": "",
    "rows/__init__.py": "",
    "rows/late.py": "raise RuntimeError('never run')",
}


@pytest.fixture
def digest_with(tmp_path, monkeypatch):
    """The fingerprint of a thing with a made-up library, these files changed."""

    def digest(changed, thing=look_up):
        library = tmp_path / str(len(list(tmp_path.iterdir()))) / "specdec_lib"
        for path, text in (TREE | changed).items():
            (library / path).parent.mkdir(parents=True, exist_ok=True)
            (library / path).write_text(text)
        monkeypatch.setattr(fingerprints, "LIBRARY", library)
        fingerprints.library.cache_clear()
        return fingerprints.fingerprint(thing)

    yield digest
    fingerprints.library.cache_clear()


def test_a_change_of_the_library_changes_the_digest(digest_with):
    changed = [digest_with({path: text + "\n# changed"}) for path, text in TREE.items()]
    assert len({*changed, digest_with({"rows/new.py": ""}), digest_with({})}) == len(TREE) + 2
    assert digest_with({}) == digest_with({})


def outside():
    """A function that is not of the library."""


def test_code_from_outside_counts_with_its_source(digest_with, monkeypatch):
    name, made, seen = "/no/such/folder/cell.py", {"__name__": "cells"}, {digest_with({}, outside)}
    for text in ("def cell():\n    return draw()\n", "def cell():\n    return 1\n"):
        lines = (len(text), None, text.splitlines(True), name)
        monkeypatch.setitem(linecache.cache, name, lines)
        exec(compile(text, name, "exec"), made)  # a notebook's cell
        seen.add(digest_with({}, made["cell"]))
    assert len(seen) == 3
