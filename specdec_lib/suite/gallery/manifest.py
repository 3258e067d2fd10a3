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


@dataclass(frozen=True)
class Host:
    """What a run ran on; `threads` is the setting, "unset" without one."""

    system: str
    processor: str
    processors: int | None
    threads: str


@dataclass(frozen=True)
class Made:
    """When and where a run was made, of which commit; `changed` if tracked files differed."""

    date: str
    commit: str
    changed: bool
    machine: Host
    versions: dict[str, str]

    @classmethod
    def now(cls) -> "Made":
        """Here, with this commit; files in figures/ may differ."""
        try:
            commit, changed = _git("rev-parse", "HEAD"), bool(_git(*CHANGES))
        except (OSError, subprocess.SubprocessError):
            commit, changed = "unknown", False
        machine = Host(
            f"{platform.system()} {platform.machine()}",
            processor_name(),
            os.cpu_count(),
            os.environ.get("OMP_NUM_THREADS") or "unset",
        )
        date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        versions = {name: version(name) for name in PACKAGES}
        return cls(date, commit, changed, machine, {"python": platform.python_version()} | versions)


def _git(*words: str) -> str:
    command = ["git", "--no-optional-locks", *words]
    look = {"cwd": REPOSITORY, "capture_output": True, "text": True, "timeout": 30}
    return subprocess.run(command, check=True, **look).stdout.strip()


@dataclass(frozen=True)
class Origin:
    """Where one figure file comes from: its digest, and the run that wrote it."""

    digest: str
    profile: str
    parameters: dict[str, object]
    made: Made


@dataclass(frozen=True)
class Manifest:
    """One run of one notebook.

    values         every parameter as it was, `parameters` those that differ from the notebook's own
    fingerprint    a digest per thing that the run depends on
    state          "running" means interrupted, if no process runs it any more
    figures        the digest of each figure file that it wrote
    older          files that an earlier run wrote and this one has not, with their origin
    """

    notebook: str
    profile: str
    parameters: dict[str, object]
    values: dict[str, object]
    fingerprint: dict[str, str]
    state: Literal["running", "finished", "failed"]
    made: Made
    seconds: float = 0.0
    figures: dict[str, str] = field(default_factory=dict)
    older: dict[str, Origin] = field(default_factory=dict)
    error: str = ""

    def write(self, path: Path) -> None:
        """Write the manifest, whole or not at all."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        write_whole(path, (text + "\n").encode(errors="replace"))

    def origins(self) -> dict[str, Origin]:
        """Where each file comes from that this run or one before it wrote."""
        run = self.profile, self.parameters, self.made
        return self.older | {name: Origin(one, *run) for name, one in self.figures.items()}

    def origin(self, path: Path) -> Origin | None:
        """Where a figure file comes from; None if it is not what any known run wrote."""
        found = self.origins().get(path.name)
        return found if found and path.exists() and file_digest(path) == found.digest else None


def read_manifest(path: Path) -> Manifest | None:
    """The manifest kept in a file; None if there is none, or none that can be read."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Manifest).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
