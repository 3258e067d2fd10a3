"""`specdec hf`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.measure.options import place


def hf(file: Annotated[Path, place("JSON that `export_setting` wrote")], /) -> None:
    """Translate an exported setting into other engines' flags."""
    from specdec_lib.suite.hf.flags import print_flags

    print_flags(file)
