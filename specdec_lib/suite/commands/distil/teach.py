"""`specdec distil teach`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.measure.options import place
from specdec_lib.suite.distil.places import TEXT


def teach(*, text: Annotated[Path, place("the folder of shards")] = TEXT) -> None:
    """Store the target's distributions over the stored answers, which drafts learn from."""
    from specdec_lib.suite.distil.lessons import store_lessons

    store_lessons(text)
