"""Near-ties: where two texts of one model part, and whether that is rounding or a bug."""

from specdec_lib.measure.ties.near_ties import BUG, EARLY, ROUNDING, TWO_PROGRAMS, NearTie, near_tie
