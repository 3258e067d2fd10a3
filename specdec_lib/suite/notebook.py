"""Reads a notebook's title, question, run time and parameters, and stores outputs in it, without a
trace of the run that made them; runs nothing.
"""

import base64
import json
import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.files import REPOSITORY, write_whole

if TYPE_CHECKING:
    from PIL import Image

NOTEBOOKS = REPOSITORY / "notebooks"
NUMBERED = re.compile(r"\d\d[a-z]?(_[a-z0-9]+)+")  # "03_name", and "03b_name" that goes on with it
INTRODUCTION = {
    "title": r"^# (.+)$",
    "question": r"^\*\*(.+)\*\*$",
    "run_time": r"(\b(?:About|Half|A few|An?) [^.]*\b(?:second|minute|hour)s?\b[^.]*\.)",
}
SAVED = re.compile(r'(?m)^save\((?:.|\n)*?"(\d\d[a-z]?(?:_[a-z0-9]+)+)"')
PLOTLY = "application/vnd.plotly.v1+json"
LARGEST_IMAGE = 60_000  # bytes
# its size, and how far its colours are apart (black and white: 441), tried in turn
TRIED = ((1.0, 24), (0.7, 24), (0.5, 24), (0.45, 24), (0.4, 24))
COLOURS = 128
FLAT = 1 / 500  # of the pixels, from which on a colour is one of areas
NEAR = 4  # how far such colours are apart
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def numbered(folder: Path) -> list[Path]:
    """The notebooks of a folder whose names begin with a number, in its order."""
    return sorted(path for path in folder.glob("*.ipynb") if NUMBERED.fullmatch(path.stem))


def number_of(name: str) -> str:
    """The number that a notebook's name, and the names of its figures, begin with: "03b"."""
    return name.partition("_")[0]


def read_cells(notebook: Path) -> list[tuple[str, str]]:
    """Kind and source of each cell.  Raises ValueError if the file is no notebook."""
    try:
        found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [(cell["cell_type"], "".join(cell["source"])) for cell in found]
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{notebook} is no notebook: {problem!r}") from problem


def read_tags(notebook: Path) -> set[str]:
    """The tags of its cells.  Raises ValueError if the file is no notebook."""
    read_cells(notebook)
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return {tag for cell in found for tag in cell.get("metadata", {}).get("tags", ())}


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


def store_outputs(executed: Path, notebook: Path, figures: Path | None = None) -> None:
    """Replace `notebook` by the `executed` one without traces of its run, whole or not at all. Its
    lines are those of nbformat, as JupyterLab and linters write it too.

    figures    whose images go beside the interactive figures that the notebook saved, for pages
               that show no others
    """
    import nbformat  # late: it takes half a second

    stored = without_run(nbformat.read(executed, as_version=4))
    if figures is not None:
        add_images(stored, figures)
    write_whole(notebook, f"{nbformat.writes(stored)}\n".encode())


def add_images(notebook: dict, figures: Path) -> None:
    """Put the image of each figure that a cell saves and shows beside it in the cell's output."""
    for cell in notebook["cells"]:
        names = SAVED.findall("".join(cell["source"]))
        shown = [one["data"] for one in cell.get("outputs", ()) if PLOTLY in one.get("data", {})]
        for name, data in zip(names, shown, strict=False):
            image = figures / f"{name}.png"
            if image.is_file():
                data["image/png"] = base64.b64encode(small_image(image)).decode()


def small_image(path: Path) -> bytes:
    """A PNG in so few colours, and if need be pixels, that it has at most `LARGEST_IMAGE` bytes.
    Raises ValueError if it still has more at the smallest size that is tried.
    """
    from PIL import Image  # late: notebooks are read without it

    with Image.open(path) as whole:
        for part, apart in TRIED:
            width, height = whole.size
            small = whole.convert("RGB").resize((round(part * width), round(part * height)))
            stream = BytesIO()
            in_few_colours(small, apart).save(stream, "PNG", optimize=True)
            if stream.tell() <= LARGEST_IMAGE:
                return stream.getvalue()
    raise ValueError(f"{path} has more than {LARGEST_IMAGE} bytes at {TRIED[-1][0]:g} of its size")


def in_few_colours(image: "Image.Image", apart: int) -> "Image.Image":
    """An RGB image in at most `COLOURS`, each pixel in the one nearest to its own: again and again
    the colour that most pixels have, of those that are not within `apart` of one taken before;
    then, in what is left, the colours of areas that are not within `NEAR` of one. So a light line
    on the page and the shades of a heat map stay apart, and a small mark keeps its colour, which
    in a palette by counts gives way to the many shades at the edges of letters.
    """
    import numpy as np  # late, both: notebooks are read without them
    from PIL import Image

    pixels = np.asarray(image, dtype=np.int32)
    packed = (pixels[..., 0] << 16) | (pixels[..., 1] << 8) | pixels[..., 2]
    known, counts = np.unique(packed, return_counts=True)
    own = np.stack([known >> 16, (known >> 8) & 255, known & 255], axis=1)
    away = np.full(len(known), np.inf)
    nearest = np.zeros(len(known), dtype=np.uint8)
    taken = []
    for close, least in ((apart, 0), (NEAR, FLAT * packed.size)):
        left = np.where((counts >= least) & (away >= close**2), counts, 0)
        while len(taken) < COLOURS and left.any():
            colour = own[left.argmax()]
            distance = ((own - colour) ** 2).sum(axis=1)
            nearest[distance < away] = len(taken)
            away = np.minimum(away, distance)
            left[distance < close**2] = 0
            taken.append(colour)
    found = Image.fromarray(nearest[np.searchsorted(known, packed)], "P")
    found.putpalette(np.ravel(taken).astype(int).tolist())
    return found


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
