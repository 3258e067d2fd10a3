"""`specdec measure staged`: runs the staged notebook's sweep on 32 held-out code prompts.

The table goes to data/measured/staged.csv. Each prompt's rows are kept as soon as they are done, so
that an interrupted run goes on where it was.
Counts are the same however many processes share the prompts; seconds are only worth something from
one process on a machine that does nothing else.
"""

from pathlib import Path

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, cache_folder, write_whole
from specdec_lib.measure.sweep.cluster import LADDER, cluster_for
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.workload import load_prompts

PLACE = DATA / "measured" / "staged.csv"
LEFT_OUT = [
    "match",
    "stop",
    "prefill_seconds",
    "overhead_seconds",
    "target_seconds",
    "draft_seconds",
    "middle_seconds",
]


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = Parser("measure staged", __doc__.partition(": ")[2])
    parser.add_argument(
        "--cache",
        type=Path,
        default=cache_folder() / "staged",
        help="where each prompt's rows are kept; remove it to begin anew",
    )
    parser.add_common("--limit", 32)
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="processes that share the prompts; counts are the same for any number",
    )
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs is at least 1, got {given.jobs}")
    torch.set_num_threads(1)
    prompts = load_prompts("code", "held-out", given.limit)
    with cluster_for(given.jobs) as client:
        table = sweep(
            Recipe("specdec_lib.measure.sweep.stacks:settings"),
            prompts,
            LADDER,
            keep=given.cache,
            client=client,
        )
    PLACE.parent.mkdir(exist_ok=True)
    table = table.drop(columns=LEFT_OUT, errors="ignore").round(5)
    write_whole(PLACE, table.to_csv(index=False).encode())
