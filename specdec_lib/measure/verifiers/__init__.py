"""Tokens per round of every verification rule on the same contexts and drafts, and the bound."""

from specdec_lib.measure.verifiers.command import summarise_rules, verify_prompt
