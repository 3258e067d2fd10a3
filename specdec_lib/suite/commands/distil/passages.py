"""`specdec distil passages`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.core.files import check_output
from specdec_lib.measure.options import place
from specdec_lib.suite.distil.places import passages_file


def passages(
    *,
    archives: Annotated[Path, place("a folder of .tar.gz, .zip and .whl")],
    passages: Annotated[Path | None, place("the file written (default: in the cache)")] = None,
) -> None:
    """Take passages and code out of package archives."""
    from collections import Counter

    from specdec_lib.suite.distil.passages import take_pieces

    file = passages or passages_file()
    check_output(file)
    found = take_pieces(archives, file)
    kinds = Counter(piece.kind for piece in found)
    packages = len({piece.package for piece in found})
    print(f"{len(found):,} pieces of {packages} packages are in {file}: {dict(kinds)}")
