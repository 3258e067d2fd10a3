"""Recorded choices in, any other setting's rounds out, in milliseconds."""

from specdec_lib.replay.playing import Played, replay, replayed
from specdec_lib.replay.positions import survival
from specdec_lib.replay.recording import MAX_GRAM, CascadeSetting, Recording, record
from specdec_lib.replay.studies import ablations, described, measured, tuned, versus, written
from specdec_lib.replay.tuning import Tuned, swi_of, tune

__all__ = [
    "MAX_GRAM",
    "CascadeSetting",
    "Played",
    "Recording",
    "Tuned",
    "ablations",
    "described",
    "measured",
    "record",
    "replay",
    "replayed",
    "survival",
    "swi_of",
    "tune",
    "tuned",
    "versus",
    "written",
]
