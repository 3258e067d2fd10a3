"""`specdec distil matches`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import check_folders, place
from specdec_lib.suite.distil.places import LADDER


def matches(
    *,
    limit: Annotated[
        int | None, Parameter(help="development prompts of each domain (default: all)")
    ] = None,
    out: Annotated[Path, place("the folder of the drafts")] = LADDER,
) -> None:
    """Measure how often a guess is right, by its rank and gap: the match tables."""
    check_folders({"out": out})
    from specdec_lib.suite.distil.finishing import store_matches

    store_matches(out, limit)
