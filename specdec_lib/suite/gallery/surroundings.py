"""The machine, versions and commit that a run used."""

import datetime
import os
import platform
import subprocess
from importlib.metadata import version

from specdec_lib.core.files import REPOSITORY
from specdec_lib.core.processor import processor_name

PACKAGES = ("torch", "transformers", "plotly", "numpy", "pandas", "papermill")
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures")


def surroundings() -> dict[str, object]:
    """Date, machine, versions and commit, and whether tracked files outside figures/ differ."""
    try:
        commit, changed = _git("rev-parse", "HEAD"), bool(_git(*CHANGES))
    except (OSError, subprocess.SubprocessError):
        commit, changed = "unknown", False
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS") or "unset",
    }
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    made = {"date": date, "commit": commit, "changed": changed}
    return made | {"machine": machine, "versions": versions}


def _git(*words: str) -> str:
    command = ["git", "--no-optional-locks", *words]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=30
    ).stdout.strip()
