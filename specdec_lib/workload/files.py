"""What is stored, and that it is whole: every file of a made folder has its digest in the folder's card."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data"
REMEDY = "restore it with `git checkout data`, or make it anew with `make ladder`"


def checked_card(folder: Path, needed: Iterable[str] = ("tokenizer.json", "katz.npz")) -> dict:
    """A folder's card, after every file it lists was found whole.

    needed    files that it must list

    Raises ValueError naming the file that is missing or damaged.
    """
    path = folder / "card.json"
    if not path.is_file():
        raise ValueError(f"stored file {path} is missing; {REMEDY}")
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        files = card["files"]
        missing = set(needed) - files.keys()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"stored file {path} is damaged ({error!r}); {REMEDY}") from error
    if missing:
        raise ValueError(f"stored file {path} is damaged (it does not list {', '.join(sorted(missing))}); {REMEDY}")
    for name, digest in files.items():
        if not (folder / name).is_file():
            raise ValueError(f"stored file {folder / name} is missing; {REMEDY}")
        if file_digest(folder / name) != digest:
            raise ValueError(f"stored file {folder / name} is damaged: its SHA-256 is not the card's; {REMEDY}")
    return card


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
