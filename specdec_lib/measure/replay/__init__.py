"""Recorded choices in, any other setting's rounds out, in milliseconds."""

from specdec_lib.measure.replay.asking import Replays, within
from specdec_lib.measure.replay.following import OwnText, followed, own_text, work_of
from specdec_lib.measure.replay.playing import Played, replay, replayed
from specdec_lib.measure.replay.positions import survival
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording, record
from specdec_lib.measure.replay.studies import ablations, measured, tuned, versus, written
from specdec_lib.measure.replay.tuning import Tuned, swi_of, tune

__all__ = [
    "MAX_GRAM",
    "CascadeSetting",
    "OwnText",
    "Played",
    "Recording",
    "Replays",
    "Tuned",
    "ablations",
    "followed",
    "measured",
    "own_text",
    "record",
    "replay",
    "replayed",
    "survival",
    "swi_of",
    "tune",
    "tuned",
    "versus",
    "within",
    "work_of",
    "written",
]
