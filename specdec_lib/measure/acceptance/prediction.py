"""Tokens per round of any fixed tree, predicted in five ways and compared with measurements.

"root", "depth and rank" and "depth, rank and parent" know the rounds of one wide tree and split its
rates so far; "every position" has a rate per rank over whole texts; "replay" plays the tree's
rounds along each text, with all the dependence between positions that the text has.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specdec_lib.core.tree import Shape
from specdec_lib.measure.acceptance.rates import rank_rates
from specdec_lib.measure.intervals import bootstrap_of_many, named_interval
from specdec_lib.measure.replay.shape_rounds import RANKS, Taken, replay_shape, shape_children
from specdec_lib.theory import best_tree, expected_tokens, monotone

if TYPE_CHECKING:
    from pandas import DataFrame

PREDICTORS = ("root", "depth and rank", "depth, rank and parent", "every position", "replay")


def replayed_tokens(trees: Mapping[str, Shape], texts: Sequence[Taken]) -> "DataFrame":
    """`tokens` of each tree along the texts, a prompt each, with its interval: draft,
    tokens_per_round, _low and _high, rounds, prompts.
    """
    import pandas as pd

    rows = []
    for name, shape in trees.items():
        rounds = _rounds(shape, texts)
        ratio = bootstrap_of_many(map(len, texts), rounds)
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


def position_rates(texts: Sequence[Taken], *, ranks: int = RANKS) -> "DataFrame":
    """How often each rank was taken, over all positions of the texts, wherever rounds start: rank,
    at_risk, rate, low, high.
    """
    import pandas as pd

    lengths = [len(taken) for taken in texts]
    if not sum(lengths):
        raise ValueError("rates need at least 1 position, got none")
    rows = []
    for rank in range(ranks):
        found = bootstrap_of_many([taken.count(rank) for taken in texts], lengths)
        rows.append((rank, sum(lengths), *found))
    return pd.DataFrame(rows, columns=["rank", "at_risk", "rate", "low", "high"])


def predicted_shapes(texts: Sequence[Taken]) -> dict[str, Shape]:
    """The trees to predict: chains, regular trees, and the best fixed trees for the rates of these
    texts.
    """
    rates = monotone([position_rates(texts).rate.tolist()])
    regular = ((8,), (3, 3), (2, 2, 2), (2, 1, 1, 1), (4, 2, 1, 1))
    return (
        {f"chain of {length}": Shape.chain(length) for length in (1, 2, 4, 6, 8)}
        | {"·".join(map(str, widths)): Shape.of_widths(widths) for widths in regular}
        | {f"best of {budget}": best_tree(rates, budget, 8) for budget in (8, 16, 32)}
    )


def predict_tokens(
    trees: Mapping[str, Shape], looked_at: "DataFrame", texts: Sequence[Taken]
) -> "DataFrame":
    """Tokens per round of each tree by each predictor: name, predictor, predicted.

    looked_at    rows of guesses of a wide tree
    texts        `taken_ranks` of the same texts
    """
    import pandas as pd

    every = monotone([position_rates(texts).rate.tolist()])
    root = monotone(rank_rates(looked_at[looked_at.depth == 1]))
    deeper = monotone(
        [[rate / max(1.0, sum(one)) for rate in one] for one in rank_rates(looked_at)]
    )
    rows = []
    for name, shape in trees.items():
        values = (
            expected_tokens(shape, root),
            expected_tokens(shape, deeper),
            _expected_by_parent(shape, looked_at),
            expected_tokens(shape, every),
            sum(map(len, texts)) / sum(_rounds(shape, texts)),
        )
        rows += [(name, *pair) for pair in zip(PREDICTORS, values, strict=True)]
    return pd.DataFrame(rows, columns=["name", "predictor", "predicted"])


def compare_predictions(predicted: "DataFrame", measured: "DataFrame") -> "DataFrame":
    """`predict_tokens` beside `tokens` by "draft", the trees' names: name, predictor, predicted,
    measured, low, high, error (of the prediction, as a share).
    """
    if missing := set(predicted["name"]) - set(measured["draft"]):
        raise ValueError(f"no measurement of {', '.join(sorted(missing))}")
    names = ("tokens_per_round", "tokens_per_round_low", "tokens_per_round_high")
    columns = {"draft": "name"} | dict(zip(names, ("measured", "low", "high"), strict=True))
    measured = measured[list(columns)].rename(columns=columns)
    found = predicted.merge(measured, on="name", how="left")
    return found.assign(error=found.predicted / found.measured - 1)


def errors(table: "DataFrame", by: Sequence[str] = ("predictor",)) -> "DataFrame":
    """Per group of `compare_predictions` the size of its errors: median_error and largest_error,
    without their signs, and share_inside the intervals.
    """
    sized = table.assign(
        size=abs(table.error),
        inside=(table.low <= table.predicted) & (table.predicted <= table.high),
    )
    sizes = {"median_error": ("size", "median"), "largest_error": ("size", "max")}
    groups = sized.groupby(list(by), sort=False)
    return groups.agg(**sizes, share_inside=("inside", "mean")).reset_index()


def _rounds(shape: Shape, texts: Sequence[Taken]) -> list[int]:
    return [sum(1 for _ in replay_shape(shape, taken)) for taken in texts]


def _expected_by_parent(shape: Shape, looked_at: "DataFrame") -> float:
    """`expected_tokens`, with separate rates below depth 1 where the parent was a first guess."""
    deeper = looked_at[looked_at.depth > 1].assign(depth=looked_at.depth - 1)
    root, after = rank_rates(looked_at[looked_at.depth == 1]), {}
    for first in (True, False):
        rows = deeper[(deeper.parent_rank == 0) == first]
        after[first] = rank_rates(rows) if len(rows) else [[]]
    paths = [1.0]
    for parent, depth, rank in zip(
        shape.parents[1:], shape.depths[1:], shape.ranks[1:], strict=True
    ):
        rates = root if depth == 1 else after[shape.ranks[parent] == 0]
        vector = rates[min(max(depth - 1, 1), len(rates)) - 1]
        paths.append(paths[parent] * vector[rank] if rank < len(vector) else 0.0)
    return float(sum(paths))
