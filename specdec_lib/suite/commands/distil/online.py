"""`specdec distil online`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import cache_folder
from specdec_lib.measure.options import Device, check_folders, place, several_places
from specdec_lib.suite.distil.places import LADDER, TEXT


def online(
    *,
    judged: Annotated[Path | None, place("shards that are judged on; else nothing is")] = None,
    text: Annotated[Path, place("the folder of shards")] = TEXT,
    steps: Annotated[int | None, Parameter(help="of training")] = None,
    minutes: Annotated[float | None, Parameter(help="of training, in place of --steps")] = None,
    batch_tokens: Annotated[int, Parameter(help="of a step, padding included")] = 8192,
    device: Device = "cpu",
    prompts: Annotated[list[Path] | None, several_places("prompt files, judged on too")] = None,
    begin: Annotated[Path, place("the folder of the drafts to go on from")] = LADDER,
    drafts: Annotated[list[str] | None, Parameter(help="that learn (default: all three)")] = None,
    rate: Annotated[float, Parameter(help="factor of the learning rates")] = 1.0,
    seed: Annotated[int, Parameter(help="of the order in which text is seen")] = 0,
    out: Annotated[Path | None, place("where they are written (default: in the cache)")] = None,
) -> None:
    """Go on training the ladder's drafts, and a draft that reads the target, beside the target."""
    folder = out or cache_folder() / "online"
    reads = {"text": text, "begin": begin} | ({"judged": judged} if judged else {})
    if prompts and judged is None:
        raise ValueError("--prompts names files that are judged on too, beside --judged")
    check_folders({"out": folder}, reads=reads)
    from specdec_lib.suite.distil.beside_target import (
        RATES,
        OnlinePlan,
        summary,
        train_beside_target,
    )

    seconds = None if minutes is None else minutes * 60
    learning = drafts or tuple(RATES)
    table = train_beside_target(
        OnlinePlan(steps, seconds, batch_tokens, begin, learning, rate, seed),
        text,
        judged,
        prompts or (),
        folder,
        device=device,
    )
    if table is not None:
        print(summary(table).to_string())
