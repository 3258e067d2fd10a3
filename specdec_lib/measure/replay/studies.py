"""What the cascade notebook asks of replays: each table is a row per setting, with its SWI and the
interval over texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specdec_lib.measure.intervals import bootstrap, paired_bootstrap
from specdec_lib.measure.replay.playing import replayed
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording
from specdec_lib.measure.replay.tuning import Tuned, tune

if TYPE_CHECKING:
    from pandas import DataFrame

ALONE = (("middle",), ("draft",), (MAX_GRAM,))
CASCADES = (("middle", MAX_GRAM), ("draft", MAX_GRAM), ("middle", "draft", MAX_GRAM))
TARGET = "target"


@dataclass(frozen=True, eq=False)
class Costs:
    """What each text gave and took under one setting: tokens at the target's price, and the price
    of all passes.
    """

    worth: Sequence[float]
    paid: Sequence[float]


def tuned(
    recordings: Sequence[Recording], prices: Mapping[str, float], *, progress: bool = True
) -> dict[tuple[str, ...], Tuned]:
    """The best setting of each drafter alone and of each cascade on these texts; that of three is
    also looked for around those of two.

    Raises ValueError as `tune` does.
    """
    found = {
        drafters: tune(recordings, drafters, prices, progress=progress)
        for drafters in (*ALONE, *CASCADES[:-1])
    }
    starts = (_among_three(found[drafters].setting) for drafters in CASCADES[:-1])
    return found | {
        CASCADES[-1]: tune(recordings, CASCADES[-1], prices, starts=starts, progress=progress)
    }


def _among_three(setting: CascadeSetting) -> CascadeSetting:
    """A cascade of one model as one of both, in which the other contributes one token where it
    fits.
    """
    (own, tail), (_, below) = setting.matrix
    first = setting.drafters[0] == "middle"
    matrix = (
        ((own, 0, tail), (0, 1, below), (0, 0, below))
        if first
        else ((1, own, tail), (0, 0, below), (0, 0, below))
    )
    return replace(setting, drafters=CASCADES[-1], matrix=matrix)


def measured(
    recordings: Sequence[Recording],
    settings: Mapping[str, CascadeSetting],
    prices: Mapping[str, float],
    *,
    seed: int = 0,
) -> "DataFrame":
    """A row per named setting: `name`, its fields, texts, tokens, rounds, passes per model, and
    `swi` with `low` and `high`.

    Raises ValueError as `replay` does, or if a model that runs has no price.
    """
    import pandas as pd

    rows = []
    for name, setting in settings.items():
        table = replayed(recordings, [setting])
        costs = _costs(table, prices)
        swi, low, high = bootstrap(costs.worth, costs.paid, seed=seed)
        counts = {
            column: int(table[column].sum())
            for column in table
            if column in ("tokens", "rounds") or column.endswith("_passes")
        }
        fields = {
            "drafters": " + ".join(setting.drafters),
            "matrix": written(setting.matrix),
            "lenience": setting.lenience,
        }
        rows.append(
            {"name": name}
            | fields
            | {"exempt": setting.exempt_max_gram, "texts": len(table)}
            | counts
            | {"swi": swi, "low": low, "high": high}
        )
    return pd.DataFrame(rows)


def versus(
    recordings: Sequence[Recording],
    setting: CascadeSetting,
    other: CascadeSetting,
    prices: Mapping[str, float],
    *,
    seed: int = 0,
) -> tuple[float, float, float]:
    """How many times one setting's SWI is the other's on the same texts, and the interval: (ratio,
    low, high).
    """
    ours, theirs = (_costs(replayed(recordings, [one]), prices) for one in (setting, other))
    return paired_bootstrap(ours.worth, ours.paid, theirs.worth, theirs.paid, seed=seed)


def ablations(setting: CascadeSetting) -> dict[str, CascadeSetting]:
    """A cascade of models above Max-Gram, and what is left without each of its ideas.

    Without the horizontal cascade, each reviewer is handed tokens of the first drafter alone that
    it asks; without the vertical one, every model guesses token by token; without Max-Gram, the
    weakest model takes its place at the bottom.
    Raises ValueError if there is no model above Max-Gram, or the target asks none.
    """
    if (
        len(setting.drafters) < 2
        or setting.drafters[-1] != MAX_GRAM
        or not any(setting.matrix[0][:-1])
    ):
        raise ValueError(
            f"an ablation needs a cascade of models above {MAX_GRAM}, got"
            f" {', '.join(setting.drafters)} and {setting.matrix[0]}"
        )
    matrix, size = setting.matrix, len(setting.drafters)
    first = [next((column for column, length in enumerate(row) if length), 0) for row in matrix]
    alone = tuple(
        tuple(length if column == first[number] else 0 for column, length in enumerate(row))
        for number, row in enumerate(matrix)
    )
    return {
        "full": setting,
        "no horizontal": replace(setting, matrix=alone),
        "no vertical": replace(
            setting, matrix=(matrix[0], *((0,) * size for _ in range(size - 1)))
        ),
        "no Max-Gram": replace(
            setting, drafters=setting.drafters[:-1], matrix=tuple(row[:-1] for row in matrix[:-1])
        ),
        "no lenience": replace(setting, lenience=1.0),
    }


def _costs(table: "DataFrame", prices: Mapping[str, float]) -> Costs:
    models = [column.removesuffix("_passes") for column in table if column.endswith("_passes")]
    missing = [model for model in models if model not in prices]
    if missing:
        raise ValueError(
            f"every model that ran needs a price: {', '.join(missing)} has none; there are"
            f" {', '.join(prices) or 'none'}"
        )
    paid = sum(table[f"{model}_passes"] * prices[model] for model in models)
    return Costs((table.tokens * prices[TARGET]).tolist(), paid.tolist())


def written(matrix: Sequence[Sequence[int]]) -> str:
    """A matrix in one line, "5 14 10 / 0 1 10 / 0 0 10"."""
    return " / ".join(" ".join(map(str, row)) for row in matrix)
