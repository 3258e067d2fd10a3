"""Any draft in Hugging Face's `model.generate`, settings as JSON, and other engines' flags."""

from specdec_lib.measure.settings.exported import export_setting, import_setting
from specdec_lib.suite.hf.flags import flags
from specdec_lib.suite.hf.generating import Speculative
