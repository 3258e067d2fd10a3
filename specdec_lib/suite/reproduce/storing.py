"""An executed notebook becomes the stored one: its outputs and counts, nothing of the run itself."""

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


def store(executed: Path, notebook: Path) -> None:
    """Replace `notebook` by the tidied `executed` one, whole or not at all.

    Raises ValueError, and replaces nothing, if it would be larger than 300 KB.
    """
    told = written(tidied(json.loads(executed.read_text(encoding="utf-8"))))
    if (size := len(told.encode())) > LARGEST_BYTES:
        raise ValueError(
            f"{notebook.name} with its outputs is {size} bytes, allowed are {LARGEST_BYTES}: show"
            " less, or save it as a figure"
        )
    write_whole(notebook, told.encode())


def written(notebook: dict) -> str:
    """A notebook as text: a line for each line of source, as Jupyter writes it, but one line for
    each output's data that is JSON itself.

    A figure's numbers would otherwise take a line each, most of it indentation.
    """
    notebook = copy.deepcopy(notebook)
    full = json.dumps(notebook, ensure_ascii=False)
    holes = []
    for data, kind in _json_data(notebook):
        name = HOLE.format(len(holes))
        while name in full:
            name += "."
        holes.append((name, json.dumps(data[kind], ensure_ascii=False, separators=(",", ":"))))
        data[kind] = name
    filling = {json.dumps(name): text for name, text in holes}
    told = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if filling:
        told = re.sub("|".join(map(re.escape, filling)), lambda hole: filling[hole[0]], told)
    return told


def _json_data(notebook: dict) -> Iterator[tuple[dict, str]]:
    """Each output's data bundle with a kind in it that is JSON itself."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            yield from ((data, kind) for kind in data if isinstance(data[kind], dict))


def tidied(executed: dict) -> dict:
    """A notebook's JSON without the traces of its run: metadata, timings, versions; of dead widget
    views, their image stays.
    """
    notebook = copy.deepcopy(executed)
    notebook["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for cell in notebook["cells"]:
        cell["metadata"] = {
            name: value for name, value in cell["metadata"].items() if name == "tags" and value
        }
        if cell["cell_type"] == "code":
            cell["outputs"] = [
                _still(output)
                for output in cell["outputs"]
                if WIDGET not in output.get("data", {}) or IMAGE in output["data"]
            ]
            for output in cell["outputs"]:
                output.get("metadata", {}).clear()
    return notebook


def _still(output: dict) -> dict:
    """An output without a view of a widget that is gone, whose image stays, and without an object's
    address, which differs from run to run.
    """
    data = output.get("data", {})
    data.pop(WIDGET, None)
    if "text/plain" in data:
        data["text/plain"] = (
            [ADDRESS.sub("", line) for line in data["text/plain"]]
            if isinstance(data["text/plain"], list)
            else ADDRESS.sub("", data["text/plain"])
        )
    return output
