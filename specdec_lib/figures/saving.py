"""Figure files: an interactive page, an image and the table behind them, each written whole or not at all."""

import base64
import functools
import os
import re
import warnings
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from specdec_lib.figures.theme import PAPER

NAME = re.compile(r"\d{2}(_[a-z0-9]+)+")


def folder() -> Path:
    """Where figures go: the folder that SPECDEC_FIGURES names, else the repository's own, wherever the caller stands."""
    named = os.environ.get("SPECDEC_FIGURES")
    return Path(named).expanduser().resolve() if named else Path(__file__).resolve().parents[2] / "figures"


def save(figure: go.Figure, name: str, table: pd.DataFrame) -> Path:
    """Write NAME.html, NAME.png and NAME.csv into `folder()`; the path of the page comes back.

    name     two digits (the notebook's) and words, joined by "_"
    table    what the figure shows; real numbers are kept to six significant digits

    The page needs plotly.min.js beside it, which is written too. The image is on white paper. Where no image exporter works, a warning
    says so and the other two are written.  Raises ValueError for another kind of name.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f'a figure is called like "00_laws" (two digits, then small letters and digits joined by "_"), got {name!r}')
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    _write_script(place)
    page = figure.to_html(include_plotlyjs="directory", div_id=name.replace("_", "-"), config={"displaylogo": False})
    _write(place / f"{name}.html", _with_colour_scheme(page, name).encode())
    _write(place / f"{name}.csv", table.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode())
    if _exporter_works():
        _write(place / f"{name}.png", _image(figure))
    else:
        warnings.warn(f"no image exporter works here: {name}.html and {name}.csv are written, {name}.png is not", stacklevel=2)
    return place / f"{name}.html"


def still(figure: go.Figure) -> dict[str, str]:
    """The figure as an image for a notebook's output, by MIME type; empty where no image exporter works."""
    return {"image/png": base64.b64encode(_image(figure, scale=1)).decode()} if _exporter_works() else {}


def _with_colour_scheme(page: str, name: str) -> str:
    """The page with a title, following the reader's choice of light or dark."""
    head = f'<meta charset="utf-8" /><title>{name}</title><meta name="color-scheme" content="light dark" />'
    return page.replace('<meta charset="utf-8" />', head, 1)


def _image(figure: go.Figure, scale: int = 2) -> bytes:
    """The figure as a PNG on white paper, so many times as fine as a screen: the one place that talks to the image exporter."""
    paper = go.Figure(figure).update_layout(template=PAPER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # plotly's and the exporter's own, about the exporter's age
        return paper.to_image(format="png", scale=scale)


@functools.cache
def _exporter_works() -> bool:
    """Whether an empty figure can be exported, tried once: a figure that fails afterwards is at fault itself."""
    try:
        _image(go.Figure())
    except (ImportError, OSError, RuntimeError, ValueError):
        return False
    return True


def _write_script(place: Path) -> None:
    script = get_plotlyjs().encode()
    shared = place / "plotly.min.js"
    if not shared.exists() or shared.stat().st_size != len(script):
        _write(shared, script)


def _write(path: Path, content: bytes) -> None:
    """The file written whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
