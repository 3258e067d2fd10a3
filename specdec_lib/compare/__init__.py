"""Does speculation pay for this pair? Every method on the same prompts, interleaved, against plain decoding, with a verdict."""

from specdec_lib.compare.methods import FOREIGN, PLAIN, contenders, drafts
from specdec_lib.compare.timing import neutral, timed
from specdec_lib.compare.verdict import summary, verdict

__all__ = ["FOREIGN", "PLAIN", "contenders", "drafts", "neutral", "summary", "timed", "verdict"]
