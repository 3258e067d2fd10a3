"""Shows how far a run is: a bar in a terminal, a line now and then elsewhere."""

import sys
from dataclasses import dataclass

from tqdm import tqdm

LINE_SECONDS = 10.0


@dataclass(frozen=True)
class Progress:
    """Where a run stands among all.

    place    such as "[3/6]"
    bar      whether a bar is drawn; else a line is printed every ten seconds
    """

    place: str
    bar: bool = False

    def options(self, name: str) -> dict[str, object]:
        """What tqdm is given for the progress over a notebook's cells."""
        if self.bar:
            return {"leave": False, "desc": name}
        line = f"{self.place} {name}: {{n_fmt}}/{{total_fmt}} cells\n"
        return {
            "bar_format": line,
            "delay": LINE_SECONDS,
            "mininterval": LINE_SECONDS,
            "leave": False,
        }


def say(line: str) -> None:
    """Print a line on standard error, at once, above any bar that is drawn there."""
    tqdm.write(line, file=sys.stderr)
    sys.stderr.flush()
