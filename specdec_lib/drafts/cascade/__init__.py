"""Cascades: vertical (`Reviewed`), horizontal (`Relay`), and the K matrix, which describes both."""

from specdec_lib.drafts.cascade.matrix import CONVENTIONS, Convention, converted, from_matrix
from specdec_lib.drafts.cascade.reviewed import Relay, Reviewed
