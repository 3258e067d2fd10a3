"""How far into one long draft a drafter is still right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specdec_lib.measure.intervals import bootstrap
from specdec_lib.measure.replay.playing import replay
from specdec_lib.measure.replay.recording import CascadeSetting, Recording

if TYPE_CHECKING:
    from pandas import DataFrame


def survival(
    recordings: Sequence[Recording], drafter: str, *, length: int = 30, seed: int = 0
) -> "DataFrame":
    """P(a draft of `length` tokens is accepted up to and including a position), by position from 1:
    position, at_risk, rate, low, high.

    A draft is at risk at a position if the text goes on that far. The interval is over texts.
    Raises ValueError as `replay` does.
    Source: Chen et al. 2024, figure 2.
    """
    import pandas as pd

    setting, found = CascadeSetting((drafter,), ((length,),)), []
    for recording in recordings:
        start, accepted, tried = 0, [0] * length, [0] * length
        for emitted in replay(recording, setting).emitted:
            left = len(recording.tokens) - start
            for position in range(
                min(length, left - 1)
            ):  # no round may guess the text's last token
                tried[position] += 1
                accepted[position] += position < emitted - 1
            start += emitted
        found.append((accepted, tried))
    rows = []
    for position in range(length):
        accepted, tried = ([text[side][position] for text in found] for side in (0, 1))
        rate, low, high = bootstrap(accepted, tried, seed=seed)
        rows.append((position + 1, sum(tried), rate, low, high))
    return pd.DataFrame(rows, columns=["position", "at_risk", "rate", "low", "high"])
