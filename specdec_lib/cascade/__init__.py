"""Drafts made of drafts: reviewed by a bigger one (vertical), taking turns (horizontal); the K matrix spelled as nesting."""

from specdec_lib.cascade.matrix import CONVENTIONS, converted, from_matrix, to_matrix
from specdec_lib.cascade.relay import Relay
from specdec_lib.cascade.reviewed import Reviewed, guessed_by

__all__ = ["CONVENTIONS", "Relay", "Reviewed", "converted", "from_matrix", "guessed_by", "to_matrix"]
