"""Any Hugging Face decoder as a `LanguageModel` behind a cache keyed by path."""

from specdec_lib.models.cached.model import CachedModel
