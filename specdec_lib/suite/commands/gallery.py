"""`specdec gallery`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.core.files import figures_folder
from specdec_lib.measure.options import place

Figures = Annotated[
    Path | None, place("their folder (default: the one that SPECDEC_FIGURES names, else figures/)")
]


def gallery(*, out: Figures = None) -> None:
    """Lay the figures of a folder out as one page."""
    from specdec_lib.suite.gallery.building import build

    print(build((out or figures_folder()).expanduser().resolve()))
