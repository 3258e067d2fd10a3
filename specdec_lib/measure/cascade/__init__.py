"""Cascades recorded, replayed in milliseconds, tuned and timed, for notebooks 04 to 04c."""

from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting, Recording, record
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.tune import Replays, Tuned, swi_table, tune, widen
