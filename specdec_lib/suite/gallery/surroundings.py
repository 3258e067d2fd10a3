"""What a run ran on: machine, versions and commit."""

import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from specdec_lib.core.files import REPOSITORY

PACKAGES = ("torch", "transformers", "plotly", "numpy", "pandas", "papermill")


def surroundings() -> dict[str, object]:
    """Date, commit (and whether files that git knows differ from it, figures aside), machine and
    versions, in words.
    """
    commit, changed = _commit()
    versions = {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}
    now = datetime.datetime.now(datetime.UTC)
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "processors": os.cpu_count(),
    }
    machine["threads"] = os.environ.get("OMP_NUM_THREADS") or "unset"
    return {
        "date": now.strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit,
        "changed": changed,
        "machine": machine,
        "versions": versions,
    }


def _commit() -> tuple[str, bool]:
    """The commit's number and whether the tree differs from it; "unknown" without git."""
    changes = ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!figures")
    try:
        return _git("rev-parse", "HEAD"), bool(_git(*changes))
    except (OSError, subprocess.SubprocessError):
        return "unknown", False


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", *words],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.strip()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's name as the system gives it, else its architecture."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
