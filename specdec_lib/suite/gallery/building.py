"""`specdec gallery`: lay the figures out as one page, index.html in their folder.

What differs from run to run stands in `provenance.js`, beside the page, and comes from the manifest
of each notebook's last run, in `runs/` beside the figures. In a clone that was never run there is
neither that nor the script that interactive figures need: the page then links to their images.
"""

import dataclasses
import datetime
import functools
import json
import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import NOTEBOOKS, figures_folder, file_digest, write_together
from specdec_lib.core.processor import processor_name
from specdec_lib.suite.notebook import read_cells, read_introduction, read_parameters

HERE = Path(__file__).parent
UNDESCRIBED = {"title": "", "see": "Not described in specdec_lib/suite/gallery/figures.toml yet."}
SCRIPT = "plotly.min.js"
KINDS = (".html", ".png", ".csv")  # of figure files
PACKAGES = ("torch", "transformers", "plotly", "numpy", "pandas", "papermill")
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures")


def main(arguments: Sequence[str] | None = None) -> None:
    """Lay out a folder's figures; raises ValueError if the folder cannot be used."""
    parser = Parser("gallery", __doc__, writes=None)
    parser.add_common("--out", note="without, the folder SPECDEC_FIGURES names, else figures/")
    print(build((parser.parse_args(arguments).out or figures_folder()).expanduser().resolve()))


@dataclass(frozen=True)
class Manifest:
    """One run of one notebook; if it is "running" and no process runs it, it was interrupted."""

    profile: str
    parameters: dict[str, object]  # that were given
    fingerprint: dict[str, str]  # a digest per thing that the run depends on
    state: Literal["running", "finished", "failed"]
    made: dict[str, str]  # as `made_here` says it
    seconds: float = 0.0
    figures: dict[str, str] = field(default_factory=dict)  # a digest per figure file that it wrote
    error: str = ""

    def write(self, path: Path) -> None:
        """Write the manifest, whole or not at all."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        write_together({path: text.encode(errors="replace")})

    def wrote(self, path: Path) -> bool:
        """Whether a figure file is what this run left there."""
        return path.exists() and self.figures.get(path.name) == file_digest(path)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest kept in a file; None if there is none, or none that can be read."""
    from pydantic import TypeAdapter, ValidationError

    try:
        found = TypeAdapter(Manifest).validate_json(path.read_bytes())
        return found if found.made.keys() >= {"date", "commit", "machine", "versions"} else None
    except (OSError, ValidationError):
        return None


def made_here() -> dict[str, str]:
    """Now, the commit (whose files in figures/ may differ), this machine and the versions on it."""
    look = {"cwd": NOTEBOOKS.parent, "capture_output": True, "text": True, "check": True}
    git = functools.partial(subprocess.run, **look)
    try:
        commit = git(["git", "rev-parse", "HEAD"]).stdout[:12]
        changed = git(["git", "--no-optional-locks", *CHANGES]).stdout.strip()
        commit += ", with uncommitted changes" if changed else ""
    except (OSError, subprocess.SubprocessError):
        commit = "unknown"
    processors, threads = os.cpu_count(), os.environ.get("OMP_NUM_THREADS") or "unset"
    system = f"{platform.system()} {platform.machine()}"
    versions = {"python": platform.python_version()} | {one: version(one) for one in PACKAGES}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit,
        "machine": f"{processor_name()} × {processors}, {system}, OMP_NUM_THREADS {threads}",
        "versions": ", ".join(map(" ".join, versions.items())),
    }


@functools.cache
def descriptions() -> dict[str, dict[str, str]]:
    """All figures' words by name: `title`, and what to `see`."""
    return tomllib.loads((HERE / "figures.toml").read_text(encoding="utf-8"))


def build(folder: Path, *, notebooks: Path = NOTEBOOKS) -> Path:
    """Write a folder's index.html, whose path comes back, with provenance.js and the plotly script
    beside it. The page is the same, byte for byte, for the same figures, notebooks and parameters.
    Raises ValueError if the folder does not exist.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no figure folder {folder}; make figures makes it")
    if not (folder / SCRIPT).exists():
        from specdec_lib.show.saving import write_script  # late: plotly takes a second

        write_script(folder)
    chapters = [_chapter(notebook, folder) for notebook in chapters_of(notebooks)]
    templates = {"provenance.js": "provenance.js", "index.html": "page.html"}
    pages = {folder / name: render(one, chapters).encode() for name, one in templates.items()}
    write_together(pages)
    return folder / "index.html"


def chapters_of(notebooks: Path) -> list[Path]:
    """The notebooks in the order of their chapters: the scorecard first, the others by number."""
    found = notebooks.glob("[0-9][0-9]_*.ipynb")
    return sorted(found, key=lambda path: (not path.stem.endswith("_scorecard"), path.name))


def render(template: str, chapters: Sequence[Mapping[str, object]]) -> str:
    """A template of this folder, page.html or provenance.js, filled in."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    def marked(text: str) -> Markup:
        """Text whose backticks and stars, as in markdown, become markup."""
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
        return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text))

    look = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, **look)
    environment.filters["marked"] = marked
    return environment.get_template(template).render(chapters=chapters)


def figure_files(folder: Path, notebook: Path) -> dict[str, set[str]]:
    """The figures of a notebook that lie in a folder, with the kinds of their files, in the order
    in which the notebook names them, others last.
    """
    found: dict[str, set[str]] = {}
    for path in sorted(folder.glob(f"{notebook.stem[:2]}_*")):
        if path.suffix in KINDS:
            found.setdefault(path.stem, set()).add(path.suffix[1:])
    code = "".join(source for kind, source in read_cells(notebook) if kind == "code")
    places = {name: code.find(f'"{name}"') for name in found}
    return {name: found[name] for name in sorted(found, key=lambda n: (places[n] < 0, places[n]))}


def _chapter(notebook: Path, folder: Path) -> dict[str, object]:
    """A notebook, its figures and its last run, as the templates read them."""
    figures = figure_files(folder, notebook).items()
    manifest = read_manifest(folder / "runs" / f"{notebook.stem}.json")
    return {
        "name": notebook.stem,
        "manifest": manifest,
        "link": Path(os.path.relpath(notebook, folder)).as_posix(),
        "introduction": read_introduction(notebook),
        "parameters": read_parameters(notebook),
        "cards": [_card(folder / name, kinds, manifest) for name, kinds in figures],
    }


def _card(figure: Path, kinds: set[str], manifest: Manifest | None) -> dict[str, object]:
    """A figure; `made` says that its table or page is what the run left, with what was `given`."""
    words, image = descriptions().get(figure.name, UNDESCRIBED), figure.with_suffix(".png")
    files = (figure.with_suffix(kind) for kind in (".csv", ".html"))
    made = manifest is not None and any(map(manifest.wrote, files))
    given = manifest.parameters.items() if made else ()
    head = image.read_bytes()[:24] if image.exists() else b""
    return {
        "name": figure.name,
        "title": words["title"] or figure.name,
        "see": words["see"],
        "files": kinds,
        "size": [int.from_bytes(head[at : at + 4], "big") for at in (16, 20)],  # in a PNG's header
        "made": made,
        "given": ", ".join(f"{name} = {value!r}" for name, value in given),
    }
