"""The only writer of figure files: a page, an image and the table behind each figure."""

import base64
import contextlib
import functools
import re
import threading
import warnings
from io import BytesIO
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import plotly.io
import psutil
from PIL import Image
from plotly.offline import get_plotlyjs

from specdec_lib.core.files import figures_folder, write_together, write_whole
from specdec_lib.show.figures.theme import PAPER

NAME = re.compile(r"\d{2}(_[a-z0-9]+)+")
PATIENCE, TRIES = 30, 7  # seconds for one image; exporters that are tried
BACK = """<nav style="font:14px system-ui,sans-serif;margin:1em 0;color:#7A7A7A">
<a href="index.html#{name}" style="color:inherit">all figures</a></nav>
<script>
if (window.self !== window.top) document.querySelector("nav").remove();
if (!window.Plotly) document.body.prepend(
  "This figure needs plotly.min.js beside it; make figures writes it.");
</script>
"""  # in the gallery's own window the way back is the gallery's


def save(figure: go.Figure, name: str, table: pd.DataFrame) -> Path:
    """Write NAME.html, NAME.png and NAME.csv into `figures_folder()`; the page's path comes back.

    name     two digits (the notebook's) and words, joined by "_"; ValueError for another
    table    what the figure shows; real numbers are kept to six significant digits

    Where no image exporter works, a warning says so.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f'a figure is called like "00_mask", by small letters, got {name!r}')
    place = figures_folder()
    place.mkdir(parents=True, exist_ok=True)
    write_script(place)
    rows = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    found = {"html": _page(figure, name).encode(), "csv": rows.encode()}
    if _exporter_works():
        found["png"] = _image(figure)
    else:
        warnings.warn(f"no image exporter works here: {name}.png is not written", stacklevel=2)
    write_together({place / f"{name}.{kind}": content for kind, content in found.items()})
    return place / f"{name}.html"


def still(figure: go.Figure) -> dict[str, str]:
    """The figure as an image for a notebook's output, by MIME type, in 256 colours, which take a
    quarter of the bytes; empty without an exporter.
    """
    if not _exporter_works():
        return {}
    exported, written = Image.open(BytesIO(_image(figure, scale=1))).convert("RGB"), BytesIO()
    nearest = {"method": Image.Quantize.FASTOCTREE, "dither": Image.Dither.NONE}
    exported.quantize(256, **nearest).save(written, "PNG", optimize=True)
    return {"image/png": base64.b64encode(written.getvalue()).decode()}


def write_script(place: Path) -> None:
    """Write the plotly script that every page shares, unless it is there."""
    script, shared = get_plotlyjs().encode(), place / "plotly.min.js"
    if not shared.exists() or shared.stat().st_size != len(script):
        write_whole(shared, script)


def _page(figure: go.Figure, name: str) -> str:
    """The page with a title and a way back to the gallery, in the reader's light or dark."""
    look = {"div_id": name.replace("_", "-"), "config": {"displaylogo": False}}
    page, head = figure.to_html(include_plotlyjs="directory", **look), '<meta charset="utf-8" />'
    scheme = '<meta name="color-scheme" content="light dark" />'
    page = page.replace(head, f"{head}<title>{name}</title>{scheme}", 1)
    return page.replace("</body>", BACK.format(name=name) + "</body>", 1)


def _image(figure: go.Figure, scale: int = 2) -> bytes:
    """The figure as a PNG on white paper, so many times as fine as a screen.

    Now and then the exporter hangs as it starts (github.com/plotly/Kaleido/issues/134): after
    `PATIENCE` seconds it is killed and a new one tried, `TRIES` in all; then ValueError. It is told
    not to fetch the script of formulas, of which no figure has one: there may be no network.
    """
    paper = go.Figure(figure).update_layout(template=PAPER)
    for _ in range(TRIES):
        hung = threading.Event()
        watch = threading.Timer(PATIENCE, _kill_exporter, [hung])
        watch.daemon = True
        watch.start()
        try:
            # plotly's and the exporter's own, about the exporter's age
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
                if plotly.io.kaleido.scope.mathjax is not None:  # each change ends the exporter
                    plotly.io.kaleido.scope.mathjax = None
                return paper.to_image(format="png", scale=scale)
        except (OSError, ValueError):
            if not hung.is_set():
                raise
        finally:
            watch.cancel()
    raise ValueError(f"the image exporter hung {TRIES} times for {PATIENCE} s")


def _kill_exporter(hung: threading.Event) -> None:
    """End the exporter and the processes it started, so that who waits for its answer goes on."""
    hung.set()
    with contextlib.suppress(AttributeError, psutil.NoSuchProcess):  # it may have ended
        found = psutil.Process(plotly.io.kaleido.scope._proc.pid)
        for each in [found, *found.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


@functools.cache
def _exporter_works() -> bool:
    """Whether an empty figure can be exported, tried once."""
    with contextlib.suppress(AttributeError, ImportError, OSError, RuntimeError, ValueError):
        return bool(_image(go.Figure()))
    return False
