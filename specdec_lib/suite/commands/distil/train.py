"""`specdec distil train`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import place
from specdec_lib.suite.distil.places import TEXT


def train(
    name: Annotated[str, Parameter(help="of the draft: draft or middle")],
    /,
    *,
    layers: Annotated[str, Parameter(help="the target's layers to start from: 0,10,20,29")],
    answer_tokens: Annotated[int, Parameter(help="seen in all")],
    rate: Annotated[float, Parameter(help="AdamW's largest learning rate")] = 2e-3,
    text: Annotated[Path, place("the folder of shards")] = TEXT,
) -> None:
    """Train a draft of some of the target's layers on lessons, and judge it."""
    try:
        starts = [int(number) for number in layers.split(",")]
    except ValueError as error:
        raise ValueError(f"--layers is numbers such as 0,10,20,29, got {layers!r}") from error
    from specdec_lib.suite.distil.training import TrainingPlan, train_draft

    judged = train_draft(name, TrainingPlan(starts, answer_tokens, rate), text)
    print(judged.round(3).to_string())
