"""Kept rows stay with the code that made them: all that imports lead to, and nothing else."""

import inspect
import linecache
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Reviewed, from_matrix
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.sweep import grid, identity, stacks
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.jobs import Job
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.katz.model import Katz
from specdec_lib.show import figures as figures_drawn

pytestmark = pytest.mark.usefixtures("unchecked")
OURS = (look_up, reject, decode, Chance, repetition, grid.generation_row)
MUST_HAVES = (*OURS, StagedTree, Reviewed, FastModel, Katz)
TREE = {
    "__init__.py": "",
    "rows/__init__.py": "from specdec_lib.rows.table import columns",
    "rows/made.py": "import specdec_lib.direct\n\ndef row():\n    from specdec_lib.late import one",
    "rows/table.py": "columns = 3",
    "direct.py": "from specdec_lib.deep.inside import module, thing\nfrom . import beside",
    "late.py": "import numpy, specdec_lib.last as last",
    "last.py": "if 0:\n    from specdec_lib import rows",  # round in a circle
    "beside.py": "from .deep import other",
    "deep/__init__.py": "from ..hidden import *",
    "deep/inside/__init__.py": "thing = 1",
    "deep/inside/module.py": "raise RuntimeError('this is read and never run')",
    "deep/other.py": "from .inside.sibling import x",
    "deep/inside/sibling.py": "",
    "hidden.py": "",
    "show/__init__.py": "",
    "show/figures/__init__.py": "from specdec_lib.show.figures.drawn import draw",
    "show/figures/drawn.py": "import plotly\nfrom specdec_lib.rows.made import row",
    "deep/inside/unused.py": "from specdec_lib.deep import other",
}
NOWHERE = ("deep/inside/unused.py",)  # no file imports it
UNREACHED = {"show/__init__.py", "show/figures/__init__.py", "show/figures/drawn.py", *NOWHERE}


def forget():
    identity._library.cache_clear()
    identity.reachable_files.cache_clear()


@pytest.fixture
def digest_with(tmp_path, monkeypatch):
    """What `code` says of a made-up library with these files changed; rows.made makes its rows."""

    def digest(changed):
        library = tmp_path / str(len(list(tmp_path.iterdir()))) / "specdec_lib"
        for path, text in (TREE | changed).items():
            (library / path).parent.mkdir(parents=True, exist_ok=True)
            (library / path).write_text(text)
        monkeypatch.setattr(identity, "LIBRARY", library)
        forget()
        return identity.code(maker("specdec_lib.rows.made"))

    yield digest
    forget()


def maker(module):
    def row():
        raise AssertionError("a digest calls nothing")

    row.__module__, row.__qualname__ = module, "row"
    return row


@pytest.mark.parametrize("path", sorted(TREE))
def test_only_a_change_of_what_imports_lead_to_changes_the_digest(path, digest_with):
    changed = digest_with({path: TREE[path] + "\n# changed"}) != digest_with({})
    assert changed == (path not in UNREACHED)


def test_a_module_that_moves_is_followed(digest_with):
    """Into a package, with its imports rewritten: it counts there as it did before."""
    moved = {"late.py": "from specdec_lib.core.rooms import last", "core/__init__.py": ""}
    moved["core/rooms/__init__.py"] = ""
    moved["core/rooms/last.py"] = "one = 1"
    places = [{}, {"core/rooms/last.py": "one = 2"}, {"core/__init__.py": "two = 2"}]
    assert len({digest_with(moved | changed) for changed in places}) == 3


def test_what_is_given_counts_with_what_its_own_module_imports(digest_with):
    draft = maker("specdec_lib.show.figures.drawn")
    seen = []
    for path in ("", "show/figures/drawn.py", "show/figures/__init__.py", "hidden.py", *NOWHERE):
        digest_with({path: TREE[path] + "\n# changed"} if path else {})
        seen.append(identity.fingerprint(draft))
    assert len(set(seen[:4])) == 4 and seen[4] == seen[0]


def outside():
    """A function that is not of the library."""


def test_code_from_outside_counts_with_its_source_and_the_whole_library(digest_with, monkeypatch):
    text, name = "def cell():\n    return draw()\n", "/no/such/folder/cell.py"
    made = {"__name__": "cells"}
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    exec(compile(text, name, "exec"), made)  # a notebook's cell
    for thing in (outside, made["cell"]):
        seen = set()
        for path in ("direct.py", *sorted(UNREACHED)):
            digest_with({path: TREE[path] + "\n# changed"})
            seen.add(identity.fingerprint(thing))
        assert len(seen) == 1 + len(UNREACHED)
    assert identity.fingerprint(outside) != identity.fingerprint(made["cell"])


def test_a_maker_from_elsewhere_is_refused(digest_with):
    for module in ("json", "specdec_lib.no_such", "specdec_lib_too.rows.made"):
        with pytest.raises(ValueError, match=f"{module} is none of them"):
            digest_with({})
            identity.code(maker(module))


def path_of(thing):
    file = Path(inspect.getsourcefile(inspect.getmodule(thing))).resolve()
    return file.relative_to(identity.LIBRARY).as_posix()


def containing(pattern):
    """The library's files with a line like this."""
    return {path for path, text in identity._library().items() if re.search(pattern, text, re.M)}


@pytest.fixture
def fingerprint_with(ladder, monkeypatch):
    """The fingerprint of a real sweep, as it would be with these files of the library changed."""
    real = identity._library()
    cascade = from_matrix([ladder.draft, ladder.max_gram], ((2, 4), (0, 4)))
    job = Job([*stacks.staged_settings(ladder), Setting("cascade", cascade)], ladder)

    def fingerprint(*paths):
        changed = real | {path: real[path] + "\n# changed" for path in paths}
        monkeypatch.setattr(identity, "_library", lambda: changed)
        return job.fingerprint()

    return fingerprint


def test_a_real_sweep_follows_from_rules_loop_drafts_and_models_but_no_figure(fingerprint_with):
    unchanged = fingerprint_with()
    for thing in MUST_HAVES:
        assert fingerprint_with(path_of(thing)) != unchanged, f"{path_of(thing)} does not count"
    figures = containing("^(import|from) plotly")
    assert path_of(figures_drawn.tree) in figures and fingerprint_with(*figures) == unchanged
    tables = [f"measure/sweep/{name}.py" for name in ("ratios", "traffic", "cluster")]
    assert fingerprint_with("measure/intervals.py", *tables) == unchanged


def test_nothing_reached_imports_by_a_name_that_it_computes():
    """They could not be read off a file; the control is `Recipe`, which does so and is not
    reached.
    """
    makers = grid.generation_row, StagedTree, Reviewed, FastModel
    paths = identity.reachable_files(frozenset(thing.__module__ for thing in makers))
    hidden = containing(r"(import_module|__import__)\(")
    assert path_of(Recipe) in hidden and not hidden & set(paths)


def test_another_process_finds_the_same(tmp_path):
    asked = f"import torch; torch.set_num_threads({torch.get_num_threads()})\n"
    asked += "from specdec_lib.measure.sweep import grid, identity\n"
    asked += "print(identity.code(grid.generation_row))"
    place = {"PYTHONPATH": str(identity.LIBRARY.parent), "PYTHONHASHSEED": "7"}
    forget()
    command = [sys.executable, "-c", asked]
    told = subprocess.run(command, cwd=tmp_path, env=place, stdout=subprocess.PIPE, check=True)
    assert told.stdout.decode().strip() == identity.code(grid.generation_row)
