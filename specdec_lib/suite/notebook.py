"""Reads a notebook's title, question, run time and parameters; runs nothing."""

import json
import re
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


def read_cells(notebook: Path) -> list[tuple[str, str]]:
    """Kind and source of each cell.  Raises ValueError if the file is no notebook."""
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in found]
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{notebook} is no notebook: {problem!r}") from problem


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """The parameters by name, in order; empty without a tagged cell."""
    import papermill  # late: it takes seconds

    read_cells(notebook)  # raises where it is none
    found = papermill.inspect_notebook(as_template(notebook))
    return {
        name: Parameter(one["inferred_type_name"], one["default"], one["help"])
        for name, one in found.items()
    }


def as_template(path: Path) -> str:
    """A path for papermill, which replaces what stands in single braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def read_introduction(notebook: Path) -> Introduction:
    """What the first markdown cell says."""
    text = next((text for kind, text in read_cells(notebook) if kind == "markdown"), "")
    patterns = (
        r"^# (.+)$",
        r"^\*\*(.+)\*\*$",
        r"(\b(?:About|Half|A few|An?) [^.]*\b(?:second|minute|hour)s?\b[^.]*\.)",
    )
    found = (re.search(pattern, text, re.MULTILINE) for pattern in patterns)
    return Introduction(*(one[1] if one else "" for one in found))
