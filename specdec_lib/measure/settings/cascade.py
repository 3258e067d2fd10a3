"""Which drafts `specdec measure walltime` times beside tuned cascades: the methods of the cascade
paper's tables 3 and 4 with our draft, and speculative decoding.
"""

from specdec_lib.drafts.cascade import Relay
from specdec_lib.drafts.cascade.matrix import Matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import GREEDY, Setting
from specdec_lib.workload import Ladder


def paper_settings(ladder: Ladder) -> list[Setting]:
    """Greedily, as in the paper without measured match tables."""
    drafts = LadderDrafts(ladder, GREEDY, matched=False)
    last = ladder.max_gram

    def cascade(matrix: Matrix, width: int = 1) -> Relay:
        return drafts.cascade(("draft",), matrix, last=last, width=width)

    named = {
        AUTOREGRESSIVE: NoDraft(),
        "speculative, chain of 2": drafts.chain(2),
        "speculative, chain of 4": drafts.chain(4),
        "Max-Gram alone": last,
        "cascade, K00 = 1": cascade(((1, 10), (0, 10))),
        "cascade, K00 = 2": cascade(((2, 10), (0, 10))),
        "cascade, K00 = 3": cascade(((3, 10), (0, 10))),
        "cascade, K00 = 1, no horizontal": cascade(((1, 0), (0, 10))),
        "cascade + tree": cascade(((1, 3), (0, 1)), width=8),
        "cascade + tree, a tail of 10": cascade(((1, 10), (0, 10)), width=8),
    }
    return [Setting(name, draft, GREEDY, method="cascade") for name, draft in named.items()]
