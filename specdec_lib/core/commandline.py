"""What all commands share: the parser, one word and meaning for each common option, and how a
table is written.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.files import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

OPTIONS: dict[str, tuple[type, str]] = {
    "--prompts": (str, "a prompt set by name, or a file FILE.jsonl"),
    "--limit": (int, "the first so many prompts of each set"),
    "--max-new-tokens": (int, "new tokens per prompt, at most"),
    "--temperature": (float, "of sampling; 0 is greedy"),
    "--top-k": (int, "sample among the k likeliest tokens"),
    "--seed": (int, "of all randomness"),
    "--csv": (Path, "where the table is written"),
    "--out": (Path, "the folder that is written to"),
}


class Parser(argparse.ArgumentParser):
    """The parser of one verb of `specdec`; a wrong command line raises ValueError."""

    def __init__(self, verb: str, description: str) -> None:
        super().__init__(prog=f"specdec {verb}", description=description, allow_abbrev=False)

    def error(self, message: str) -> None:
        """Raise the message as a ValueError; argparse would print its usage and exit."""
        raise ValueError(f"{message}; {self.prog} --help shows the options")

    def add_common(self, name: str, default: object = None, note: str = "") -> None:
        """Add the option `name` with its meaning in `OPTIONS`, and a note of this verb."""
        kind, meaning = OPTIONS[name]
        shown = "" if default is None else f" (default: {default})"
        self.add_argument(
            name, type=kind, default=default, help=f"{meaning}{'; ' if note else ''}{note}{shown}"
        )


def write_csv(table: "DataFrame", path: Path, digits: int | None = None) -> None:
    """Write a table as CSV, whole or not at all, its numbers rounded; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = table if digits is None else table.round(digits)
    write_whole(path, rounded.to_csv(index=False).encode())
