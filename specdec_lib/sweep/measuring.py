"""`python -m specdec_lib.sweep.measuring`: the sweep of the staged notebook on 32 held-out code prompts, into data/measured/staged.csv.

Prompt by prompt, each kept as soon as it is done, so that an interrupted run goes on where it was; several processes may take a part each. Counts are
the same however many do; seconds are only worth something from one process on a machine that does nothing else.
"""

import argparse
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.sweep import stacks
from specdec_lib.sweep.grid import Setting, sweep
from specdec_lib.workload import DATA, Ladder, Prompt, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = DATA / "measured" / "staged.csv"
LEFT_OUT = ["match", "stop", "prefill_seconds", "overhead_seconds", "target_seconds", "draft_seconds", "middle_seconds"]


def measure(settings: Sequence[Setting], prompts: Sequence[Prompt], ladder: Ladder, cache: Path, *, max_new_tokens: int = 128) -> None:
    """Sweep each prompt that has no file in the cache yet."""
    from tqdm.auto import tqdm

    cache.mkdir(parents=True, exist_ok=True)
    for prompt in tqdm(prompts, desc="prompts"):
        path = _place(cache, prompt)
        if not path.exists():
            table = sweep(settings, [prompt], ladder, max_new_tokens=max_new_tokens, progress=False)
            partial = path.with_suffix(".partial")
            table.drop(columns=LEFT_OUT, errors="ignore").round(5).to_csv(partial, index=False)
            os.replace(partial, path)


def gathered(prompts: Sequence[Prompt], cache: Path) -> "DataFrame":
    """The rows of all prompts, in their order.  Raises ValueError if one was not measured."""
    import pandas as pd

    missing = [prompt.name for prompt in prompts if not _place(cache, prompt).exists()]
    if missing:
        raise ValueError(f"{len(missing)} of {len(prompts)} prompts were not measured yet, {missing[0]} the first of them")
    return pd.concat([pd.read_csv(_place(cache, prompt)) for prompt in prompts], ignore_index=True)


def _fingerprint(settings: Sequence[Setting], ladder: Ladder) -> str:
    """Of the settings, of how they are made, and of the models and tables they are made from."""
    made = [(one.name, one.sampler) for one in settings], Path(stacks.__file__).read_text(encoding="utf-8"), ladder.card["files"]
    return hashlib.sha256(repr(made).encode()).hexdigest()[:12]


def _place(cache: Path, prompt: Prompt) -> Path:
    return cache / f"{prompt.name.replace('/', '-')}.csv"


def main() -> None:
    """Parse the command line, measure what is missing, and write the table once all parts are done."""
    parser = argparse.ArgumentParser(prog="python -m specdec_lib.sweep.measuring", description=__doc__)
    parser.add_argument("--cache", type=Path, default=DATA / "cache" / "staged", help="where each prompt's rows are kept; remove it to begin anew")
    parser.add_argument("--prompts", type=int, default=32, help="the first so many held-out code prompts")
    parser.add_argument("--part", type=int, default=0, help="which part this process takes, from 0")
    parser.add_argument("--parts", type=int, default=1, help="how many processes share the prompts")
    given = parser.parse_args()
    if not 0 <= given.part < given.parts:
        parser.error(f"--part lies between 0 and {given.parts - 1}, got {given.part}")
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    prompts = load_prompts("code", "held-out", given.prompts)
    settings = stacks.settings(ladder)
    cache = given.cache / _fingerprint(settings, ladder)
    measure(settings, prompts[given.part :: given.parts], ladder, cache)
    try:
        table = gathered(prompts, cache)
    except ValueError as error:
        print(f"this part is done; {error}")
        return
    PLACE.parent.mkdir(exist_ok=True)
    partial = PLACE.with_suffix(".partial")
    table.to_csv(partial, index=False)
    os.replace(partial, PLACE)


if __name__ == "__main__":
    main()
