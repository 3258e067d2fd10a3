"""`specdec hf`: the closest flags of other engines for an exported setting, and what is lost."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from specdec_lib.core.commandline import Parser
from specdec_lib.models.katz.model import Katz
from specdec_lib.suite.hf.flags import flags
from specdec_lib.suite.hf.settings import ExportedSetting, import_setting, parse_setting


@dataclass(frozen=True)
class Absent:
    """The place of a model that is not loaded: its name, its size and where it came from."""

    name: str
    kind: str
    vocabulary: int
    source: str | None
    max_positions: int = sys.maxsize
    runtime: ClassVar[str] = ""
    usage: ClassVar[None] = None

    def forget(self) -> None:
        """Do nothing: there is no model."""

    def score(self, context: object, tree: object) -> None:
        """Raises ValueError: there is no model."""
        raise ValueError(
            f"the model {self.name!r} is not loaded; give it to specdec_lib.suite.hf.import_setting"
        )


def absent(data: ExportedSetting) -> dict[str, object]:
    """Stand-ins for the models that an exported setting names, and empty tables."""
    found: dict[str, object] = {
        table["sha256"]: np.full(table["bigrams"], -1) for table in tables(data.draft)
    }
    for name, one in data.models.items():
        if one.kind == "Katz":
            found[name] = replace(Katz.fit([np.zeros(1, np.int64)], one.vocabulary), name=name)
        else:
            found[name] = Absent(name, one.kind, one.vocabulary, one.source)
    return found


def tables(value: object) -> Iterator[Mapping[str, object]]:
    """Every table of bigrams that is named in a piece of JSON."""
    if isinstance(value, dict) and value.keys() == {"bigrams", "sha256"}:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from tables(inner)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the flags of every engine; raises ValueError if the file is no exported setting."""
    parser = Parser("hf", __doc__.partition(": ")[2])
    parser.add_argument("file", type=Path, help="JSON that `export_setting` wrote")
    given = parser.parse_args(arguments)
    try:
        text = given.file.read_text(encoding="utf-8")
        found = flags(import_setting(text, absent(parse_setting(text))))
    except (OSError, ValueError) as error:
        raise ValueError(f"{given.file}: {error}") from error
    for one in found:
        print("\n  ".join((one.engine, *(one.line or "(no speculation)").splitlines())))
        print(f"  sampling: {dict(one.sampling)}")
        print("\n".join(f"  lost: {what}" for what in one.lost) or "  lost: nothing")
