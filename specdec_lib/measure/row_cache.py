"""Finished rows on disk, a file per key: what is expensive to measure is measured once."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from specdec_lib.core.files import write_whole
from specdec_lib.measure.fingerprints import short_digest
from specdec_lib.workload import Prompt

Row = dict[str, Any]


@dataclass(frozen=True)
class RowCache:
    """The finished rows of one measurement by key, such as a prompt's; without a folder, none are
    kept.

    folder    named after `fingerprint` of all that the rows depend on, but for their keys
    """

    folder: Path | None

    def rows(self, key: str, make: Callable[[], list[Row]], count: int | None = None) -> list[Row]:
        """The rows of a key: read if they are whole and `count` of them, else made and kept, where
        numbers of NumPy become Python's.
        """
        found = self.read(key)
        if not found or count not in (None, len(found)):
            found = make()
            self.write(key, found)
        return found

    def read(self, key: str) -> list[Row]:
        """The kept rows of a key; none if nothing is kept, or its file is damaged."""
        if self.folder is None:
            return []
        try:
            known, body = _file(self.folder, key).read_text(encoding="utf-8").split("\n", 1)
            return json.loads(body) if known == short_digest(body) else []
        except (FileNotFoundError, ValueError):
            return []

    def write(self, key: str, rows: list[Row]) -> None:
        """Keep the rows of a key, whole or not at all."""
        if self.folder is None:
            return
        body = json.dumps(rows, default=lambda number: number.item())
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(_file(self.folder, key), f"{short_digest(body)}\n{body}".encode())


def _file(folder: Path, key: str) -> Path:
    return folder / f"{short_digest(key)}.json"


def records(table: pd.DataFrame) -> list[Row]:
    """The rows of a table."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def key_of(prompt: Prompt) -> str:
    """The key of a prompt's rows: its name and all else that it says."""
    return json.dumps(asdict(prompt))
