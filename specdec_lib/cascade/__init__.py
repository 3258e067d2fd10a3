"""Drafts made of drafts: reviewed by a bigger one (vertical), taking turns (horizontal); the K matrix spelled as nesting."""

from specdec_lib.cascade.matrix import CONVENTIONS, converted, from_matrix
from specdec_lib.cascade.relay import Relay
from specdec_lib.cascade.reviewed import Reviewed

__all__ = ["CONVENTIONS", "Relay", "Reviewed", "converted", "from_matrix"]
