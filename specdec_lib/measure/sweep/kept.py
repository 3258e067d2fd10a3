"""Finished rows on disk: one file per prompt, with a digest that shows whether it is damaged."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from specdec_lib.core.files import write_whole
from specdec_lib.measure.sweep.identity import short_digest
from specdec_lib.workload import Prompt

Row = dict[str, object]


@dataclass(frozen=True)
class Kept:
    """The finished prompts of one measurement, in a folder; without one, nothing is kept."""

    folder: Path | None

    def read(self, prompt: Prompt) -> list[Row] | None:
        """The rows of a prompt; None where there are none, or not whole."""
        try:
            found, body = self._file(prompt).read_text(encoding="utf-8").split("\n", 1)
        except (FileNotFoundError, ValueError):
            return None
        return json.loads(body) or None if found == short_digest(body) else None

    def write(self, prompt: Prompt, rows: Sequence[Row]) -> None:
        """Keep the rows of a prompt, whole or not at all; numbers of NumPy become Python's."""
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            body = json.dumps(rows, default=lambda number: number.item())
            write_whole(self._file(prompt), f"{short_digest(body)}\n{body}".encode())

    def rows(
        self, prompt: Prompt, make: Callable[[], list[Row]], count: int | None = None
    ) -> list[Row]:
        """The rows of a prompt, read if there are `count` of them, else made and kept."""
        found = self.read(prompt)
        if found is None or count not in (None, len(found)):
            self.write(prompt, found := make())
        return found

    def _file(self, prompt: Prompt) -> Path:
        if self.folder is None:
            raise FileNotFoundError
        readable = re.sub(r"[^\w.-]+", "-", prompt.name)[:80]
        return self.folder / f"{readable}-{short_digest(json.dumps(asdict(prompt)))[:12]}.json"
