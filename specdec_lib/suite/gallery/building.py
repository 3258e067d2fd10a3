"""index.html and provenance.js from what lies in a figure folder."""

import ast
import json
import os
from collections.abc import Mapping
from pathlib import Path

from specdec_lib.core.files import NOTEBOOKS, write_whole
from specdec_lib.suite.gallery.describing import Description, comparison, descriptions
from specdec_lib.suite.gallery.manifest import Manifest, Origin, remembered
from specdec_lib.suite.gallery.page import Card, Chapter, page
from specdec_lib.suite.notebook import Parameter, introduction, parameters

KINDS = ("html", "png", "csv")
UNDESCRIBED = Description("", "Not described in specdec_lib/gallery/figures.toml yet.", {})
SCRIPT = "plotly.min.js"


def build(folder: Path, *, notebooks: Path = NOTEBOOKS) -> Path:
    """Lay out a folder's figures as a page: index.html, with provenance.js and the plotly script
    beside it; the page's path comes back.

    The page is the same, byte for byte, for the same figures, notebooks and parameters.  Raises
    ValueError if the folder does not exist.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no figure folder {folder}; make figures makes it")
    if not (folder / SCRIPT).exists():
        from specdec_lib.show.figures.saving import write_script

        write_script(folder)
    chapters, told = [], {"notebooks": {}, "figures": {}}
    for notebook in sorted(notebooks.glob("[0-9][0-9]_*.ipynb")):
        manifest = remembered(folder / "runs" / f"{notebook.stem}.json")
        chapter = _chapter(notebook, folder, manifest)
        chapters.append(chapter)
        if manifest:
            told["notebooks"][notebook.stem] = _run(manifest)
            told["figures"] |= {
                card.name: _facts(_origin(card.name, folder, manifest), manifest)
                for card in chapter.cards
            }
    write_whole(folder / "provenance.js", _provenance(told, len(chapters)).encode())
    write_whole(folder / "index.html", page(chapters).encode())
    return folder / "index.html"


def made(folder: Path, number: str) -> dict[str, frozenset[str]]:
    """The figures of a notebook that lie in a folder, by name, with the kinds of their files."""
    found: dict[str, set[str]] = {}
    for path in folder.glob(f"{number}_*"):
        if path.suffix[1:] in KINDS:
            found.setdefault(path.stem, set()).add(path.suffix[1:])
    return {name: frozenset(found[name]) for name in sorted(found)}


def _chapter(notebook: Path, folder: Path, manifest: Manifest | None) -> Chapter:
    known = parameters(notebook)
    names, described = made(folder, notebook.stem[:2]), descriptions()
    order = [name for name in described if name in names] + [
        name for name in names if name not in described
    ]
    cards = tuple(
        _card(name, names[name], folder, known, _origin(name, folder, manifest)) for name in order
    )
    link = Path(os.path.relpath(notebook, folder)).as_posix()
    return Chapter(notebook.stem, link, introduction(notebook), known, cards)


def _card(
    name: str,
    kinds: frozenset[str],
    folder: Path,
    known: Mapping[str, Parameter],
    origin: Origin | None,
) -> Card:
    said = descriptions().get(name, UNDESCRIBED)
    changed = {
        key: repr(value)
        for key, value in (origin["parameters"] if origin else {}).items()
        if not _default(value, known.get(key))
    }
    seed = changed.get("seed") or (known["seed"].default if "seed" in known else "none")
    paper = comparison(said, folder / f"{name}.csv")
    return Card(
        name,
        said.title or name,
        said.see,
        kinds,
        _size(folder / f"{name}.png"),
        seed,
        changed,
        paper,
    )


def _default(value: object, parameter: Parameter | None) -> bool:
    return parameter is not None and ast.literal_eval(parameter.default) == value


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


def _run(manifest: Manifest) -> dict[str, object]:
    """A notebook's last run in words."""
    words = {
        "finished": f"{manifest.profile}, {manifest.seconds:.0f} s, {manifest.made['date']}",
        "failed": f"failed after {manifest.seconds:.0f} s, {manifest.made['date']}",
        "running": f"interrupted, or still running; begun {manifest.made['date']}",
    }
    return {
        "said": words[manifest.state],
        "good": manifest.state == "finished",
        "error": manifest.error,
    }


def _facts(origin: Origin | None, manifest: Manifest) -> list[tuple[str, str]]:
    """What is known of one figure's making, as pairs of a word and a text."""
    if origin is None:
        return [
            (
                "made",
                "by no finished run in this folder: it came with the code or from a run cut short,"
                " or was saved or edited by hand",
            )
        ]
    made_by = origin["made"]
    machine, versions = made_by["machine"], dict(made_by["versions"])
    return [
        ("profile", origin["profile"]),
        ("made", made_by["date"]),
        (
            "commit",
            made_by["commit"][:12] + (", with uncommitted changes" if made_by["changed"] else ""),
        ),
        (
            "machine",
            f"{machine['processor']} × {machine['processors']}, {machine['system']},"
            f" OMP_NUM_THREADS {machine['threads']}",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]


def _provenance(told: Mapping[str, Mapping], notebooks: int) -> str:
    """provenance.js, which sets one variable, so that it works from a file as well."""
    bad = sorted(name for name, run in told["notebooks"].items() if not run["good"])
    here = f"{len(told['notebooks'])} of {notebooks} notebooks were run here; “how it was made” has machine, versions and commit of each figure."
    if not told["notebooks"]:
        here = "These figures came with the code: none of the notebooks has been run in this folder. make figures runs them."
    elif bad:
        here += f" Not finished: {', '.join(bad)}; what stands there is from earlier, or in part."
    return f"window.provenance = {json.dumps({'here': here, **told}, ensure_ascii=False, separators=(',', ':'), sort_keys=True)};\n"
