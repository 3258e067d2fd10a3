"""`python -m specdec_lib.measure.sweep.measuring`: the sweep of the staged notebook on 32 held-out
code prompts, into data/measured/staged.csv.

Prompt by prompt, each kept as soon as it is done, so that an interrupted run goes on where it was.
Counts are the same however many processes share the prompts; seconds are only worth something from
one process on a machine that does nothing else.
"""

import argparse
import os
from pathlib import Path

import torch

from specdec_lib.core.files import DATA
from specdec_lib.measure.sweep.cluster import LADDER, shared_by
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


def main() -> None:
    """Parse the command line, measure what is missing, and write the table."""
    parser = argparse.ArgumentParser(
        prog="python -m specdec_lib.measure.sweep.measuring", description=__doc__
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=DATA / "cache" / "staged",
        help="where each prompt's rows are kept; remove it to begin anew",
    )
    parser.add_argument(
        "--prompts", type=int, default=32, help="the first so many held-out code prompts"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="processes that share the prompts; counts are the same for any number",
    )
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error(f"--jobs is at least 1, got {given.jobs}")
    torch.set_num_threads(1)
    prompts = load_prompts("code", "held-out", given.prompts)
    with shared_by(given.jobs) as client:
        table = sweep(
            Recipe("specdec_lib.measure.sweep.stacks:settings"),
            prompts,
            LADDER,
            keep=given.cache,
            client=client,
        )
    PLACE.parent.mkdir(exist_ok=True)
    partial = PLACE.with_suffix(".partial")
    table.drop(columns=LEFT_OUT, errors="ignore").round(5).to_csv(partial, index=False)
    os.replace(partial, PLACE)


if __name__ == "__main__":
    main()
