"""The door to Hugging Face and beyond: any draft in `model.generate`, a setting as JSON, and the
closest flags of other engines.
"""

from specdec_lib.suite.hf.flags import Flags, flags
from specdec_lib.suite.hf.generating import Speculative
from specdec_lib.suite.hf.settings import export_setting, import_setting

__all__ = ["Flags", "Speculative", "export_setting", "flags", "import_setting"]
