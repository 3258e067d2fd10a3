"""Trees of guesses grown from one model, and chains, which are trees of width 1."""

from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
