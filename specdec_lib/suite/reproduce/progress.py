"""How a run says how far it is: a bar in a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from tqdm import tqdm

LINE_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """Where a run stands among all.

    place    such as "[3/6]"
    kind     "bar", "lines" or "none"
    """

    place: str = ""
    kind: str = "none"

    def begin(self, name: str) -> None:
        """Say that a notebook begins."""
        if self.kind != "none":
            told(f"{self.place} {name} …")

    def bar(self, name: str) -> dict[str, object] | bool:
        """What papermill's bar over cells is to be."""
        if self.kind == "bar":
            return {"leave": False, "desc": name}
        if self.kind == "lines":
            shape = {
                "bar_format": "{n_fmt}/{total_fmt} cells",
                "mininterval": 0.0,
                "miniters": 1,
                "leave": False,
            }
            return {"file": Lines(f"{self.place} {name}"), **shape}
        return False


class Lines:
    """A file that a bar draws itself into, which becomes a line on standard error every ten seconds
    at most.
    """

    def __init__(
        self,
        name: str,
        *,
        every_seconds: float = LINE_SECONDS,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.name, self.every_seconds, self.say = name, every_seconds, say or told
        self.last = time.monotonic()

    def write(self, text: str) -> int:
        """Take what the bar draws; the full bar is left out, because the notebook's own line
        follows.
        """
        shown = text.strip()
        done, slash, rest = shown.partition("/")
        if (
            slash
            and done != rest.split(" ")[0]
            and done != "0"
            and time.monotonic() - self.last >= self.every_seconds
        ):
            self.last = time.monotonic()
            self.say(f"{self.name}: {shown}")
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def told(line: str) -> None:
    """A line on standard error, at once and whole, above any bar that is drawn there."""
    tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()
