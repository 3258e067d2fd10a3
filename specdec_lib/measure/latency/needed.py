"""How many tokens a round needs to pay, which an off-switch goes by; and which size of tree pays
best, where nothing was tuned.
"""

from collections.abc import Iterable
from itertools import accumulate, product
from operator import mul

from specdec_lib.core.chance import Sampler
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.latency.passes import curves, pass_tables, time_passes
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.usual import COPIED, Size, usual_model
from specdec_lib.theory import PassTable, best_tree, expected_tokens
from specdec_lib.workload import Ladder

REPEATS = 9
CONTEXT = 256  # tokens that were read before, where the models have room for them
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
DEPTHS = (1, 2, 3, 4, 6)


@checked
def needed_tokens(
    target: LanguageModel, draft: TreeDraft | ChainDraft, *, repeats: int = REPEATS
) -> float:
    """How many times as long as a round of plain decoding a round with this tree or chain takes: so
    many tokens it has to yield to pay. Passes are timed here and now, as medians, and a tree is
    taken to be as large as it can be.
    """
    tree = draft.as_tree if isinstance(draft, ChainDraft) else draft
    levels, guesses = _largest(tree)
    own, verify = _timed(target, tree.model, [guesses + 1], repeats)
    return _round(own, verify, levels, guesses)


@checked
def best_size(
    target: LanguageModel, model: LanguageModel, match: MatchTable, *, repeats: int = REPEATS
) -> Size:
    """The size with which a tree of this model gains most, by passes timed here and now, where its
    guesses are right as often as the match table says for their ranks, whatever the gaps.
    """
    rates = match.rates
    sizes = [*BUDGETS, COPIED.length]
    own, verify = _timed(target, model, [guesses + 1 for guesses in sizes], repeats)
    copying = _round(own, verify, 0, COPIED.length)
    found = []
    for budget, depth in product(BUDGETS, DEPTHS):
        shape = best_tree([rates], budget, depth)
        needed = _round(own, verify, shape.depth, shape.guesses)
        hoped = expected_tokens(shape, [rates])
        found.append(Size(budget, shape.depth, needed, hoped, copying))
    return max(found, key=lambda size: size.hoped / size.needed)


def usual_size(ladder: Ladder, sampler: Sampler) -> Size:
    """The size of the tree of `settings.usual` on this machine."""
    name = usual_model(ladder)
    model = LadderDrafts(ladder, sampler).models[name]
    return best_size(ladder.target, model, ladder.match(name, sampler))


def _timed(
    target: LanguageModel, model: LanguageModel, rows: Iterable[int], repeats: int
) -> tuple[PassTable, PassTable]:
    """Seconds of the draft's passes and of the target's, over one row and over as many of these as
    the models have room for.
    """
    asked = sorted({1, *rows})
    room = min(target.max_positions, model.max_positions) - len(asked) - 2
    fitting = [1, *(count for count in asked[1:] if count < room)]
    context = max(1, min(CONTEXT, room - fitting[-1]))
    timed = time_passes(
        [target, model], rows=fitting, contexts=[context], repeats=repeats, progress=False
    )
    tables = pass_tables(curves(timed), column="seconds")
    return tables[model.name], tables[target.name]


def _round(own: PassTable, verify: PassTable, levels: int, guesses: int) -> float:
    """The seconds of a round ÷ those of plain decoding's."""
    return max(1.0, (levels * own.at(1) + verify.at(guesses + 1)) / verify.at(1))


def _largest(tree: TreeDraft) -> tuple[int, int]:
    """Levels and guesses of the largest tree that a draft can propose."""
    if tree.shape is not None:
        return tree.shape.depth, tree.shape.guesses
    if tree.budget is not None:
        return min(tree.depth, tree.budget), tree.budget
    widths = tree.widths or ()
    return len(widths), sum(accumulate(widths, mul))
