"""`specdec distil online`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import cache_folder
from specdec_lib.measure.options import Device, check_folders, place
from specdec_lib.suite.distil.places import ONLINE, TEXT


def online(
    *,
    judged: Annotated[Path, place("a folder of shards that are judged on too")],
    text: Annotated[Path, place("the folder of shards")] = TEXT,
    steps: Annotated[int | None, Parameter(help="of training")] = None,
    minutes: Annotated[float | None, Parameter(help="of training, in place of --steps")] = None,
    batch_tokens: Annotated[int, Parameter(help="of a step, padding included")] = 8192,
    device: Device = "cpu",
    prompts: Annotated[list[Path] | None, place("prompt files that are judged on too")] = None,
    begin: Annotated[Path, place("drafts to go on from; else the ladder's")] = ONLINE,
    out: Annotated[Path | None, place("where they are written (default: in the cache)")] = None,
) -> None:
    """Go on training the ladder's drafts, and a draft that reads the target, beside the target."""
    folder = out or cache_folder() / "online"
    check_folders({"out": folder}, reads={"text": text, "judged": judged, "begin": begin})
    from specdec_lib.suite.distil.beside_target import OnlinePlan, summary, train_beside_target

    table = train_beside_target(
        OnlinePlan(steps, None if minutes is None else minutes * 60, batch_tokens, begin),
        text,
        judged,
        prompts or (),
        folder,
        device=device,
    )
    print(summary(table).to_string())
