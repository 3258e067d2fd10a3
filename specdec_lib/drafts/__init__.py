"""Drafts, which propose trees of guesses."""
