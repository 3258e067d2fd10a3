"""The manifest of a notebook's last run, kept in `runs/` beside the figures: who made each figure
file, and whether it still is that.
"""

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

from specdec_lib.core.files import REPOSITORY, file_digest, write_whole
from specdec_lib.core.processor import processor_name

PACKAGES = ("torch", "transformers", "plotly", "numpy", "pandas", "papermill")
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures")


def made_here() -> dict[str, str]:
    """Now, the commit (whose files in figures/ may differ), this machine and the versions on it."""
    try:
        commit = _git("rev-parse", "HEAD")[:12]
        commit += ", with uncommitted changes" if _git(*CHANGES) else ""
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


def _git(*words: str) -> str:
    command = ["git", "--no-optional-locks", *words]
    look = {"cwd": REPOSITORY, "capture_output": True, "text": True, "timeout": 30}
    return subprocess.run(command, check=True, **look).stdout.strip()


@dataclass(frozen=True)
class Manifest:
    """One run of one notebook.

    parameters     those that differ from the notebook's own
    fingerprint    a digest per thing that the run depends on
    state          "running" means interrupted, if no process runs it any more
    made           as `made_here` says it
    figures        the digest of each figure file that it wrote
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
        """Write the manifest, whole or not at all."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        write_whole(path, (text + "\n").encode(errors="replace"))

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
