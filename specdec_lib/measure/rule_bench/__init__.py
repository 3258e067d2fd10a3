"""A comparison of verification rules on the same contexts and drafts, beside what none can exceed.

Decoding verifies trees in `core/verify.py`; the further rules here are only compared with its two.
"""

from specdec_lib.measure.rule_bench.command import summarise_rules, verify_prompt
