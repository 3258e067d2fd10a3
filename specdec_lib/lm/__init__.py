"""A language model as the algorithms see it, and the path-keyed cache over any Hugging Face decoder."""

from specdec_lib.lm.cached import CachedModel
from specdec_lib.lm.protocol import LanguageModel, Usage, check_root

__all__ = ["CachedModel", "LanguageModel", "Usage", "check_root"]
