"""Many continuations of one context, and how often a guess of a rank is accepted."""

from specdec_lib.tree.match import MatchTable, leading
from specdec_lib.tree.nodes import NO_PARENT, ROOT, TokenTree

__all__ = ["NO_PARENT", "ROOT", "MatchTable", "TokenTree", "leading"]
