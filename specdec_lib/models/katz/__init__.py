"""An n-gram model with Katz back-off as a `LanguageModel`."""

from specdec_lib.models.katz.model import Katz
