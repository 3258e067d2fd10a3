"""An executed notebook becomes the stored one: its outputs and counts, nothing of the run itself."""

import copy
import json
import os
from pathlib import Path

LARGEST_BYTES = 300_000
WIDGET = "application/vnd.jupyter.widget-view+json"
IMAGE = "image/png"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def store(executed: Path, notebook: Path) -> None:
    """Replace `notebook` by the tidied `executed` one, whole or not at all.

    Raises ValueError, and replaces nothing, if it would be larger than 300 KB.
    """
    told = json.dumps(tidied(json.loads(executed.read_text(encoding="utf-8"))), indent=1, ensure_ascii=False) + "\n"
    if (size := len(told.encode())) > LARGEST_BYTES:
        raise ValueError(f"{notebook.name} with its outputs is {size} bytes, allowed are {LARGEST_BYTES}: show less, or save it as a figure")
    partial = notebook.with_name(f".{notebook.name}.partial")
    partial.write_text(told, encoding="utf-8")
    os.replace(partial, notebook)


def tidied(executed: dict) -> dict:
    """A notebook's JSON without the traces of its run: metadata, timings, versions; of dead widget views, their image stays."""
    notebook = copy.deepcopy(executed)
    notebook["metadata"] = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for cell in notebook["cells"]:
        cell["metadata"] = {name: value for name, value in cell["metadata"].items() if name == "tags" and value}
        if cell["cell_type"] == "code":
            cell["outputs"] = [_still(output) for output in cell["outputs"] if WIDGET not in output.get("data", {}) or IMAGE in output["data"]]
            for output in cell["outputs"]:
                output.get("metadata", {}).clear()
    return notebook


def _still(output: dict) -> dict:
    """An output without a view of a widget that is gone; its image stays."""
    output.get("data", {}).pop(WIDGET, None)
    return output
