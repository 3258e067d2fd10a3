"""The door to Hugging Face and beyond: any draft in `model.generate`, a setting as JSON, and the
closest flags of other engines.
"""

from specdec_lib.suite.hf.flags import Flags, flags
from specdec_lib.suite.hf.generating import Speculative
from specdec_lib.suite.hf.settings import exported, imported

__all__ = ["Flags", "Speculative", "exported", "flags", "imported"]
