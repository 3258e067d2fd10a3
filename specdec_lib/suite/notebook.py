"""Reads a notebook's title, question, run time and parameters from its JSON; runs nothing."""

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Parameter:
    """A line of the cell tagged `parameters`: its type ("None" without one) and its default as
    written, and the comment behind it.
    """

    annotation: str
    default: str
    help: str


@dataclass(frozen=True)
class Introduction:
    """Title, bold question and run time in the first markdown cell; "" for what is missing."""

    title: str
    question: str
    run_time: str


def read_cells(notebook: Path) -> list[tuple[str, str, list[str]]]:
    """Kind, source and tags of each cell.  Raises ValueError if the file is no notebook."""
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [
            (cell["cell_type"], "".join(cell["source"]), cell.get("metadata", {}).get("tags", []))
            for cell in found
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ValueError(
            f"{notebook} is no notebook: {type(problem).__name__}: {problem}"
        ) from problem


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters by name, in order; empty without a tagged cell.

    Raises ValueError if that cell is no Python.
    """
    cells = read_cells(notebook)
    tagged = (text for kind, text, tags in cells if kind == "code" and "parameters" in tags)
    source = next(tagged, "")
    try:
        statements = ast.parse(source).body
    except SyntaxError as problem:
        raise ValueError(
            f"{notebook}: the cell tagged parameters is no Python, line {problem.lineno}:"
            f" {problem.msg}"
        ) from problem
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found = {}
    for statement in statements:
        match statement:
            case ast.AnnAssign(target=ast.Name(name), annotation=kind, value=ast.expr() as value):
                annotation = ast.unparse(kind)
            case ast.Assign(targets=[ast.Name(name)], value=value):
                annotation = "None"
            case _:
                continue
        default = ast.get_source_segment(source, value) or ""
        found[name] = Parameter(annotation, default, comments.get(statement.end_lineno, ""))
    return found


def read_introduction(notebook: Path) -> Introduction:
    """What the first markdown cell says."""
    text = next((text for kind, text, _ in read_cells(notebook) if kind == "markdown"), "")
    patterns = (
        r"^# (.+)$",
        r"^\*\*(.+)\*\*$",
        r"(\b(?:About|Half|A few|An?) [^.]*\b(?:second|minute|hour)s?\b[^.]*\.)",
    )
    found = (re.search(pattern, text, re.MULTILINE) for pattern in patterns)
    return Introduction(*(one[1] if one else "" for one in found))
