"""The rounds of any setting along recorded texts, in milliseconds and without the target."""

from specdec_lib.measure.own_text import OwnText, own_text, replay_draft, work_of
from specdec_lib.measure.replay.cascade_rounds import replay_cascade
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording, record
from specdec_lib.measure.replay.tuning import Replays, Tuned, swi_table, tune, widen
