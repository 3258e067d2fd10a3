"""Verification rules compared on the same contexts and drafts, beside what none can exceed."""

from specdec_lib.measure.rule_bench.verifying import summarise_rules, verify_prompt
