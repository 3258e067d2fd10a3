"""The skeleton of every notebook, held over a glob; what a notebook claims, its own checks hold."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from specdec_lib.suite.notebook import NUMBERED

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
LARGEST_BYTES = 1_000_000  # with images; without indentation, which depends on who stored the file
LONGEST_CELL_LINES = 15
MOST_PARAMETERS = 17  # a line each; the last names the folder of figures
LONGEST_LESSON = 12  # lines of a function that teaches
MOST_CELLS = 40
MOST_WORDS = 1500  # of prose
WIDGET = "application/vnd.jupyter.widget-view+json"
BANNED = {ast.FunctionDef: "def", ast.AsyncFunctionDef: "def", ast.ClassDef: "class"}


def source(cell: dict) -> str:
    return "".join(cell["source"])


def problems(notebook: dict) -> list[str]:
    """Everything that a notebook's JSON does against the skeleton."""
    cells = notebook["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code" and source(cell).strip()]
    prose = "\n".join(source(cell) for cell in cells if cell["cell_type"] == "markdown")
    headings = {"## Checks", "## Where next"} - set(prose.splitlines())
    found = [f"there is no heading {heading!r}" for heading in sorted(headings)]
    if not cells or cells[0]["cell_type"] != "markdown" or not source(cells[0]).startswith("# "):
        found.append("the first cell is not a title")
    if len(cells) < 2 or "parameters" not in cells[1]["metadata"].get("tags", []):
        found.append("the second cell is not tagged parameters")
    else:
        found += parameter_problems(source(cells[1]))
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("the kernelspec is not python3")
    if "widgets" in notebook["metadata"]:
        found.append("widget state is stored")
    for cell in code:
        first = source(cell).splitlines()[0]
        tags = cell["metadata"].get("tags", [])
        most = MOST_PARAMETERS if "parameters" in tags else LONGEST_CELL_LINES
        taught = "learn" in tags
        found += [f"{problem}: {first!r}" for problem in code_problems(source(cell), most, taught)]
        if taught and "def " not in source(cell):
            found.append(f"a cell tagged learn defines nothing: {first!r}")
        if cell["execution_count"] is None:
            found.append(f"a cell was never run: {first!r}")
        if any(WIDGET in output.get("data", {}) for output in cell["outputs"]):
            found.append("a widget view is stored, which nothing can show")
    if not any(cell["outputs"] for cell in code):
        found.append("no outputs are stored")
    return found


def code_problems(text: str, most: int, taught: bool = False) -> Iterator[str]:
    """`taught`: the cell shows an algorithm, as functions of few lines."""
    lines = text.splitlines()
    if len(lines) > most:
        yield f"a cell has {len(lines)} lines"
    if "widgets." in lines[-1] and lines[-1].rstrip().endswith(";"):
        yield "an explorer is made and not shown"
    if any(re.match(r"\s*([%!?]|[\w.]+\?+$)", line) for line in lines):
        yield "there is magic or shell"
        return
    for node in ast.walk(ast.parse(text)):
        if type(node) is ast.FunctionDef and taught:
            if node.end_lineno - node.lineno + 1 > LONGEST_LESSON:
                yield f"{node.name} has more than {LONGEST_LESSON} lines"
        elif type(node) in BANNED:
            yield f"there is a {BANNED[type(node)]}"


def parameter_problems(text: str) -> Iterator[str]:
    """An annotated literal and a comment per parameter, each of which papermill can read."""
    lines = text.splitlines()
    for statement in ast.parse(text).body:
        first = lines[statement.lineno - 1]
        if not isinstance(statement, ast.AnnAssign) or statement.value is None:
            yield f"a parameter has no annotation: {first!r}"
            continue
        try:
            ast.literal_eval(statement.value)
        except ValueError:
            yield f"a parameter is not a literal: {first!r}"
        if "#" not in lines[statement.end_lineno - 1]:
            yield f"a parameter has no comment with its unit: {first!r}"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_notebook_keeps_to_the_skeleton(path):
    assert problems(json.loads(path.read_text(encoding="utf-8"))) == []
    assert NUMBERED.fullmatch(path.stem)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = [source(cell) for cell in cells if cell["cell_type"] == "markdown"]
    assert len(cells) <= MOST_CELLS
    assert len(" ".join(prose).split()) <= MOST_WORDS
    content = json.dumps(json.loads(path.read_text(encoding="utf-8")), ensure_ascii=False)
    assert len(content.encode()) <= LARGEST_BYTES


def good() -> dict:
    """The smallest notebook without a problem."""

    def cell(kind: str, text: str, **more: object) -> dict:
        return {"cell_type": kind, "metadata": {}, "source": text, **more}

    output = {"output_type": "stream", "name": "stdout", "text": "2"}
    done = {"execution_count": 1, "outputs": [output]}
    cells = [
        cell("markdown", "# Title"),
        cell("code", "budget: int = 16  # nodes without the root", **done),
        cell("code", "print(budget)", **done),
        cell("markdown", "## Checks"),
        cell("markdown", "## Where next\n\nOn."),
        cell("code", "def f():\n    return 1", **done),
    ]
    cells[1]["metadata"]["tags"] = ["parameters"]
    cells[5]["metadata"]["tags"] = ["learn"]
    return {"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}}


@pytest.mark.parametrize(
    "cell, text, complaint",
    [
        (0, "Title", "the first cell is not a title"),
        (1, "budget = 16  # nodes", "a parameter has no annotation"),
        (1, "budget: int = 2 * size  # nodes", "a parameter is not a literal"),
        (1, "budget: int = 16", "a parameter has no comment"),
        (2, "def f():\n    return 1", "there is a def"),
        (2, "class F:\n    x = 1", "there is a class"),
        (2, "%timeit 1", "there is magic or shell"),
        (2, "x = 1\n!ls", "there is magic or shell"),
        (2, "x = 1\n" * 16, "a cell has 16 lines"),
        (2, "widgets.sliders(draw, choices, start={});", "an explorer is made and not shown"),
        (3, "## Cheques", "there is no heading '## Checks'"),
        (4, "## The end", "there is no heading '## Where next'"),
        (5, "x = 1", "a cell tagged learn defines nothing"),
        (5, "def f():\n" + "    x = 1\n" * 12, "f has more than 12 lines"),
        (5, "class F:\n    x = 'def '", "there is a class"),
    ],
)
def test_the_checker_finds_a_bad_cell(cell, text, complaint):
    bad = good()
    assert problems(bad) == []
    bad["cells"][cell]["source"] = text
    assert [complaint in problem for problem in problems(bad)] == [True]
