"""`specdec gallery`: lay the figures out as one page, index.html in their folder.

What differs from run to run stands in `provenance.js`, beside the page. In a clone that was never
run there is neither that nor the script that interactive figures need: the page then links to
their images.
"""

import ast
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import NOTEBOOKS, figures_folder, write_together
from specdec_lib.suite.gallery.describing import comparison, descriptions
from specdec_lib.suite.gallery.manifest import Manifest, read_manifest
from specdec_lib.suite.notebook import read_cells, read_introduction, read_parameters

HERE = Path(__file__).parent
UNDESCRIBED = {"title": "", "see": "Not described in specdec_lib/suite/gallery/figures.toml yet."}
SCRIPT = "plotly.min.js"


def main(arguments: Sequence[str] | None = None) -> None:
    """Lay out a folder's figures; raises ValueError if the folder cannot be used."""
    parser = Parser("gallery", __doc__.partition(": ")[2].partition("\n")[0], writes=None)
    parser.add_common("--out", note="without, the folder SPECDEC_FIGURES names, else figures/")
    print(build((parser.parse_args(arguments).out or figures_folder()).expanduser().resolve()))


def build(folder: Path, *, notebooks: Path = NOTEBOOKS) -> Path:
    """Write a folder's index.html, whose path comes back, with provenance.js and the plotly script
    beside it.

    The page is the same, byte for byte, for the same figures, notebooks and parameters.
    Raises ValueError if the folder does not exist.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no figure folder {folder}; make figures makes it")
    if not (folder / SCRIPT).exists():
        from specdec_lib.show.figures.saving import write_script  # late: plotly takes a second

        write_script(folder)
    chapters = [_chapter(notebook, folder) for notebook in chapters_of(notebooks)]
    page, known = folder / "index.html", folder / "provenance.js"
    write_together({path: render(path.name, chapters).encode() for path in (known, page)})
    return page


def chapters_of(notebooks: Path) -> list[Path]:
    """The notebooks in the order of their chapters: the scorecard first, the others by number."""
    found = notebooks.glob("[0-9][0-9]_*.ipynb")
    return sorted(found, key=lambda path: (not path.stem.endswith("_scorecard"), path.name))


def render(name: str, chapters: Sequence[Mapping[str, object]]) -> str:
    """The whole of index.html (from page.html, page.css and page.js) or of provenance.js."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def marked(text: str) -> Markup:
        """Text whose backticks and stars, as in markdown, become markup."""
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
        return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text))

    look = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, **look)
    environment.filters["marked"] = marked
    source, style, script = (
        Markup((HERE / part).read_text("utf-8"))
        for part in (name.replace("index", "page"), "page.css", "page.js")
    )
    return environment.from_string(source).render(chapters=chapters, style=style, script=script)


def figure_files(folder: Path, notebook: Path) -> dict[str, set[str]]:
    """The figures of a notebook that lie in a folder, with the kinds of their files, in the order
    in which the notebook names them, others last.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob(f"{notebook.stem[:2]}_*")):
        if path.suffix in (".html", ".png", ".csv"):
            found.setdefault(path.stem, set()).add(path.suffix[1:])
    code = "".join(source for kind, source in read_cells(notebook) if kind == "code")
    places = {name: code.find(f'"{name}"') for name in found}
    return {name: found[name] for name in sorted(found, key=lambda n: (places[n] < 0, places[n]))}


def _chapter(notebook: Path, folder: Path) -> dict[str, object]:
    """A notebook, its figures and its last run, as the templates read them; `link` leads from the
    page to it.
    """
    declared, figures = read_parameters(notebook), figure_files(folder, notebook).items()
    manifest = read_manifest(folder / "runs" / f"{notebook.stem}.json")
    return {
        "name": notebook.stem,
        "manifest": manifest,
        "link": Path(os.path.relpath(notebook, folder)).as_posix(),
        "introduction": read_introduction(notebook),
        "parameters": declared,
        "cards": [_card(folder / name, kinds, declared, manifest) for name, kinds in figures],
    }


def _card(
    figure: Path, kinds: set[str], declared: dict[str, dict[str, str]], manifest: Manifest | None
) -> dict[str, object]:
    """A figure; `made` says that its table or page is what the run left there, `changed` are
    parameters that differ from the notebook's own, with the values that made it.
    """
    words = descriptions().get(figure.name, UNDESCRIBED)
    defaults = {name: ast.literal_eval(one["default"]) for name, one in declared.items()}
    given = manifest.parameters.items() if manifest else ()
    differ = {name: repr(value) for name, value in given if (name, value) not in defaults.items()}
    files = (figure.with_suffix(kind) for kind in (".csv", ".html"))
    made = manifest is not None and any(map(manifest.wrote, files))
    changed, parameters = differ if made else {}, "the notebook’s own"
    if given and manifest.state == "running":
        cut = ", ".join(f"{name} = {value!r}" for name, value in given)
        parameters = f"unknown: a run with {cut} was cut short"
    return {
        "name": figure.name,
        "title": words["title"] or figure.name,
        "see": words["see"],
        "files": kinds,
        "size": _size(figure.with_suffix(".png")),
        "seed": changed.get("seed") or declared.get("seed", {"default": "none"})["default"],
        "made": made,
        "changed": changed,
        "parameters": parameters,
        "paper": comparison(words.get("paper", {}), figure.with_suffix(".csv")),
    }


def _size(image: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header; (0, 0) if there is none."""
    head = image.read_bytes()[:24] if image.exists() else b""
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
