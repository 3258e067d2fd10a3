"""`specdec gallery`: lay the figures out as one page, index.html in their folder.

What differs from run to run stands in `provenance.js`, beside the page. In a clone that was never
run there is neither that nor the script that interactive figures need: the page then links to
their images.
"""

import ast
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import NOTEBOOKS, check_writable, figures_folder, write_together
from specdec_lib.suite.gallery.describing import comparison, descriptions
from specdec_lib.suite.gallery.manifest import Manifest, read_manifest
from specdec_lib.suite.notebook import read_cells, read_introduction, read_parameters

HERE = Path(__file__).parent
UNDESCRIBED = {"title": "", "see": "Not described in specdec_lib/suite/gallery/figures.toml yet."}
SCRIPT = "plotly.min.js"
UNKNOWN = (
    "by no finished run in this folder: it came with the code or from a run cut short, or was saved"
    " or edited by hand"
)
NEVER_RUN = (
    "These figures came with the code: none of the notebooks has been run in this folder. make"
    " figures runs them."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Lay out a folder's figures; raises ValueError if the folder cannot be used."""
    parser = Parser("gallery", __doc__.partition(": ")[2].partition("\n")[0], writes=None)
    parser.add_common("--out", note="without, the folder SPECDEC_FIGURES names, else figures/")
    folder = (parser.parse_args(arguments).out or figures_folder()).expanduser().resolve()
    if folder.exists():
        check_writable(folder)
    print(build(folder))


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
    chapters, runs, figures = [], {}, {}
    for notebook in chapters_of(notebooks):
        manifest = read_manifest(folder / "runs" / f"{notebook.stem}.json")
        chapter = _chapter(notebook, folder, manifest)
        chapters.append(chapter)
        if manifest:
            runs[notebook.stem] = _last_run(manifest)
            figures |= {card["name"]: _facts(manifest, card) for card in chapter["cards"]}
    known = {"here": _summary(runs, len(chapters)), "notebooks": runs, "figures": figures}
    text = json.dumps(known, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    # a script that sets one variable, so that it works from a file as well
    page, told = folder / "index.html", f"window.provenance = {text};\n"
    write_together({folder / "provenance.js": told.encode(), page: render_page(chapters).encode()})
    return page


def chapters_of(notebooks: Path) -> list[Path]:
    """The notebooks in the order of their chapters: the scorecard first, the others by number."""
    found = notebooks.glob("[0-9][0-9]_*.ipynb")
    return sorted(found, key=lambda path: (not path.stem.endswith("_scorecard"), path.name))


def render_page(chapters: Sequence[Mapping[str, object]]) -> str:
    """The whole of index.html, from page.html, page.css and page.js."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

    def marked(text: str) -> Markup:
        """Text whose backticks and stars, as in markdown, become markup."""
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
        return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text))

    look = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, **look)
    environment.filters["marked"] = marked
    html, style, script = (
        Markup((HERE / f"page.{kind}").read_text("utf-8")) for kind in ("html", "css", "js")
    )
    return environment.from_string(html).render(chapters=chapters, style=style, script=script)


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


def _chapter(notebook: Path, folder: Path, manifest: Manifest | None) -> dict[str, object]:
    """A notebook and its figures, as page.html reads them; `link` leads from the page to it."""
    declared, figures = read_parameters(notebook), figure_files(folder, notebook).items()
    return {
        "name": notebook.stem,
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


def _last_run(manifest: Manifest) -> dict[str, object]:
    """A notebook's last run in words."""
    date, took = manifest.made["date"], f"{manifest.seconds:.0f} s, {manifest.made['date']}"
    words = {
        "finished": f"{manifest.profile}, {took}",
        "failed": f"failed after {took}",
        "running": f"interrupted, or still running; begun {date}",
    }[manifest.state]
    return {"said": words, "good": manifest.state == "finished", "error": manifest.error}


def _facts(manifest: Manifest, card: dict[str, object]) -> list[tuple[str, str]]:
    """What is known of one figure's making, as pairs of a word and a text."""
    if not card["made"]:
        return [("made", UNKNOWN)]
    made = [("made" if word == "date" else word, text) for word, text in manifest.made.items()]
    return [("profile", manifest.profile), *made]


def _summary(runs: dict[str, dict[str, object]], notebooks: int) -> str:
    """What the page says at its top about the runs in this folder."""
    if not runs:
        return NEVER_RUN
    bad = ", ".join(sorted(name for name, run in runs.items() if not run["good"]))
    unfinished = f" Not finished: {bad}; what stands there is from earlier, or in part."
    return (
        f"{len(runs)} of {notebooks} notebooks were run here; “how it was made” has machine,"
        f" versions and commit of each figure.{unfinished if bad else ''}"
    )
