"""Reads a notebook's title, question, run time and parameters, and stores outputs in it, without a
trace of the run that made them; runs nothing.
"""

import json
import re
from pathlib import Path

from specdec_lib.core.files import REPOSITORY, write_whole

NOTEBOOKS = REPOSITORY / "notebooks"
INTRODUCTION = {
    "title": r"^# (.+)$",
    "question": r"^\*\*(.+)\*\*$",
    "run_time": r"(\b(?:About|Half|A few|An?) [^.]*\b(?:second|minute|hour)s?\b[^.]*\.)",
}
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


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


def store_outputs(executed: Path, notebook: Path) -> None:
    """Replace `notebook` by the `executed` one without traces of its run, whole or not at all. Its
    lines are those of nbformat, as JupyterLab and linters write it too.
    """
    import nbformat  # late: it takes half a second

    stored = without_run(nbformat.read(executed, as_version=4))
    write_whole(notebook, f"{nbformat.writes(stored)}\n".encode())


def without_run(notebook: dict) -> dict:
    """The same notebook without metadata, timings and versions of its run, addresses of objects,
    and views of widgets that are gone; their images stay. Texts are whole, as nbformat reads them.
    """
    notebook["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if data.pop(WIDGET, None) is not None and "image/png" not in data:
                data.clear()
            output.get("metadata", {}).clear()
            if "text/plain" in data:
                data["text/plain"] = ADDRESS.sub("", data["text/plain"])
        if cell["cell_type"] == "code":
            cell["outputs"] = [one for one in cell["outputs"] if one.get("data", True)]
    return notebook
