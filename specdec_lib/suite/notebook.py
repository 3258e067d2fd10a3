"""What a notebook says of itself: title, question, run time and parameters, read from its JSON
without running or importing anything.
"""

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
    """A notebook's first cell: the title, the question in bold, and the sentence that says how long
    it runs; "" for what is missing.
    """

    title: str
    question: str
    run_time: str


def cells(notebook: Path) -> list[tuple[str, str, list[str]]]:
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


def parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters by name, in order; empty without a tagged cell.

    Raises ValueError if that cell is no Python.
    """
    source = next(
        (text for kind, text, tags in cells(notebook) if kind == "code" and "parameters" in tags),
        "",
    )
    try:
        statements = ast.parse(source).body
    except SyntaxError as problem:
        raise ValueError(
            f"{notebook}: the cell tagged parameters is no Python, line {problem.lineno}:"
            f" {problem.msg}"
        ) from problem
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokens
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
        found[name] = Parameter(
            annotation,
            ast.get_source_segment(source, value) or "",
            comments.get(statement.end_lineno, ""),
        )
    return found


def introduction(notebook: Path) -> Introduction:
    """What the first cell says."""
    text = next((text for kind, text, _ in cells(notebook) if kind == "markdown"), "")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    question = re.search(r"^\*\*(.+)\*\*$", text, re.MULTILINE)
    run_time = re.search(r"\b(About|Half|A few|An?) [^.]*\b(second|minute|hour)s?\b[^.]*\.", text)
    return Introduction(
        *(
            found[group] if found else ""
            for found, group in ((title, 1), (question, 1), (run_time, 0))
        )
    )
