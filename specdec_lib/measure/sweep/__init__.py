"""A grid of settings in, one tidy table out; counts and seconds in separate columns."""

from specdec_lib.measure.intervals import bootstrap
from specdec_lib.measure.sweep.cluster import SCHEDULER, local_cluster
from specdec_lib.measure.sweep.grid import Setting, generations, labelled
from specdec_lib.measure.sweep.ratios import (
    per_prompt,
    ratios,
    relative,
    sampling_of,
    with_sampling,
)
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.measure.sweep.statistics import LOOPING, repetition, summary
from specdec_lib.measure.sweep.traffic import model_shape, moved, seconds_at

__all__ = [
    "LOOPING",
    "SCHEDULER",
    "Recipe",
    "Setting",
    "bootstrap",
    "generations",
    "labelled",
    "local_cluster",
    "model_shape",
    "moved",
    "per_prompt",
    "ratios",
    "relative",
    "repetition",
    "sampling_of",
    "seconds_at",
    "summary",
    "sweep",
    "with_sampling",
]
