"""The machine, versions and commit that a run used."""

import datetime
import os
import platform
import subprocess
from importlib.metadata import version

from specdec_lib.core.files import REPOSITORY
from specdec_lib.core.processor import processor_name
from specdec_lib.suite.gallery.manifest import Host, Made

PACKAGES = ("torch", "transformers", "plotly", "numpy", "pandas", "papermill")
CHANGES = ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures")


def surroundings() -> Made:
    """Date, machine, versions and commit, and whether tracked files outside figures/ differ."""
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
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return Made(date, commit, changed, machine, versions)


def _git(*words: str) -> str:
    command = ["git", "--no-optional-locks", *words]
    return subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=30
    ).stdout.strip()
