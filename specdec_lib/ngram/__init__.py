"""Statistics instead of a network: Katz back-off n-grams, Max-Gram, bigram table."""

from specdec_lib.ngram.katz import Katz
from specdec_lib.ngram.katz_draft import NgramDraft
from specdec_lib.ngram.max_gram import ORIGINS, MaxGram

__all__ = ["ORIGINS", "Katz", "MaxGram", "NgramDraft"]
