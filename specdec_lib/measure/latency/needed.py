"""How many tokens a round needs to pay: what an off-switch goes by."""

from itertools import accumulate
from operator import mul

from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.latency.passes import curves, pass_tables, time_passes

REPEATS = 9


@checked
def needed_tokens(
    target: LanguageModel,
    draft: TreeDraft | ChainDraft,
    *,
    context: int = 256,
    repeats: int = REPEATS,
) -> float:
    """How many times as long as a round of plain decoding a round with this tree or chain takes: so
    many tokens it has to yield to pay. Passes are timed here and now, as medians, and a tree is
    taken to be as large as it can be.

    context    tokens that were read before
    """
    tree = draft.as_tree if isinstance(draft, ChainDraft) else draft
    levels, guesses = _largest(tree)
    timed = time_passes(
        [target, tree.model],
        rows=sorted({1, guesses + 1}),
        contexts=[context],
        repeats=repeats,
        progress=False,
    )
    tables = pass_tables(curves(timed), column="seconds")
    own = tables[tree.model.name].at(1, context)
    plain = tables[target.name].at(1, context)
    return max(1.0, (levels * own + tables[target.name].at(guesses + 1, context)) / plain)


def _largest(tree: TreeDraft) -> tuple[int, int]:
    """Levels and guesses of the largest tree that a draft can propose."""
    if tree.shape is not None:
        return tree.shape.depth, tree.shape.guesses
    if tree.budget is not None:
        return min(tree.depth, tree.budget), tree.budget
    widths = tree.widths or ()
    return len(widths), sum(accumulate(widths, mul))
