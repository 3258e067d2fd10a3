"""Writes index.html and provenance.js from the contents of a figure folder.

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

from specdec_lib.core.files import NOTEBOOKS, write_together
from specdec_lib.suite.gallery.describing import Description, comparison, descriptions
from specdec_lib.suite.gallery.manifest import Manifest, Origin, read_manifest
from specdec_lib.suite.notebook import Parameter, read_cells, read_introduction, read_parameters

HERE = Path(__file__).parent
UNDESCRIBED = Description("", "Not described in specdec_lib/suite/gallery/figures.toml yet.")
SCRIPT = "plotly.min.js"
UNKNOWN = (
    "by no finished run in this folder: it came with the code or from a run cut short, or was saved"
    " or edited by hand"
)
NEVER_RUN = (
    "These figures came with the code: none of the notebooks has been run in this folder. make"
    " figures runs them."
)


def build(folder: Path, *, notebooks: Path = NOTEBOOKS) -> Path:
    """Write a folder's index.html, whose path comes back, with provenance.js and the plotly script
    beside it.

    The page is the same, byte for byte, for the same figures, notebooks and parameters.
    Raises ValueError if the folder does not exist.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no figure folder {folder}; make figures makes it")
    add_script(folder)
    chapters, runs, figures = [], {}, {}
    for notebook in chapters_of(notebooks):
        manifest = read_manifest(folder / "runs" / f"{notebook.stem}.json")
        chapter = _chapter(notebook, folder, manifest)
        chapters.append(chapter)
        if manifest:
            runs[notebook.stem] = _last_run(manifest)
            for card in chapter["cards"]:
                figures[card["name"]] = _facts(_origin(card["name"], folder, manifest))
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


def add_script(folder: Path) -> None:
    """Write the plotly script that every figure's page shares, unless it is there."""
    if not (folder / SCRIPT).exists():
        from specdec_lib.show.figures.saving import write_script  # late: plotly takes a second

        write_script(folder)


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
        (HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
    )
    return environment.from_string(html).render(
        chapters=chapters, style=Markup(style), script=Markup(script)
    )


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
    declared = read_parameters(notebook)
    return {
        "name": notebook.stem,
        "link": Path(os.path.relpath(notebook, folder)).as_posix(),
        "introduction": read_introduction(notebook),
        "parameters": declared,
        "cards": [
            _card(folder / name, kinds, declared, _origin(name, folder, manifest))
            for name, kinds in figure_files(folder, notebook).items()
        ],
    }


def _card(
    figure: Path, kinds: set[str], declared: dict[str, Parameter], origin: Origin | None
) -> dict[str, object]:
    """A figure; `changed` are parameters that differ from the notebook's own, with the values that
    made it.
    """
    words = descriptions().get(figure.name, UNDESCRIBED)
    defaults = {name: ast.literal_eval(one.default) for name, one in declared.items()}
    changed = {
        name: repr(value)
        for name, value in (origin.parameters if origin else {}).items()
        if name not in defaults or defaults[name] != value
    }
    return {
        "name": figure.name,
        "title": words.title or figure.name,
        "see": words.see,
        "files": kinds,
        "size": _size(figure.with_suffix(".png")),
        "seed": changed.get("seed") or (declared["seed"].default if "seed" in declared else "none"),
        "changed": changed,
        "paper": comparison(words, figure.with_suffix(".csv")),
    }


def _origin(name: str, folder: Path, manifest: Manifest | None) -> Origin | None:
    """Where a figure comes from: where its table does, or without one its page."""
    if manifest is None:
        return None
    return manifest.origin(folder / f"{name}.csv") or manifest.origin(folder / f"{name}.html")


def _size(image: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header; (0, 0) if it is none."""
    head = image.read_bytes()[:24] if image.exists() else b""
    if head[:8] != b"\x89PNG\r\n\x1a\n" or len(head) < 24:
        return 0, 0
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def _last_run(manifest: Manifest) -> dict[str, object]:
    """A notebook's last run in words."""
    date, took = manifest.made.date, f"{manifest.seconds:.0f} s, {manifest.made.date}"
    words = {
        "finished": f"{manifest.profile}, {took}",
        "failed": f"failed after {took}",
        "running": f"interrupted, or still running; begun {date}",
    }[manifest.state]
    return {"said": words, "good": manifest.state == "finished", "error": manifest.error}


def _facts(origin: Origin | None) -> list[tuple[str, str]]:
    """What is known of one figure's making, as pairs of a word and a text."""
    if origin is None:
        return [("made", UNKNOWN)]
    made, machine = origin.made, origin.made.machine
    processors = f"{machine.processor} × {machine.processors}"
    return [
        ("profile", origin.profile),
        ("made", made.date),
        ("commit", made.commit[:12] + (", with uncommitted changes" if made.changed else "")),
        ("machine", f"{processors}, {machine.system}, OMP_NUM_THREADS {machine.threads}"),
        ("versions", ", ".join(f"{name} {one}" for name, one in made.versions.items())),
    ]


def _summary(runs: dict[str, dict[str, object]], notebooks: int) -> str:
    """What the page says at its top about the runs in this folder."""
    bad = ", ".join(sorted(name for name, run in runs.items() if not run["good"]))
    return (
        NEVER_RUN
        if not runs
        else (
            f"{len(runs)} of {notebooks} notebooks were run here; “how it was made” has machine,"
            " versions and commit of each figure."
            + (
                f" Not finished: {bad}; what stands there is from earlier, or in part."
                if bad
                else ""
            )
        )
    )
