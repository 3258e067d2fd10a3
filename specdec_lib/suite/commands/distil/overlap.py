"""`specdec distil overlap`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.measure.options import place, several_places
from specdec_lib.suite.distil.places import TEXT, passages_file


def overlap(
    *,
    prompts: Annotated[list[Path], several_places("prompt files")],
    text: Annotated[Path, place("the folder of shards")] = TEXT,
    passages: Annotated[
        Path | None, place("what `distil passages` wrote (default: in the cache)")
    ] = None,
) -> int:
    """Look for prompts in the text that drafts learn from.

    The exit status is 1 if a sequence of words is shared that is not a common one.
    """
    from specdec_lib.suite.distil.overlap import print_overlap

    return print_overlap(text, prompts, passages or passages_file())
