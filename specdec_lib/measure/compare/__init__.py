"""Does speculation pay for this pair? Every method on the same prompts, interleaved, against plain
decoding, with a verdict.
"""

from specdec_lib.measure.compare.methods import FOREIGN, PLAIN, contenders, drafts
from specdec_lib.measure.compare.timing import timed
from specdec_lib.measure.compare.verdict import summary, verdict
from specdec_lib.workload.ladder import neutral

__all__ = ["FOREIGN", "PLAIN", "contenders", "drafts", "neutral", "summary", "timed", "verdict"]
