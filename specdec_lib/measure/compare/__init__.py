"""Does speculation pay for this pair? Every method on the same prompts, interleaved, against plain
decoding, with a verdict.
"""
# ruff: noqa: F401 - a face: what it imports is what it offers

from specdec_lib.measure.compare.timing import compare_methods
from specdec_lib.measure.compare.verdict import method_summary, verdict
