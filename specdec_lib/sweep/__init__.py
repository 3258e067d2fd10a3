"""A grid of settings in, one tidy table out; counts and seconds in separate columns."""

from specdec_lib.intervals import bootstrap
from specdec_lib.sweep.grid import Setting, generations, labelled, sweep
from specdec_lib.sweep.statistics import LOOPING, repetition, summary

__all__ = ["LOOPING", "Setting", "bootstrap", "generations", "labelled", "repetition", "summary", "sweep"]
