"""Does speculation pay for this pair? Every method on the same prompts, interleaved, against plain
decoding, with a verdict.
"""

from specdec_lib.measure.compare.timing import compare_methods
from specdec_lib.measure.compare.verdict import method_summary, verdict
