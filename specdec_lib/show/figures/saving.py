"""Figure files: an interactive page, an image and the table behind them."""

import base64
import functools
import re
import warnings
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import plotly.io
from plotly.offline import get_plotlyjs

from specdec_lib.core.files import figures_folder as folder
from specdec_lib.core.files import write_together, write_whole
from specdec_lib.show.figures.palette import smaller
from specdec_lib.show.figures.theme import PAPER

NAME = re.compile(r"\d{2}(_[a-z0-9]+)+")


def save(figure: go.Figure, name: str, table: pd.DataFrame) -> Path:
    """Write NAME.html, NAME.png and NAME.csv into `folder()`; the path of the page comes back.

    name     two digits (the notebook's) and words, joined by "_"
    table    what the figure shows; real numbers are kept to six significant digits

    The page needs plotly.min.js beside it, which is written too. Where no image exporter works, a
    warning says so.  Raises ValueError for another kind of name.
    """
    if not NAME.fullmatch(name):
        raise ValueError(
            'a figure is called like "00_mask" (two digits, then small letters and digits joined by'
            f' "_"), got {name!r}'
        )
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    write_script(place)
    look = {"div_id": name.replace("_", "-"), "config": {"displaylogo": False}}
    page = _finished(figure.to_html(include_plotlyjs="directory", **look), name)
    rows = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    found = {"html": page.encode(), "csv": rows.encode()}
    if _exporter_works():
        found["png"] = _image(figure)
    write_together({place / f"{name}.{kind}": content for kind, content in found.items()})
    if "png" not in found:
        said = f"no image exporter works here: {name}.html and {name}.csv are written, {name}.png"
        warnings.warn(f"{said} is not", stacklevel=2)
    return place / f"{name}.html"


def still(figure: go.Figure) -> dict[str, str]:
    """The figure as an image for a notebook's output, by MIME type; empty where no image exporter
    works.
    """
    if not _exporter_works():
        return {}
    return {"image/png": base64.b64encode(smaller(_image(figure, scale=1))).decode()}


BACK = """<nav style="font:14px system-ui,sans-serif;margin:1em 0;color:#7A7A7A">
<a href="index.html#{name}" style="color:inherit">all figures</a></nav>
<script>
if (window.self !== window.top) document.querySelector("nav").remove();
if (!window.Plotly) document.body.prepend(
  "This figure needs plotly.min.js beside it; make figures writes it.");
</script>
"""  # in the gallery's own window the way back is the gallery's


def _finished(page: str, name: str) -> str:
    """The page with a title and a way back to the gallery, in the reader's light or dark."""
    scheme = '<meta name="color-scheme" content="light dark" />'
    head = f'<meta charset="utf-8" /><title>{name}</title>{scheme}'
    page = page.replace('<meta charset="utf-8" />', head, 1)
    return page.replace("</body>", BACK.format(name=name) + "</body>", 1)


def _image(figure: go.Figure, scale: int = 2) -> bytes:
    """The figure as a PNG on white paper, so many times as fine as a screen."""
    paper = go.Figure(figure).update_layout(template=PAPER)
    with warnings.catch_warnings():
        # plotly's and the exporter's own, about the exporter's age
        warnings.simplefilter("ignore", DeprecationWarning)
        return paper.to_image(format="png", scale=scale)


@functools.cache
def _exporter_works() -> bool:
    """Whether an empty figure can be exported, tried once, and from then on without a network:
    Plotly has the exporter fetch the script of formulas, of which no figure has one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if plotly.io.kaleido.scope.mathjax is not None:  # each change ends the exporter
                plotly.io.kaleido.scope.mathjax = None
        _image(go.Figure())
    except (AttributeError, ImportError, OSError, RuntimeError, ValueError):
        return False
    return True


def write_script(place: Path) -> None:
    """Write the plotly script that every page shares, unless it is there."""
    script = get_plotlyjs().encode()
    shared = place / "plotly.min.js"
    if not shared.exists() or shared.stat().st_size != len(script):
        write_whole(shared, script)
