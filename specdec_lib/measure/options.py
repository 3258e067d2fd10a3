"""What verbs share: the options that several of them have, checks of values and places, and the
files that a measurement is written to. It imports no heavy package, so that help comes at once.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from specdec_lib.core.files import check_output, check_writable, write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

RACE_REQUEST = "Write a Python function that returns the mean of a list of numbers."
RACE_TOKENS = 96  # new ones of a race to watch, unless another number is asked for
FROM_ZERO = ("seed", "others")  # whole numbers that may be 0; all others count from 1


def to_path(_: Any, tokens: Sequence[Token]) -> Path:
    """A path, its ~ replaced; raises ValueError if no file can be called so."""
    return path_of(tokens[0].value)


def to_paths(_: Any, tokens: Sequence[Token]) -> list[Path]:
    """A path per value, as `to_path` gives one."""
    return [path_of(token.value) for token in tokens]


def path_of(text: str) -> Path:
    """What `to_path` makes of a text."""
    if not text:
        raise ValueError("a path has a name, got ''")
    try:
        path = Path(text).expanduser()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            path.stat()
    except (OSError, RuntimeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ValueError(f"{shorten(text)!r} is no path ({reason})") from problem
    return path


def place(meaning: str) -> Parameter:
    """An option that names a file or a folder."""
    return Parameter(help=meaning, converter=to_path)


def several_places(meaning: str) -> Parameter:
    """An option that names one file or folder, or several."""
    return Parameter(help=meaning, converter=to_paths)


def flag(meaning: str) -> Parameter:
    """An option without a value."""
    return Parameter(help=meaning, show_default=False)


def shorten(text: str, longest: int = 80) -> str:
    """A text without its middle if it is longer."""
    half = (longest - 3) // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


Runtime = Literal["reference", "fast", "int8", "auto"]
Dtype = Literal["float32", "float64", "bfloat16"]
ModelFolder = Annotated[
    str | None, Parameter(help="a folder in hub format, or a hub name (default: the embedded one)")
]
Tokenizer = Annotated[
    str | None, Parameter(help="the folder of the tokenizer, where the target's has none")
]
Device = Annotated[str, Parameter(help='"auto", "cpu", "cuda", …')]
Threads = Annotated[int | None, Parameter(help="of torch; by default torch's own choice")]
ChosenThreads = Annotated[
    int | None,
    Parameter(
        help="of torch; by default one or every core, whichever decodes sooner here, or what"
        " OMP_NUM_THREADS says"
    ),
]
Prompts = Annotated[str, Parameter(help="a prompt set by name, or a file FILE.jsonl")]
Out = Annotated[Path | None, place("the folder that is written to")]
OwnPrompts = Annotated[
    str | None,
    Parameter(
        help="a prompt set by name, or a file FILE.jsonl, in place of the embedded prompts; tables"
        " are then written where --csv or --out says",
    ),
]
Limit = Annotated[int, Parameter(help="the first so many prompts of each set")]
DomainLimit = Annotated[int, Parameter(help="so many prompts of each domain")]
SplitLimit = Annotated[int, Parameter(help="so many prompts of each domain and split")]
MaxNewTokens = Annotated[int, Parameter(help="new tokens per prompt, at most")]
Temperature = Annotated[float, Parameter(help="of sampling; 0 is greedy")]
TopK = Annotated[int | None, Parameter(help="sample among the k likeliest tokens")]
Seed = Annotated[int, Parameter(help="of all randomness")]
Csv = Annotated[Path | None, place("where the table is written, a file that ends in .csv")]
OtherPrices = Annotated[
    Path | None,
    place(
        "a table of another machine's seconds, with columns model, rows and seconds (`measure"
        " passes`): the plan is for that machine, by forecast alone"
    ),
]
Scheduler = Annotated[
    str | None,
    Parameter(
        help="count on the workers of this Dask scheduler, tcp://127.0.0.1:PORT or tls://HOST:PORT"
    ),
]


def check_numbers(given: Mapping[str, Any]) -> None:
    """Raise ValueError for a number among options that is not finite, or a whole number below 1, or
    below 0 where that counts.
    """
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        least = 0 if name in FROM_ZERO else 1
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if type(number) is int and number < least:
                raise ValueError(f"{flag} counts from {least}, got {number}")
            if type(number) is float and not math.isfinite(number):
                raise ValueError(f"{flag} is a finite number, got {number}")


def check_csv(csv: Path | None) -> None:
    """Raise ValueError if --csv names no file that ends in .csv, or one that cannot be written."""
    if csv is None:
        return
    if csv.suffix != ".csv":  # nothing that is read is called so
        raise ValueError(f"--csv names a file that ends in .csv, got {csv}")
    check_output(csv)


def check_folders(
    folders: Mapping[str, Path | None], *, reads: Mapping[str, Path | None] | None = None
) -> None:
    """Make missing folders that options name to write to; raises ValueError for one that cannot be
    written to, or that another option reads.
    """
    for (name, out), (other, read) in product(folders.items(), (reads or {}).items()):
        if out and read and out.exists() and read.exists() and out.samefile(read):
            raise ValueError(f"--{name} writes to {out}, which --{other} reads; name another")
    for folder in filter(None, folders.values()):
        check_writable(folder)


def table_places(
    csv: Path | None, prompts: str | None, place: Path, *others: Path
) -> tuple[Path | None, ...]:
    """Where tables are written, checked before any work: `place` and `others`, or where --csv is
    given that alone; prompts of one's own are none of the stored measurement, and need it.
    """
    check_csv(csv)
    if prompts is not None or csv is not None:
        return csv, *(None for _ in others)
    for one in (place, *others):
        check_output(one)
    return place, *others


def output_folder(out: Path | None, prompts: str | None, usual: Path) -> Path:
    """Where the tables of a measurement are written: what --out names, or the usual folder; raises
    ValueError for prompts of one's own without --out, which are none of what is stored there.
    """
    if out is None and prompts is not None:
        raise ValueError(f"--prompts needs a folder --out: {usual} is for the embedded prompts")
    found = out or usual
    check_writable(found)
    return found


def use_threads(count: int | None) -> None:
    """Let torch use so many threads; None leaves its own choice."""
    import torch

    if count is not None:
        torch.set_num_threads(count)


def write_csv(table: "DataFrame", path: Path | None, digits: int | None = None) -> None:
    """Write a table as CSV, whole or not at all, rounded to `digits` decimals; makes the folder.
    Without a path, nothing is written.
    """
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = table if digits is None else table.round(digits)
    write_whole(path, rounded.to_csv(index=False).encode())


def print_where(places: Iterable[Path | None]) -> None:
    """Print which files were written, or that none was."""
    written = [str(place) for place in places if place]
    print(f"written: {', '.join(written)}" if written else "not written; --csv names a file")
