"""A language model as the algorithms see it, and the path-keyed cache over any Hugging Face decoder."""

from specdec_lib.lm.cached import CachedModel, check_attention
from specdec_lib.lm.paths import PathMemory
from specdec_lib.lm.protocol import LanguageModel, TreeGrower, Usage, check_root
from specdec_lib.lm.slots import SlotCache
from specdec_lib.lm.table import TableModel, joint_law

__all__ = [
    "CachedModel",
    "LanguageModel",
    "PathMemory",
    "SlotCache",
    "TableModel",
    "TreeGrower",
    "Usage",
    "check_attention",
    "check_root",
    "joint_law",
]
