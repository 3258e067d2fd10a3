"""Reads a notebook's title, question, run time and parameters; runs nothing."""

import json
import re
from pathlib import Path

INTRODUCTION = {
    "title": r"^# (.+)$",
    "question": r"^\*\*(.+)\*\*$",
    "run_time": r"(\b(?:About|Half|A few|An?) [^.]*\b(?:second|minute|hour)s?\b[^.]*\.)",
}


def read_cells(notebook: Path) -> list[tuple[str, str]]:
    """Kind and source of each cell.  Raises ValueError if the file is no notebook."""
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in found]
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{notebook} is no notebook: {problem!r}") from problem


def read_parameters(notebook: Path) -> dict[str, dict[str, str]]:
    """The parameters by name, in order, as papermill reads them: `inferred_type_name` ("None"
    without one), `default` as written, and the comment behind it, `help`.
    """
    import papermill  # late: it takes seconds

    read_cells(notebook)  # raises where it is none
    return papermill.inspect_notebook(as_template(notebook))


def as_template(path: Path) -> str:
    """A path for papermill, which replaces what stands in single braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def read_introduction(notebook: Path) -> dict[str, str]:
    """Title, bold question and run time in the first markdown cell; "" for what is missing."""
    text = next((text for kind, text in read_cells(notebook) if kind == "markdown"), "")
    found = {name: re.search(one, text, re.MULTILINE) for name, one in INTRODUCTION.items()}
    return {name: one[1] if one else "" for name, one in found.items()}
