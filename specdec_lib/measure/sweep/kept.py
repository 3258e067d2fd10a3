"""Finished rows on disk: one file per prompt, with a digest that shows whether it is damaged."""

import json
from collections.abc import Callable
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

    def rows(
        self, prompt: Prompt, make: Callable[[], list[Row]], count: int | None = None
    ) -> list[Row]:
        """The rows of a prompt: read if they are whole and `count` of them, else made and kept,
        where numbers of NumPy become Python's.
        """
        if self.folder is None:
            return make()
        path = self.folder / f"{short_digest(json.dumps(asdict(prompt)))}.json"
        try:
            known, body = path.read_text(encoding="utf-8").split("\n", 1)
            found = json.loads(body) if known == short_digest(body) else []
        except (FileNotFoundError, ValueError):
            found = []
        if not found or count not in (None, len(found)):
            found = make()
            body = json.dumps(found, default=lambda number: number.item())
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, f"{short_digest(body)}\n{body}".encode())
        return found
