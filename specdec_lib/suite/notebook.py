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
    """A line of the cell tagged `parameters`.

    annotation    its type as written, "None" where there is none
    default       the literal as written
    help          the comment behind it
    """

    annotation: str
    default: str
    help: str


@dataclass(frozen=True)
class Introduction:
    """A notebook's title, its question in bold, and the sentence that says how long it runs.

    All are from its first markdown cell; "" for what is missing.
    """

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
    tagged = (
        text for kind, text, tags in read_cells(notebook) if kind == "code" and "parameters" in tags
    )
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
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    question = re.search(r"^\*\*(.+)\*\*$", text, re.MULTILINE)
    run_time = re.search(r"\b(About|Half|A few|An?) [^.]*\b(second|minute|hour)s?\b[^.]*\.", text)
    return Introduction(
        title[1] if title else "", question[1] if question else "", run_time[0] if run_time else ""
    )
