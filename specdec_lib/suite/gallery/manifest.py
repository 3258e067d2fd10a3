"""What one run of a notebook was made with and what it left, kept beside its figures."""

import dataclasses
import datetime
import json
import os
import platform
import subprocess
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from specdec_lib.core.files import REPOSITORY, file_digest, write_together
from specdec_lib.models.processor import processor_name

PACKAGES = ("torch", "transformers", "plotly", "numpy", "pandas", "papermill")
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures")
FACTS = {"date", "commit", "machine", "versions"}  # that `made_here` tells


@dataclass(frozen=True)
class Manifest:
    """One run of one notebook.

    profile        "smoke" or "full"
    parameters     those that were given, by name; the others had the notebook's defaults
    fingerprint    a digest per thing that the run depends on, such as cells, library and data
    state          "running", "finished" or "failed"; if it is "running" and no process runs it, the
                   run was interrupted
    made           date, commit, machine and versions, as `made_here` says them
    seconds        that the run took
    figures        a digest per figure file that the run wrote, by file name
    error          what went wrong; "" if nothing did
    """

    profile: str
    parameters: dict[str, object]
    fingerprint: dict[str, str]
    state: Literal["running", "finished", "failed"]
    made: dict[str, str]
    seconds: float = 0.0
    figures: dict[str, str] = field(default_factory=dict)
    error: str = ""

    def write(self, path: Path) -> None:
        """Write the manifest as JSON, whole or not at all."""
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
    except (OSError, ValidationError):
        return None
    return found if found.made.keys() >= FACTS else None


def made_here() -> dict[str, str]:
    """Now, the commit (whose files in figures/ may differ), this machine and the versions on it."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        versions[package] = version(package)
    processors = f"{processor_name()} × {os.cpu_count()}"
    system = f"{platform.system()} {platform.machine()}"
    threads = os.environ.get("OMP_NUM_THREADS") or "unset"
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "machine": f"{processors}, {system}, OMP_NUM_THREADS {threads}",
        "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
    }


def _commit() -> str:
    """The commit that is checked out, and whether files outside figures/ differ from it."""
    try:
        commit = _git("rev-parse", "HEAD")[:12]
        changed = _git("--no-optional-locks", *CHANGES).strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{commit}, with uncommitted changes" if changed else commit


def _git(*arguments: str) -> str:
    """What a git command prints, run in the repository."""
    command = ["git", *arguments]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return run.stdout
