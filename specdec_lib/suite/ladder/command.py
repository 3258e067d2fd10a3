"""`specdec ladder make`: make data/ladder and data/prompts anew, or go on where an
earlier run stopped.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA
from specdec_lib.suite.ladder.making import Maker
from specdec_lib.suite.ladder.matching import store
from specdec_lib.suite.ladder.showing import page, show


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, make, and print the card."""
    parser = Parser("ladder make", __doc__.partition(": ")[2])
    parser.add_argument(
        "--folder", type=Path, default=DATA / "ladder", help="what is made (default: data/ladder)"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=DATA / "cache" / "ladder",
        help="streams and checkpoints; remove it to begin anew",
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="share of the recipe's training tokens, to try it out",
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--match-only", action="store_true", help="only measure the match tables again"
    )
    given = parser.parse_args(arguments)
    if not 0 < given.scale <= 1:
        parser.error(f"--scale must lie in (0, 1], got {given.scale}")
    torch.set_num_threads(given.threads)
    if not given.match_only:
        Maker(given.folder, given.cache, scale=given.scale, device=given.device).make()
    store(given.folder)
    print(page(show(given.folder)))
