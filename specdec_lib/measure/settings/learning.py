"""Which drafts `specdec measure learning` races: copies, recycled tokens and earlier answers, which
need no network and of which two learn while they decode; the draft model's tree; and what each adds
to another one.
"""

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.earlier import EarlierAnswers
from specdec_lib.drafts.recycling import TokenRecycling
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts, copies
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import GREEDY, TOP_50, Setting
from specdec_lib.workload import Ladder

SAMPLERS = (GREEDY, TOP_50)
ALONE = 6  # recycled tokens
BESIDE = 3  # the same, beside another draft


def learning_settings(ladder: Ladder, sampler: Sampler) -> list[Setting]:
    """Plain decoding, and each of these drafts as a method of its own."""
    match = ladder.match("draft", sampler)
    copied = copies(8, 2)
    tree = LadderDrafts(ladder, sampler).tree(6, 4, floor=0.05)
    named = {
        AUTOREGRESSIVE: NoDraft(),
        "Max-Gram": copied,
        "Token Recycling": _recycled(ALONE, match),
        "earlier answers": EarlierAnswers(8, least=3),
        "Max-Gram, else earlier answers": FirstDraft((copied, EarlierAnswers(8, least=3))),
        "Max-Gram, else recycled": FirstDraft((copied, _recycled(ALONE, match))),
        "Max-Gram beside recycled": without_network(match),
        "draft model's tree": tree,
        "Max-Gram, else the tree": FirstDraft((copied, tree), 2),
        "tree beside recycled": MergedDraft((tree, _recycled(BESIDE, match))),
    }
    return [Setting(name, draft, sampler, method=name) for name, draft in named.items()]


def without_network(match: MatchTable = MatchTable()) -> MergedDraft:
    """Copies beside recycled tokens: the fastest of these drafts that need no draft model."""
    return MergedDraft((copies(4, 2), _recycled(BESIDE, match)))


def _recycled(budget: int, match: MatchTable) -> TokenRecycling:
    return TokenRecycling(budget=budget, depth=4, floor=0.02, match=match)
