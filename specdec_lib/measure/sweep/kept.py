"""Finished rows on disk: one file per prompt, written whole, with a digest that tells a damaged
one.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path

from specdec_lib.workload import Prompt

Row = dict[str, object]


@dataclass(frozen=True)
class Kept:
    """The finished prompts of one sweep.

    folder      made when the first rows are kept
    settings    rows that every prompt has
    """

    folder: Path
    settings: int

    def read(self, prompt: Prompt) -> list[Row] | None:
        """The rows of a prompt; None where there are none, or not whole."""
        try:
            digest, body = self._place(prompt).read_text(encoding="utf-8").split("\n", 1)
        except (FileNotFoundError, ValueError):
            return None
        if digest != _digest(body):
            return None
        rows = json.loads(body)
        return rows if len(rows) == self.settings else None

    def write(self, prompt: Prompt, rows: Sequence[Row]) -> None:
        """Keep the rows of a prompt: all of them, or, if it is interrupted, none."""
        self.folder.mkdir(parents=True, exist_ok=True)
        body = json.dumps(rows, default=_number)
        handle, unfinished = tempfile.mkstemp(dir=self.folder, suffix=".partial")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(f"{_digest(body)}\n{body}")
            os.replace(unfinished, self._place(prompt))
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise

    def _place(self, prompt: Prompt) -> Path:
        readable = re.sub(r"[^\w.-]+", "-", prompt.name)[:80]
        return self.folder / f"{readable}-{_digest(json.dumps(asdict(prompt)))[:12]}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _number(value: object) -> int | float:
    """A number of another library as Python's."""
    return int(value) if isinstance(value, Integral) else float(value)
