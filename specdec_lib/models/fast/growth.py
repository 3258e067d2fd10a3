"""The tree that one compiled call is asked to grow."""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numpy as np

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Scout
from specdec_lib.core.tree import MatchTable
from specdec_lib.models.fast import choices
from specdec_lib.models.fast.compiled_trees import GrowthSettings

MOST = 4096  # nodes of a tree that is grown in one call


def growth_settings(
    context: Context,
    chance: Chance,
    *,
    widths: Sequence[int],
    budget: int | None,
    floor: float,
    deepen: float,
    match: MatchTable,
    scout: Scout,
    ids: np.ndarray,
    vocabulary: int,
) -> GrowthSettings | None:
    """What the compiled call grows; None without support.

    widths    children per depth, within the model's positions and vocabulary
    ids       the token of each column of the logits; a prompt that is read later may change them
    """
    most_nodes, most_rows = tree_sizes(widths, budget, scout.guided * scout.guesser.guesses)
    sampling = choices.compiled_sampling(chance.sampler, match, vocabulary)
    fixed = budget and chance.sampler.temperature > 0 and not match.edges
    if sampling is None or fixed or not widths or max(most_nodes, most_rows, *widths) > MOST:
        return None
    deepest = len(widths) + len(scout.guesser.limits[0])
    return GrowthSettings(
        widths=np.array(widths),
        budget=budget or 0,
        floor=float(floor),
        deepen=float(deepen),
        sampling=sampling,
        noise_keys=choices.noise_keys(chance, len(context), deepest),
        ids=ids,
        guesser=scout.guesser,
        guided=scout.guided,
        most_nodes=most_nodes,
        most_rows=most_rows,
    )


def tree_sizes(widths: Sequence[int], budget: int | None, guesses: int) -> tuple[int, int]:
    """The most nodes of a tree, and rows read for it, where a scout adds `guesses` per pass."""
    if budget:
        levels = [1, *[budget] * len(widths)]
        nodes = 2 + (budget + 1) * budget
    else:
        levels = [1, *accumulate(widths, mul)]
        nodes = 2 + sum(levels)
    rows = sum(levels[:-1])
    if guesses:  # each pass reads nodes of several levels, and what is guessed below the best
        rows = len(widths) * (rows + guesses)
    return nodes, rows
