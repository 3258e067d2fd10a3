"""What all commands share: the parser, the common options, checks of places, and CSV tables."""

import argparse
import contextlib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from specdec_lib.core.files import check_output, check_writable, write_whole

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
    "--scheduler": (
        str,
        "count on the workers of this Dask scheduler, tcp://127.0.0.1:PORT or tls://",
    ),
}
FROM_ZERO = ("seed", "others")  # whole numbers that may be 0; all others count from 1
TIMING = ("bench", "compare", "plan", "measure latency", "measure learning", "measure walltime")
FOLDERS = ("out", "cache", "export")  # options that name a folder to write to


class Parser(argparse.ArgumentParser):
    """The parser of one subcommand (verb) of `specdec`; a wrong command line raises ValueError. It
    checks the paths given, and those it always `writes`; with None, it checks none. A
    `description` may be a module's docstring, which begins with "`specdec VERB`: ".

    latest    the parser that was made last, that of the verb that runs
    common    its options that are in `OPTIONS`
    """

    latest: ClassVar["Parser | None"] = None

    def __init__(self, verb: str, description: str, *, writes: Sequence[Path] | None = ()) -> None:
        about = description.removeprefix(f"`specdec {verb}`: ")
        super().__init__(prog=f"specdec {verb}", description=about, allow_abbrev=False)
        self.register("type", Path, path_argument)
        self.writes = writes
        self.common: list[str] = []
        Parser.latest = self

    def parse_args(self, *arguments: object) -> argparse.Namespace:
        """The options; raises ValueError for a wrong count or path, and makes missing folders."""
        given = super().parse_args(*arguments)
        _check_counts(given)
        if self.writes is not None:
            self._check_places(given)
        return given

    def _check_places(self, given: argparse.Namespace) -> None:
        named = {name: one for name, one in vars(given).items() if isinstance(one, Path)}
        table = named.pop("csv", None)
        if table and table.suffix != ".csv":  # nothing that is read is called so
            raise ValueError(f"--csv names a file that ends in .csv, got {table}")
        folders = {name: named.pop(name) for name in FOLDERS if name in named}
        for (name, out), (other, read) in product(folders.items(), named.items()):
            if out.exists() and read.exists() and out.samefile(read):
                raise ValueError(f"--{name} writes to {out}, which --{other} reads; name another")
        for folder in folders.values():
            check_writable(folder)
        for file in (*self.writes, *filter(None, [table])):
            check_output(file)

    def error(self, message: str) -> None:
        """Raise the message as a ValueError; argparse would print its usage and exit."""
        if "--scheduler" in message and "--scheduler" not in self.common:
            why = (
                "it times what it runs, and seconds of other machines are no comparison"
                if self.prog.removeprefix("specdec ") in TIMING
                else "it runs on this machine alone"
            )
            raise ValueError(f"{self.prog} takes no --scheduler: {why}")
        raise ValueError(f"{message}; {self.prog} --help shows the options")

    def add_common(self, name: str, default: object = None, note: str = "") -> None:
        """Add the option `name` with its meaning in `OPTIONS`, and a note of this verb."""
        kind, meaning = OPTIONS[name]
        self.common.append(name)
        shown = "" if default is None else f" (default: {default})"
        words = f"{meaning}{'; ' if note else ''}{note}{shown}"
        self.add_argument(name, type=kind, default=default, help=words)


def parse_measurement(
    verb: str,
    description: str,
    writes: Sequence[Path],
    arguments: Sequence[str] | None,
    limit: int,
    *,
    note: str = "of each domain",
    counts: bool = False,
) -> argparse.Namespace:
    """Parse the line of a measurement whose option is --limit, and --scheduler where it `counts`;
    PyTorch gets one thread.
    """
    import torch  # late: `--help` needs none

    parser = Parser(verb, description, writes=writes)
    if counts:
        parser.add_common("--scheduler")
    parser.add_common("--limit", limit, note)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    return given


def _check_counts(given: argparse.Namespace) -> None:
    for name, value in vars(given).items():
        least = 0 if name in FROM_ZERO else 1
        for count in value if isinstance(value, (list, tuple)) else [value]:
            if type(count) is int and count < least:
                raise ValueError(f"--{name.replace('_', '-')} counts from {least}, got {count}")


def path_argument(text: str) -> Path:
    """A path, its ~ replaced; raises ArgumentTypeError if no file can be called so."""
    if not text:
        raise argparse.ArgumentTypeError("a path has a name, got ''")
    try:
        path = Path(text).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()
    except (OSError, RuntimeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise argparse.ArgumentTypeError(f"{shorten(text)!r} is no path ({reason})") from problem
    return path


def shorten(text: str, longest: int = 80) -> str:
    """A text without its middle if it is longer."""
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


def write_csv(table: "DataFrame", path: Path, digits: int | None = None) -> None:
    """Write a table as CSV, whole or not at all, rounded to `digits` decimals; makes the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = table if digits is None else table.round(digits)
    write_whole(path, rounded.to_csv(index=False).encode())
