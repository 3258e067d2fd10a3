"""What is remembered of a notebook's last run, in `runs/` beside the figures: enough to say who
made each file, and whether it still is that file.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from specdec_lib.core.files import write_whole

STATES = ("running", "finished", "failed")
Origin = Mapping[str, object]  # digest, profile, parameters and made of one file of an earlier run


@dataclass(frozen=True)
class Manifest:
    """One run of one notebook.

    values         every parameter as it was, `parameters` those that differ from the notebook's own
    fingerprint    a digest per thing that the run depends on
    state          "running" (and if nobody runs it: interrupted), "finished" or "failed"
    made           date, commit, machine and versions
    figures        the digest of each figure file that it wrote
    older          files that an earlier run wrote and this one has not, with their origin
    """

    notebook: str
    profile: str
    parameters: Mapping[str, object]
    values: Mapping[str, object]
    fingerprint: Mapping[str, str]
    state: str
    made: Mapping[str, object]
    seconds: float = 0.0
    figures: Mapping[str, str] = field(default_factory=dict)
    older: Mapping[str, Origin] = field(default_factory=dict)
    error: str = ""

    def write(self, path: Path) -> None:
        """Keep it, whole or not at all."""
        write_whole(
            path,
            (json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False) + "\n").encode(),
        )

    def origins(self) -> dict[str, Origin]:
        """Where each file comes from that this run or one before it wrote."""
        own = {"profile": self.profile, "parameters": self.parameters, "made": self.made}
        return dict(self.older) | {
            name: {"digest": digest, **own} for name, digest in self.figures.items()
        }

    def origin(self, path: Path) -> Origin | None:
        """Where a figure file comes from; None if it is not there, or is not what any known run
        wrote.
        """
        found = self.origins().get(path.name)
        return found if found and path.exists() and digest(path) == found["digest"] else None


def remembered(path: Path) -> Manifest | None:
    """The manifest kept in a file; None if there is none, or none that can be read."""
    try:
        told = Manifest(**json.loads(path.read_text(encoding="utf-8")))
        whole = told.state in STATES and all(
            isinstance(one, dict) for one in (told.fingerprint, told.figures, told.older, told.made)
        )
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return told if whole else None


def digest(path: Path) -> str:
    """A hash of a file's content."""
    return digest_of([path.read_bytes()])


def digest_of(pieces: Iterable[bytes]) -> str:
    """A hash of pieces one after the other."""
    told = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        told.update(piece)
    return told.hexdigest()
