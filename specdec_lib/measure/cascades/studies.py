"""Studies over replayed cascades: settings tuned, their ratios, survival and ablations."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from specdec_lib.measure.intervals import Interval, bootstrap
from specdec_lib.measure.replay.cascade_rounds import replay_cascade
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording
from specdec_lib.measure.replay.tuning import Tuned, costs_of, tune

ALONE = (("middle",), ("draft",), (MAX_GRAM,))
CASCADES = (("middle", MAX_GRAM), ("draft", MAX_GRAM), ("middle", "draft", MAX_GRAM))


def tune_stacks(
    recordings: Sequence[Recording], prices: Mapping[str, float], *, progress: bool = True
) -> dict[tuple[str, ...], Tuned]:
    """The best setting of each drafter alone and of each cascade on these texts; that of three is
    also looked for around those of two.  Raises ValueError as `tune` does.
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
    """A cascade of one model as one of both: the other contributes one token where it fits."""
    (own, tail), (_, below) = setting.matrix
    matrix = ((1, own, tail), (0, 0, below), (0, 0, below))
    if setting.drafters[0] == "middle":
        matrix = ((own, 0, tail), (0, 1, below), (0, 0, below))
    return replace(setting, drafters=CASCADES[-1], matrix=matrix)


def swi_ratio(
    recordings: Sequence[Recording],
    setting: CascadeSetting,
    other: CascadeSetting,
    prices: Mapping[str, float],
) -> Interval:
    """How many times one setting's SWI is the other's on the same texts, and the interval."""
    ours, theirs = (
        costs_of([replay_cascade(recording, one) for recording in recordings], prices)
        for one in (setting, other)
    )
    return bootstrap(*ours, *theirs)


def survival(recordings: Sequence[Recording], drafter: str, *, length: int = 30) -> pd.DataFrame:
    """P(a draft of `length` tokens is accepted up to and including a position), by position from 1:
    position, at_risk, rate, low, high.

    A draft is at risk at a position if the text goes on that far. The interval is over texts.
    Raises ValueError as `replay_cascade` does.
    Source: Chen et al. 2024, figure 2.
    """
    setting, found = CascadeSetting((drafter,), ((length,),)), []
    for recording in recordings:
        start, accepted, tried = 0, [0] * length, [0] * length
        for emitted in replay_cascade(recording, setting).emitted:
            left = len(recording.tokens) - start
            # no round may guess the text's last token
            for position in range(min(length, left - 1)):
                tried[position] += 1
                accepted[position] += position < emitted - 1
            start += emitted
        found.append((accepted, tried))
    rows = []
    for position in range(length):
        accepted, tried = ([text[side][position] for text in found] for side in (0, 1))
        rows.append((position + 1, sum(tried), *bootstrap(accepted, tried)))
    return pd.DataFrame(rows, columns=["position", "at_risk", "rate", "low", "high"])


def ablations(setting: CascadeSetting) -> dict[str, CascadeSetting]:
    """A cascade of models above Max-Gram, and the same cascade without each of its ideas.

    Without the horizontal cascade, each reviewer gets tokens of the first drafter in its row alone;
    without the vertical one, every model guesses token by token; without Max-Gram, the weakest
    model takes its place at the bottom.
    Raises ValueError if there is no model above Max-Gram, or none proposes to the target.
    """
    *models, last = setting.drafters
    if not models or last != MAX_GRAM or not any(setting.matrix[0][:-1]):
        raise ValueError(
            f"an ablation needs a cascade of models above {MAX_GRAM}, got"
            f" {', '.join(setting.drafters)} and {setting.matrix[0]}"
        )
    matrix = setting.matrix
    alone = tuple(
        tuple(0 if any(row[:column]) else length for column, length in enumerate(row))
        for row in matrix
    )
    idle = (matrix[0], *((0,) * len(row) for row in matrix[1:]))
    fewer = tuple(row[:-1] for row in matrix[:-1])
    return {
        "full": setting,
        "no horizontal": replace(setting, matrix=alone),
        "no vertical": replace(setting, matrix=idle),
        "no Max-Gram": replace(setting, drafters=tuple(models), matrix=fewer),
        "no lenience": replace(setting, lenience=1.0),
    }
