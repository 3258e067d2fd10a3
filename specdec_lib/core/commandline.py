"""What all commands share: the parser, and one word and meaning for each common option."""

import argparse
from pathlib import Path

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
