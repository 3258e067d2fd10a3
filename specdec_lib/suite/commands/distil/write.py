"""`specdec distil write`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from specdec_lib.measure.options import Device, Scheduler, check_folders, place
from specdec_lib.suite.distil.places import TEXT, passages_file


def write(
    *,
    answer_tokens: Annotated[int, Parameter(help="in all shards")] = 5_000_000,
    passages: Annotated[
        Path | None, place("what `distil passages` wrote (default: in the cache)")
    ] = None,
    kinds: Annotated[
        Literal["short", "long", "kept-out"], Parameter(help="of conversation")
    ] = "short",
    sequences: Annotated[int, Parameter(help="conversations written at a time")] = 64,
    device: Device = "cpu",
    out: Annotated[Path, place("the folder of shards")] = TEXT,
    scheduler: Scheduler = None,
) -> None:
    """Let the target write text to learn from; an interrupted run goes on.

    It completes a user turn, then answers it, or answers a request about a passage, code or a
    translated string that others wrote.
    """
    file = passages or passages_file()
    check_folders({"out": out}, reads={"passages": file})
    from specdec_lib.measure.cluster import opened
    from specdec_lib.suite.distil.parts import write_conversations

    with opened(scheduler, None) as cluster:
        tokens = write_conversations(
            out,
            file,
            kinds,
            answer_tokens=answer_tokens,
            sequences=sequences,
            device=device,
            cluster=cluster,
        )
    print(f"{tokens:,} answer tokens are in {out}")
