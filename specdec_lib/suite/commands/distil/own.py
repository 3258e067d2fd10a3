"""`specdec distil own`, and `specdec distil` alone."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import Device, Scheduler, Seed, check_folders, place


def own(
    *,
    target: Annotated[str, Parameter(help="a folder in hub format, or a hub name")],
    out: Annotated[Path, place("the folder of the ladder that is made")],
    answer_tokens: Annotated[
        int, Parameter(help="that the target writes to learn from")
    ] = 2_000_000,
    looks: Annotated[int, Parameter(help="how often the training sees them")] = 3,
    sampled: Annotated[int, Parameter(help="tokens on which n-grams are counted")] = 1_000_000,
    device: Device = "cpu",
    seed: Seed = 0,
    keep: Annotated[bool, Parameter(help="keep the text and all else that was made")] = False,
    scheduler: Scheduler = None,
) -> None:
    """Make drafts for a target of your own: text that it writes, one layer, one layer that reads
    the target, about a seventh of its layers, n-grams, match tables, and a plan.

    An interrupted run goes on. The folder is a ladder: `load_ladder("FOLDER")`, `specdec compare
    --target FOLDER`, `specdec plan --target FOLDER`.
    """
    check_folders({"out": out})
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.commands.plan import plan
    from specdec_lib.suite.distil.own import clear_making, make_ladder, told_shares
    from specdec_lib.suite.distil.own_text import OwnPlan

    how = OwnPlan(answer_tokens=answer_tokens, looks=looks, sampled=sampled, seed=seed)
    with opened(scheduler, None) as cluster:
        judged = make_ladder(target, out, how, device=device, cluster=cluster)
    print(*told_shares(judged), sep="\n")
    if not keep:
        clear_making(out)
    plan(target=str(out), json=out / "plan.json")
