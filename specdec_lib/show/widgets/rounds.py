"""One round and one tree, drawn anew."""

import plotly.graph_objects as go

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import rounds
from specdec_lib.core.protocols import Draft
from specdec_lib.show import figures
from specdec_lib.theory import Rates, best_tree
from specdec_lib.workload import Ladder


def one_round(
    ladder: Ladder, draft: Draft, context: Context, *, seed: int, temperature: float
) -> go.Figure:
    """The tree of one round after `context`, with the path that the target accepts."""
    chance = Chance(seed, Sampler(temperature))
    played, _ = next(
        rounds(ladder.target, draft, context, chance, max_new_tokens=ladder.target.max_positions)
    )
    labels = [ladder.text(token) for token in played.tree.tokens]
    kept = "".join(ladder.text(token) for token in played.emitted)
    title = f"{played.accepted} of {played.proposed} guesses accepted, {len(played.emitted)} tokens emitted: {kept!r}"
    bonus = (
        ladder.text(played.emitted[-1]) if len(played.emitted) > played.accepted else None
    )  # a full context leaves no room for one
    return figures.tree(played.tree, labels=labels, path=played.path, bonus=bonus, title=title)


def best_shape(rates: Rates, *, budget: int, depth: int, width: int) -> go.Figure:
    """The best tree of a budget under these rates, no deeper than `depth` and with at most `width`
    children per node.
    """
    allowed = [list(vector)[:width] for vector in rates]
    tree = best_tree(allowed, budget, depth)
    title = f"{tree.guesses} guesses, {tree.depth} deep"
    return figures.shapes(figures.slots({"best static": tree}, allowed), title=title)
