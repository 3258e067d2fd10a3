"""The only writer of figure files: a page, an image and the table behind each figure."""

import base64
import contextlib
import functools
import hashlib
import json
import math
import os
import re
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from plotly.offline import get_plotlyjs

from specdec_lib.core.files import write_together, write_whole
from specdec_lib.show.exporting import draw_png
from specdec_lib.show.figure_place import figures_place
from specdec_lib.show.figures.theme import PAPER

NAME = re.compile(r"\d\d[a-z]?(_[a-z0-9]+)+")
ENCODED = re.compile(r'"dtype":"(f[48])","bdata":"([^"]*)"')  # how pages hold arrays
FLOAT = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
CLOSE = 1e-5  # share of a number by which another machine's may differ: float32 sums do by 2e-6
STAMP = "Figure"  # the text in a PNG that says what was drawn in it
BACK = """<nav style="font:14px system-ui,sans-serif;margin:1em 0;color:#7A7A7A">
<a href="index.html#{name}" style="color:inherit">all figures</a></nav>
<script>
if (window.self !== window.top) document.querySelector("nav").remove();
if (!window.Plotly) document.body.prepend(
  "This figure needs plotly.min.js beside it; make figures writes it.");
</script>
"""  # in the gallery's own window the way back is the gallery's


def save(figure: go.Figure, name: str, table: pd.DataFrame) -> Path:
    """Write NAME.html, NAME.png and NAME.csv where the figures of that notebook go
    (`figures_place`); the page's path comes back.

    name     the notebook's number ("03", "03b") and words, joined by "_"; ValueError for another
    table    what the figure shows; real numbers are kept to six significant digits

    A page or a table stays as it is where all its real numbers are within `CLOSE` of the new ones,
    for processors add in different orders; so does an image of the very same figure, which another
    machine's exporter and fonts would draw in other pixels. To have them written anew, delete them.
    Where no image exporter works, a warning says that the image of a new figure is not written, or
    that the one there is of another figure.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f'a figure is called like "00_mask", by small letters, got {name!r}')
    place = figures_place(name.partition("_")[0])
    place.mkdir(parents=True, exist_ok=True)
    write_script(place)
    page = place / f"{name}.html"
    image = place / f"{name}.png"
    rows = place / f"{name}.csv"
    csv = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    files = {page: _kept(page, _page(figure, name)), rows: _kept(rows, csv)}
    figure = figure_in(files[page].decode())
    drawing = drawing_of(figure)
    if shows(image, drawing):
        os.utime(image)  # so that a run of notebooks counts it among what it made
    elif _exporter_works():
        files[image] = stamped(_image(figure), drawing)
    elif image.exists():
        warnings.warn(
            f"no image exporter works here: {name}.png stays, and shows another figure than"
            f" {name}.html",
            stacklevel=2,
        )
    else:
        warnings.warn(f"no image exporter works here: {name}.png is not written", stacklevel=2)
    write_together(files)
    return page


def figure_in(page: str) -> go.Figure:
    """The figure that a page shows."""
    decode = json.JSONDecoder().raw_decode
    start = page.index("[", page.index("Plotly.newPlot("))
    data, end = decode(page, start)
    layout, _ = decode(page, page.index("{", end))
    return go.Figure(data, layout)


def _kept(path: Path, written: str) -> bytes:
    """What a file is to hold: what it holds already where that differs from what is written in
    nothing but real numbers, and these by at most `CLOSE` of their size.
    """
    there = path.read_bytes().decode(errors="replace") if path.is_file() else ""
    old, new = (ENCODED.sub(_decoded, one) for one in (there, written))
    same = FLOAT.sub("", old) == FLOAT.sub("", new) and all(
        math.isclose(float(one), float(other), rel_tol=CLOSE)
        for one, other in zip(FLOAT.findall(old), FLOAT.findall(new), strict=True)
    )
    return (there if same else written).encode()


def _decoded(array: re.Match[str]) -> str:
    """The numbers of an array in a page; of a damaged one its text."""
    try:
        content = base64.b64decode(json.loads(f'"{array[2]}"'))
        return str(np.frombuffer(content, array[1]).tolist())
    except ValueError:
        return array[0]


def drawing_of(figure: go.Figure) -> str:
    """All that an image of the figure depends on, the exporter and its fonts apart, as text."""
    return json.dumps(json.loads(str(_on_paper(figure).to_json())), sort_keys=True)


def stamped(content: bytes, drawing: str) -> bytes:
    """A PNG with a text in it that `shows` reads; its pixels stay as they are."""
    written = BytesIO()
    with Image.open(BytesIO(content)) as image:
        texts = PngInfo()
        texts.add_text(STAMP, _digest(drawing, image))
        image.save(written, "PNG", pnginfo=texts)
    return written.getvalue()


def shows(path: Path, drawing: str) -> bool:
    """Whether a file is a PNG that was drawn of this, by whatever exporter, and is undamaged."""
    try:
        with Image.open(path) as image:
            return image.info.get(STAMP) == _digest(drawing, image)
    except (OSError, SyntaxError, ValueError):  # no file, no PNG, or a damaged one
        return False


def _digest(drawing: str, image: Image.Image) -> str:
    """A digest of what is drawn and of the pixels that were made of it."""
    digest = hashlib.sha256(drawing.encode())
    digest.update(f"{image.mode} {image.size}".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def still(figure: go.Figure) -> dict[str, str]:
    """The figure as an image for a notebook's output, by MIME type, in 256 colours, which take a
    quarter of the bytes; empty without an exporter.
    """
    if not _exporter_works():
        return {}
    exported = Image.open(BytesIO(_image(figure, scale=1))).convert("RGB")
    reduced = exported.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    written = BytesIO()
    reduced.save(written, "PNG", optimize=True)
    return {"image/png": base64.b64encode(written.getvalue()).decode()}


def write_script(place: Path) -> None:
    """Write the plotly script that every page shares, unless it is there."""
    script = get_plotlyjs().encode()
    shared = place / "plotly.min.js"
    if not shared.exists() or shared.stat().st_size != len(script):
        write_whole(shared, script)


def _page(figure: go.Figure, name: str) -> str:
    """The page with a title and a way back to the gallery, in the reader's light or dark."""
    page = figure.to_html(
        include_plotlyjs="directory",
        div_id=name.replace("_", "-"),
        config={"displaylogo": False},
    )
    head = '<meta charset="utf-8" />'
    scheme = '<meta name="color-scheme" content="light dark" />'
    page = page.replace(head, f"{head}<title>{name}</title>{scheme}", 1)
    return page.replace("</body>", BACK.format(name=name) + "</body>", 1)


def _on_paper(figure: go.Figure) -> go.Figure:
    """A copy of the figure as it is drawn in an image, on white."""
    return go.Figure(figure).update_layout(template=PAPER)


def _image(figure: go.Figure, scale: int = 2) -> bytes:
    """The figure as a PNG on white paper, so many times as fine as a screen."""
    return draw_png(_on_paper(figure), scale)


@functools.cache
def _exporter_works() -> bool:
    """Whether an empty figure can be exported, tried once."""
    with contextlib.suppress(AttributeError, ImportError, OSError, RuntimeError, ValueError):
        return bool(_image(go.Figure()))
    return False
