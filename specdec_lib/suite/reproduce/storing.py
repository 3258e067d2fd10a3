"""Stores an executed notebook's outputs and counts in the notebook, nothing of the run itself."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path

from specdec_lib.core.files import write_whole

LARGEST_BYTES = 300_000
WIDGET = "application/vnd.jupyter.widget-view+json"
IMAGE = "image/png"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
HOLE = "compact output {}, to be filled in"


def store_outputs(executed: Path, notebook: Path) -> None:
    """Replace `notebook` by the `executed` one without traces of its run, whole or not at all.

    Raises ValueError, and replaces nothing, if it would be larger than 300 KB.
    """
    content = format_notebook(without_run(json.loads(executed.read_text(encoding="utf-8"))))
    if (size := len(content.encode())) > LARGEST_BYTES:
        raise ValueError(
            f"{notebook.name} with its outputs is {size} bytes, allowed are {LARGEST_BYTES}: show"
            " less, or save it as a figure"
        )
    write_whole(notebook, content.encode())


def format_notebook(notebook: dict) -> str:
    """A notebook as text: a line for each line of source, as Jupyter writes it, but one line for
    each output's data that is JSON itself.

    A figure's numbers would otherwise take a line each, most of it indentation.
    """
    notebook = copy.deepcopy(notebook)
    full = json.dumps(notebook, ensure_ascii=False)
    filling = {}
    for data, kind in _json_data(notebook):
        name = HOLE.format(len(filling))
        while name in full:
            name += "."
        filling[json.dumps(name)] = json.dumps(
            data[kind], ensure_ascii=False, separators=(",", ":")
        )
        data[kind] = name
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if filling:
        text = re.sub("|".join(map(re.escape, filling)), lambda hole: filling[hole[0]], text)
    return text


def _json_data(notebook: dict) -> Iterator[tuple[dict, str]]:
    """Each output's data bundle with a kind in it that is JSON itself."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            yield from ((data, kind) for kind in data if isinstance(data[kind], dict))


def without_run(executed: dict) -> dict:
    """A notebook's JSON without metadata, timings and versions of its run, and without views of
    widgets that are gone; their images stay.
    """
    notebook = copy.deepcopy(executed)
    notebook["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            shown = (
                output
                for output in cell["outputs"]
                if WIDGET not in output.get("data", {}) or IMAGE in output["data"]
            )
            cell["outputs"] = [_without_traces(output) for output in shown]
    return notebook


def _without_traces(output: dict) -> dict:
    """An output without widget view, metadata and the addresses of objects."""
    output.get("metadata", {}).clear()
    data = output.get("data", {})
    data.pop(WIDGET, None)
    text = data.get("text/plain")
    if isinstance(text, list):
        data["text/plain"] = [ADDRESS.sub("", line) for line in text]
    elif text is not None:
        data["text/plain"] = ADDRESS.sub("", text)
    return output
