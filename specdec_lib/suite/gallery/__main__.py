"""`python -m specdec_lib.suite.gallery [FOLDER]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from specdec_lib.core.files import check_writable, figures_folder
from specdec_lib.suite.gallery import build


def main(arguments: Sequence[str] | None = None) -> int:
    """Lay out a folder's figures; 0 if it went well, 2 if the folder cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m specdec_lib.suite.gallery",
        description="Lay the figures out as one page, figures/index.html.",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        help="where the figures are; without, the folder SPECDEC_FIGURES names, else figures/",
    )
    asked = parser.parse_args(arguments)
    folder = (asked.folder or figures_folder()).expanduser().resolve()
    try:
        if folder.exists():
            check_writable(folder)
        print(build(folder))
    except ValueError as problem:
        print(f"refused: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
