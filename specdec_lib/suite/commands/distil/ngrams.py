"""`specdec distil ngrams`."""

from pathlib import Path
from typing import Annotated

from specdec_lib.measure.options import place
from specdec_lib.suite.distil.places import TEXT


def ngrams(*, text: Annotated[Path, place("the folder of shards")] = TEXT) -> None:
    """Count n-grams on samples of the draft at temperature 1.5; an interrupted run goes on."""
    from specdec_lib.suite.distil.ngrams import store_ngrams

    store_ngrams(text)
