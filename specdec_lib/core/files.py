"""The folders of the repository, and files that are written whole or not at all. An unfinished file
is named ".NAME.PID.partial", so that a later process knows which one wrote it.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safetensors import safe_open

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "data"
REMEDY = "restore it with `git checkout data`"
PARTIAL = re.compile(r"\..+\.(\d{1,9})\.partial(\.ipynb)?")


def figures_folder() -> Path:
    """Where figures go: the folder that SPECDEC_FIGURES names, else the repository's own."""
    return _named_folder("SPECDEC_FIGURES", REPOSITORY / "figures")


def cache_folder() -> Path:
    """The folder of files that can be regenerated: SPECDEC_CACHE, else data/cache."""
    return _named_folder("SPECDEC_CACHE", DATA / "cache")


def _named_folder(variable: str, default: Path) -> Path:
    named = os.environ.get(variable)
    return Path(named).expanduser().resolve() if named else default


def partial(path: Path, suffix: str = "") -> Path:
    """The name under which this process writes a file before it is whole."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial{suffix}")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically; raises ValueError if a link, a device or a folder is there."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Replace files once all of them are written, so that a full disk leaves every old one."""
    for path in contents:
        check_replaceable(path)
    unfinished = {path: partial(path) for path in contents}
    try:
        for path, content in contents.items():
            unfinished[path].write_bytes(content)
        for path, whole in unfinished.items():
            os.replace(whole, path)
    finally:
        for path in unfinished.values():
            path.unlink(missing_ok=True)


def sweep_partial(folder: Path) -> list[str]:
    """Delete the unfinished files of ended processes in a folder, and return their names."""
    import psutil

    found = []
    for path in sorted(folder.glob(".*.partial*")):
        if (match := PARTIAL.fullmatch(path.name)) and not psutil.pid_exists(int(match[1])):
            path.unlink(missing_ok=True)
            found.append(path.name)
    return found


def check_output(path: Path) -> None:
    """Raises ValueError unless a file can be written there; missing folders are made."""
    check_replaceable(path)
    check_writable(path.parent)


def check_replaceable(path: Path) -> None:
    """Raises ValueError if a link, a device or a folder is there."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ValueError(
            f"{path} is {_kind(path)}, and only a file is replaced; name another place"
        )


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "a link"
    return "a folder" if path.is_dir() else "a device"


def check_writable(folder: Path) -> None:
    """Make a folder if need be; raises ValueError if it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        suffix = f".{os.getpid()}.partial"
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".trial", suffix=suffix) as trial:
            trial.write(b"x" * 4096)
            trial.flush()
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise ValueError(
            f"the folder {folder} cannot be written to ({reason}); mend that, or name another"
        ) from problem


def checked_card(folder: Path, needed: Iterable[str]) -> dict:
    """The manifest card.json of a folder; ValueError unless it lists all `needed` files, and each
    listed file has the SHA-256 that stands there.
    """
    from pydantic_core import from_json  # late: `--help` needs none

    path = folder / "card.json"
    if not path.is_file():
        raise ValueError(f"stored file {path} is missing; {REMEDY}")
    try:
        card = from_json(path.read_bytes())
        files = card["files"]
        if missing := set(needed) - files.keys():
            raise ValueError(f"it does not list {', '.join(sorted(missing))}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"stored file {path} is damaged ({error!r}); {REMEDY}") from error
    for name, digest in files.items():
        if not (folder / name).is_file():
            raise ValueError(f"stored file {folder / name} is missing; {REMEDY}")
        if file_digest(folder / name) != digest:
            raise ValueError(
                f"stored file {folder / name} is damaged: its SHA-256 is not the card's; {REMEDY}"
            )
    return card


@contextmanager
def tensor_file(path: Path) -> "Iterator[safe_open]":
    """A safetensors file, opened; raises ValueError if it is damaged or lacks what is read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            yield file
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged, or no such safetensors file: {error}") from None


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
