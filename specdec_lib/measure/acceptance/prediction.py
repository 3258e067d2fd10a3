"""Tokens per round of any tree, predicted in five ways and compared with measurements.

The first three predictors know the rounds of one wide tree, the other two know the whole texts:

- "root": the rates per rank below the root, for all depths;
- "depth and rank": rates per depth, of the survivors at that depth;
- "depth, rank and parent": also whether the parent was its own parent's first guess;
- "every position": a rate per rank over all positions of the texts, as in the match tables;
- "replay": the tree's rounds along each text, with all the dependence between positions that the
text has.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specdec_lib.core.tree import Shape
from specdec_lib.measure.acceptance.ranks import position_rates
from specdec_lib.measure.acceptance.rates import rank_rates
from specdec_lib.measure.replay.shape_rounds import Taken, replay_shape
from specdec_lib.theory import Rates, best_tree, expected_tokens, monotone

if TYPE_CHECKING:
    from pandas import DataFrame

PREDICTORS = ("root", "depth and rank", "depth, rank and parent", "every position", "replay")
BUDGETS = (8, 16, 32)


def predicted_shapes(texts: Sequence[Taken]) -> dict[str, Shape]:
    """The trees to predict: chains, regular trees, and the best fixed trees for the rates of these
    texts.
    """
    rates = monotone([position_rates(texts).rate.tolist()])
    widths = {
        "8": (8,),
        "3·3": (3, 3),
        "2·2·2": (2, 2, 2),
        "2·1·1·1": (2, 1, 1, 1),
        "4·2·1·1": (4, 2, 1, 1),
    }
    return (
        {f"chain of {length}": Shape.chain(length) for length in (1, 2, 4, 6, 8)}
        | {name: Shape.of_widths(each) for name, each in widths.items()}
        | {f"best of {budget}": best_tree(rates, budget, 8) for budget in BUDGETS}
    )


def predictions(
    trees: Mapping[str, Shape], looked_at: "DataFrame", texts: Sequence[Taken]
) -> "DataFrame":
    """Tokens per round of each tree by each predictor: name, predictor, predicted.

    looked_at    rows of guesses of a wide tree
    texts        `taken_ranks` of the same texts
    """
    import pandas as pd

    rows, every = [], monotone([position_rates(texts).rate.tolist()])
    for name, shape in trees.items():
        rounds = [sum(1 for _ in replay_shape(shape, taken)) for taken in texts]
        values = (
            expected_tokens(shape, monotone(rank_rates(looked_at[looked_at.depth == 1]))),
            expected_tokens(shape, monotone(_scaled(rank_rates(looked_at)))),
            _expected_by_parent(shape, looked_at),
            expected_tokens(shape, every),
            sum(map(len, texts)) / sum(rounds),
        )
        rows += [
            (name, predictor, value) for predictor, value in zip(PREDICTORS, values, strict=True)
        ]
    return pd.DataFrame(rows, columns=["name", "predictor", "predicted"])


def compare_predictions(predicted: "DataFrame", measured: "DataFrame") -> "DataFrame":
    """Predictions beside measurements, a row per tree and predictor: name, predictor, predicted,
    measured, low, high, error (of the prediction, as a share).

    measured    `tokens` by "draft", the trees' names; all of them

    Raises ValueError if a tree was predicted and not measured.
    """
    if missing := set(predicted["name"]) - set(measured["draft"]):
        raise ValueError(f"no measurement of {', '.join(sorted(missing))}")
    columns = {
        "draft": "name",
        "tokens_per_round": "measured",
        "tokens_per_round_low": "low",
        "tokens_per_round_high": "high",
    }
    found = predicted.merge(
        measured.rename(columns=columns)[list(columns.values())], on="name", how="left"
    )
    return found.assign(error=found.predicted / found.measured - 1)


def errors(table: "DataFrame", by: Sequence[str] = ("predictor",)) -> "DataFrame":
    """Per group of `compare_predictions` the size of its errors: median_error and largest_error,
    without their signs, and share_inside the intervals.
    """
    sized = table.assign(
        size=abs(table.error),
        inside=(table.low <= table.predicted) & (table.predicted <= table.high),
    )
    groups = sized.groupby(list(by), sort=False)
    return groups.agg(
        median_error=("size", "median"),
        largest_error=("size", "max"),
        share_inside=("inside", "mean"),
    ).reset_index()


def _expected_by_parent(shape: Shape, looked_at: "DataFrame") -> float:
    """`expected_tokens`, with separate rates below depth 1 where the parent was a first guess."""
    deeper = looked_at[looked_at.depth > 1].assign(depth=looked_at.depth - 1)
    root = rank_rates(looked_at[looked_at.depth == 1])
    after = {
        first: _rates_or_none(deeper[(deeper.parent_rank == 0) == first]) for first in (True, False)
    }
    paths = [1.0]
    for parent, depth, rank in zip(
        shape.parents[1:], shape.depths[1:], shape.ranks[1:], strict=True
    ):
        rates = root if depth == 1 else after[shape.ranks[parent] == 0]
        vector = rates[min(max(depth - 1, 1), len(rates)) - 1]
        paths.append(paths[parent] * vector[rank] if rank < len(vector) else 0.0)
    return float(sum(paths))


def _rates_or_none(rows: "DataFrame") -> Rates:
    return rank_rates(rows) if len(rows) else [[]]


def _scaled(rates: Sequence[Sequence[float]]) -> list[list[float]]:
    """The rates, scaled where a depth's sum is above 1: depths of different width were counted as
    one there.
    """
    return [[rate / max(1.0, sum(vector)) for rate in vector] for vector in rates]
