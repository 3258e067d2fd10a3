"""Where a notebook's figures go: into git's folder with the defaults alone."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_lib.core.files import REPOSITORY
from specdec_lib.show import figure_place
from specdec_lib.show.figure_place import changed_parameters, figures_place
from specdec_lib.suite.notebook import NOTEBOOKS, numbered, read_cells, read_parameters
from tests.verbs import run

CHEAP = "04b_cascade_evidence"  # the quickest notebook


@pytest.fixture
def session(monkeypatch):
    """The variables of a pretended session."""
    values = {"figures_folder": ""}
    monkeypatch.setattr(figure_place, "session_values", lambda: values)
    monkeypatch.delenv("SPECDEC_FIGURES", raising=False)
    figure_place._warn.cache_clear()
    return values


def test_defaults_go_to_git_and_others_apart_with_a_warning(session, recwarn):
    tracked = REPOSITORY / "figures"
    assert figures_place("01") == tracked
    session |= {"budget": 16, "measured": [4, 16]}  # the defaults
    assert figures_place("01") == tracked and not recwarn
    session["budget"] = 32
    own = tracked / "runs" / "own" / "01_tree_construction"
    assert figures_place("01") == figures_place("01") == own
    [said] = [str(one.message) for one in recwarn]
    assert "figures go to" in said and "for budget=32; figures_folder names" in said
    session["measured"] = [4]
    with pytest.warns(UserWarning, match=r"for budget=32, measured=\[4\];"):
        figures_place("01")


def test_a_named_folder_comes_before_the_parameters_and_the_variable_before_both(
    session, tmp_path, monkeypatch
):
    session |= {"budget": 32, "figures_folder": str(tmp_path / "mine")}
    assert figures_place("01") == tmp_path / "mine"
    monkeypatch.setenv("SPECDEC_FIGURES", str(tmp_path / "run"))
    assert figures_place("01") == tmp_path / "run"


def test_outside_a_notebook_and_in_one_of_ones_own_it_is_the_usual_folder(session):
    session["budget"] = 32
    assert figures_place("99") == REPOSITORY / "figures"  # no such notebook
    del session["figures_folder"]
    assert figures_place("01") == REPOSITORY / "figures"


@pytest.mark.parametrize("path", numbered(NOTEBOOKS), ids=lambda path: path.stem)
def test_every_notebook_declares_it_and_is_as_its_defaults_say(path):
    declared = read_parameters(path)
    assert declared["figures_folder"]["default"] == '""' and declared["figures_folder"]["help"]
    assert all(one["help"] and one["inferred_type_name"] != "None" for one in declared.values())
    assert changed_parameters(path, {}) == {}
    assert changed_parameters(path, dict.fromkeys(declared, "other")).keys() == declared.keys()


def test_papermill_alone_from_another_folder_leaves_gits_figures(tmp_path):
    """Control: with the defaults' own folder named, the figures are there."""
    tracked = sorted((REPOSITORY / "figures").glob("04b_*"))
    before = [path.stat().st_mtime_ns for path in tracked]
    clean = {name: value for name, value in os.environ.items() if name != "SPECDEC_FIGURES"}
    notebook, out = NOTEBOOKS / f"{CHEAP}.ipynb", tmp_path / "out.ipynb"
    command = [sys.executable, "-m", "papermill", str(notebook), str(out), "--no-progress-bar"]
    given = ["-p", "figures_folder", str(tmp_path / "mine")]
    subprocess.run([*command, *given], cwd=tmp_path, env=clean, check=True, capture_output=True)
    assert [path.stat().st_mtime_ns for path in tracked] == before
    made = {path.name for path in (tmp_path / "mine").iterdir()}
    assert {path.name for path in tracked} <= made
    assert "error" not in {one["output_type"] for one in outputs(out)}


def reassigned(cells: list[str], parameters: set[str]) -> set[str]:
    """The parameters to which some cells give another value."""
    trees = (ast.walk(ast.parse(cell)) for cell in cells)
    names = (node for nodes in trees for node in nodes if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)} & parameters


@pytest.mark.parametrize("path", numbered(NOTEBOOKS), ids=lambda path: path.stem)
def test_no_cell_gives_a_parameter_another_value(path):
    """Else its figures would seem to be of other parameters. Control: a cell that does."""
    code = [source for kind, source in read_cells(path) if kind == "code"][1:]
    declared = {*read_parameters(path)}
    assert reassigned(code, declared) == set()
    assert reassigned([*code, "figures_folder = 3"], declared) == {"figures_folder"}


def test_a_run_of_the_suite_has_its_folder_from_out(capsys):
    with pytest.raises(ValueError, match="--set figures_folder: the folder of a run is --out"):
        run("reproduce", "--only", "04b", "--set", "figures_folder=x")


def outputs(notebook: Path) -> list[dict]:
    cells = json.loads(notebook.read_text())["cells"]
    return [output for cell in cells for output in cell.get("outputs", ())]


def test_help_of_a_notebook_names_every_parameter(tmp_path):
    command = [sys.executable, "-m", "papermill", "--help-notebook"]
    told = subprocess.run(
        [*command, str(NOTEBOOKS / f"{CHEAP}.ipynb")], capture_output=True, text=True, check=True
    ).stdout
    assert all(f"{name}: " in told for name in read_parameters(NOTEBOOKS / f"{CHEAP}.ipynb"))
