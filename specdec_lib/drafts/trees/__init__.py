"""A tree of guesses grown from one model, and the chain as the tree of width 1."""

from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

__all__ = ["ChainDraft", "TreeDraft"]
