"""Trees of guesses, their shapes, and the acceptance rates that score them."""

from specdec_lib.core.tree.match import MatchTable, leading
from specdec_lib.core.tree.nodes import TokenTree
from specdec_lib.core.tree.shape import NO_PARENT, ROOT, Count, Shape, check_widths
