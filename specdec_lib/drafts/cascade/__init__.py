"""Cascades: vertical, horizontal, and the K matrix, which describes a whole one."""

from specdec_lib.drafts.cascade.matrix import CONVENTIONS, converted, from_matrix
from specdec_lib.drafts.cascade.reviewed import Relay, Reviewed
