"""Cascades recorded, replayed in milliseconds, tuned and timed: the tables behind notebook 04."""

from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting, Recording, record
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.tune import Replays, Tuned, swi_table, tune, widen
