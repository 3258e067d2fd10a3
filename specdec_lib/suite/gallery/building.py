"""`specdec gallery`: lay the figures out as one page, index.html in their folder.

What differs from run to run stands in `provenance.js`, beside the page, and comes from the manifest
of each notebook's last run, in `runs/` beside the figures. In a clone that was never run there is
neither that nor the script that interactive figures need: the page then links to their images.
"""

import functools
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specdec_lib.core.files import write_together
from specdec_lib.suite.gallery.beside import numbers_beside, read_scorecard
from specdec_lib.suite.gallery.manifest import Manifest, read_manifest
from specdec_lib.suite.notebook import (
    NOTEBOOKS,
    number_of,
    numbered,
    read_cells,
    read_introduction,
    read_parameters,
)

if TYPE_CHECKING:
    from pandas import DataFrame

HERE = Path(__file__).parent
UNDESCRIBED = {"title": "", "see": "Not described in specdec_lib/suite/gallery/figures.toml yet."}
SCRIPT = "plotly.min.js"
KINDS = (".html", ".png", ".csv")  # of figure files
HEAD = "03_strip"  # the figure that the page opens with


@functools.cache
def descriptions() -> dict[str, dict]:
    """All figures' words by name: `title`, what to `see`, and where a paper prints numbers of the
    kind that the figure shows, `claims`: what `numbers_beside` takes.
    """
    return tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))


def build(folder: Path, *, notebooks: Path = NOTEBOOKS) -> Path:
    """Write a folder's index.html, whose path comes back, with provenance.js and the plotly script
    beside it. The page is the same, byte for byte, for the same figures, notebooks and parameters.

    The papers' numbers come from 06_scorecard.csv in the folder. Raises ValueError if the folder
    does not exist, or that table lacks a column.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no figure folder {folder}; make figures makes it")
    if not (folder / SCRIPT).exists():
        from specdec_lib.show.saving import write_script  # late: plotly takes a second

        write_script(folder)
    scores = read_scorecard(folder)
    chapters = [_chapter(notebook, folder, scores) for notebook in chapters_of(notebooks)]
    page = folder / "index.html"
    pages = {
        folder / "provenance.js": render("provenance.js", chapters).encode(),
        page: render("page.html", chapters).encode(),
    }
    write_together(pages)
    return page


def chapters_of(notebooks: Path) -> list[Path]:
    """The notebooks in the order of their chapters: the scorecard first, the others by number."""
    found = numbered(notebooks)
    return sorted(found, key=lambda path: not path.stem.endswith("_scorecard"))


def render(template: str, chapters: Sequence[Mapping[str, Any]]) -> str:
    """A template of this folder, page.html or provenance.js, filled in."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    def marked(text: str) -> Markup:
        """Text whose backticks and stars, as in markdown, become markup."""
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
        return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text))

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["marked"] = marked
    head = next((card for one in chapters for card in one["cards"] if card["name"] == HEAD), None)
    return environment.get_template(template).render(chapters=chapters, head=head)


def figure_files(folder: Path, notebook: Path) -> dict[str, set[str]]:
    """The figures of a notebook that lie in a folder, with the kinds of their files, in the order
    in which the notebook names them, others last.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob(f"{number_of(notebook.stem)}_*")):
        if path.suffix in KINDS:
            found.setdefault(path.stem, set()).add(path.suffix[1:])
    code = "".join(source for kind, source in read_cells(notebook) if kind == "code")

    def place(name: str) -> tuple[bool, int]:
        at = code.find(f'"{name}"')
        return at < 0, at

    return {name: found[name] for name in sorted(found, key=place)}


def _chapter(notebook: Path, folder: Path, scores: "DataFrame | None") -> dict[str, Any]:
    """A notebook, its figures and its last run, as the templates read them."""
    parameters = read_parameters(notebook)
    seed = parameters["seed"]["default"] if "seed" in parameters else "none"
    manifest = read_manifest(folder / "runs" / f"{notebook.stem}.json")
    cards = []
    for name, kinds in figure_files(folder, notebook).items():
        words = descriptions().get(name, UNDESCRIBED)
        card = _card(folder / name, kinds, words, manifest, seed)
        card["beside"] = numbers_beside(words.get("claims", ()), scores)
        cards.append(card)
    return {
        "name": notebook.stem,
        "number": number_of(notebook.stem),
        "manifest": manifest,
        "link": Path(os.path.relpath(notebook, folder)).as_posix(),
        "introduction": read_introduction(notebook),
        "parameters": parameters,
        "cards": cards,
    }


def _card(
    figure: Path,
    kinds: set[str],
    words: Mapping[str, str],
    manifest: Manifest | None,
    seed: str,
) -> dict[str, object]:
    """A figure and how it was made.

    seed    the notebook's own, as it is written there

    In what comes back, `made` says that its table or page is what the last run left, `given` are
    the parameters that this run was given, and `parameters` says which the figure was made with.
    """
    files = (figure.with_suffix(kind) for kind in (".csv", ".html"))
    made = manifest is not None and any(map(manifest.wrote, files))
    changed = manifest.parameters if manifest else {}
    state = manifest.state if manifest else ""
    given = ", ".join(f"{name} = {value!r}" for name, value in changed.items())
    if made:
        parameters = given or "the notebook’s own"
        seed = repr(changed["seed"]) if "seed" in changed else seed
    elif given and state == "running":
        parameters = f"unknown: a run with {given} was cut short"
    else:
        parameters = "the notebook’s own"
    return {
        "name": figure.name,
        "title": words["title"] or figure.name,
        "see": words["see"],
        "files": kinds,
        "size": _size(figure.with_suffix(".png")),
        "made": made,
        "given": given if made else "",
        "parameters": parameters,
        "seed": seed,
    }


def _size(image: Path) -> tuple[int, int]:
    """Width and height of an image in pixels; (0, 0) if there is none that can be read."""
    from PIL import Image, UnidentifiedImageError  # late: only a page needs it

    if not image.exists():
        return 0, 0
    try:
        with Image.open(image) as opened:
            return opened.size
    except UnidentifiedImageError:
        return 0, 0
