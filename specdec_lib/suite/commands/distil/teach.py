"""`specdec distil teach`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.measure.options import Scheduler, place
from specdec_lib.suite.distil.places import TEXT


def teach(
    *,
    text: Annotated[Path, place("the folder of shards")] = TEXT,
    scheduler: Scheduler = None,
) -> None:
    """Store the target's distributions over the stored answers, which drafts learn from."""
    from specdec_lib.measure.cluster import opened
    from specdec_lib.suite.distil.lessons import store_lessons

    with opened(scheduler, None) as cluster:
        store_lessons(text, cluster)
