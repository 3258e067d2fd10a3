"""Prompts, ladders of models from largest to smallest, and the papers' published numbers."""

from specdec_lib.workload.ladder import (
    MATCH,
    READING,
    Ladder,
    Measured,
    load_ladder,
    neutral,
    reading_draft,
)
from specdec_lib.workload.pair import Pair, load_pair
from specdec_lib.workload.prompts import DOMAINS, SPLITS, WHOLE, Prompt, load_prompts, seeds
