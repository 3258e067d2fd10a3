"""Anything that guesses how a context goes on: nothing, a chain, a tree."""

from specdec_lib.draft.growing import ChainDraft, Child, TreeDraft
from specdec_lib.draft.protocol import Draft, FirstDraft, MergedDraft, NoDraft
from specdec_lib.draft.slots import best_slots

__all__ = ["ChainDraft", "Child", "Draft", "FirstDraft", "MergedDraft", "NoDraft", "TreeDraft", "best_slots"]
