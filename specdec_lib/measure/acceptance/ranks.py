"""Tables from the ranks that texts take: what trees of fixed shapes yield along them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specdec_lib.core.tree import Shape
from specdec_lib.measure.intervals import bootstrap_of_many, named_interval
from specdec_lib.measure.replay.shape_rounds import RANKS, Taken, replay_shape, shape_children

if TYPE_CHECKING:
    from pandas import DataFrame


def replayed_tokens(
    trees: Mapping[str, Shape], texts: Sequence[Taken], *, seed: int = 0
) -> "DataFrame":
    """`tokens` of each tree along the texts, a prompt each, with its interval: draft,
    tokens_per_round, _low and _high, rounds, prompts.
    """
    import pandas as pd

    rows = []
    for name, shape in trees.items():
        rounds = [sum(1 for _ in replay_shape(shape, taken)) for taken in texts]
        ratio = bootstrap_of_many([len(taken) for taken in texts], rounds, seed=seed)
        counts = {"rounds": sum(rounds), "prompts": len(texts)}
        rows.append({"draft": name} | named_interval("tokens_per_round", ratio) | counts)
    return pd.DataFrame(rows)


def replayed_guesses(shape: Shape, texts: Sequence[Taken]) -> "DataFrame":
    """What `rank_rates` reads of the rows of guesses, for a tree of this shape along the texts:
    prompt, depth, rank, parent_rank, accepted.

    The last token of a text has no guesses: a limit takes them away. Where a stop token ended the
    text they were there, and are left out.
    """
    import pandas as pd

    children, rows = shape_children(shape), []
    for prompt, taken in enumerate(texts):
        for start, _, _, nodes in replay_shape(shape, taken):
            for depth, node in enumerate(nodes[: max(0, len(taken) - 1 - start)], 1):
                taken_here = taken[start + depth - 1]
                rows += [
                    (prompt, depth, rank, shape.ranks[node] if node else -1, rank == taken_here)
                    for rank in range(len(children[node]))
                ]
    return pd.DataFrame(rows, columns=["prompt", "depth", "rank", "parent_rank", "accepted"])


def position_rates(texts: Sequence[Taken], *, ranks: int = RANKS, seed: int = 0) -> "DataFrame":
    """How often each rank was taken, over all positions of the texts, wherever rounds start: rank,
    at_risk, rate, low, high.

    Raises ValueError if there is no position.
    """
    import pandas as pd

    lengths = [len(taken) for taken in texts]
    if not sum(lengths):
        raise ValueError("rates need at least 1 position, got none")
    rows = []
    for rank in range(ranks):
        found = bootstrap_of_many([taken.count(rank) for taken in texts], lengths, seed=seed)
        rows.append((rank, sum(lengths), *found))
    return pd.DataFrame(rows, columns=["rank", "at_risk", "rate", "low", "high"])
