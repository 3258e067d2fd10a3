"""`specdec bench`."""

from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from specdec_lib.measure.options import (
    Out,
    OwnPrompts,
    Seed,
    Threads,
    flag,
    output_folder,
    use_threads,
)

Edition = Annotated[
    Literal["exact", "int8"],
    Parameter(help="of the models: exact beside Hugging Face, or int8, which is another model"),
]
Limits = Annotated[
    tuple[int, int, int],
    Parameter(
        help="held-out prompts of each domain: greedy, T = 1 with top-k 50, T = 1 (the best only)"
    ),
]


def bench(
    *,
    smoke: Annotated[bool, flag("everything once, on a few prompts; nothing is kept")] = False,
    threads: Threads = None,
    edition: Edition = "exact",
    prompts: OwnPrompts = None,
    limit: Limits | None = None,
    others: Annotated[
        int | None, Parameter(help="of these prompts, those that the slower baselines run too")
    ] = None,
    settings: Annotated[
        int | None,
        Parameter(help="of each method, tried on development prompts (default: all)"),
    ] = None,
    max_new_tokens: Annotated[
        int | None, Parameter(help="new tokens per prompt, at most (default: 128)")
    ] = None,
    seed: Seed = 0,
    out: Out = None,
) -> None:
    """Time every method against what a user would pick instead: run it where nothing else runs.

    Under each sampler methods are tuned on development prompts and race on held-out ones. What is
    finished is kept by prompt, so that a run goes on where it was. The tables are
    race_MACHINE.csv and those beside it.
    """
    from specdec_lib.measure.bench import SMOKE, check_places, race_all
    from specdec_lib.measure.race_table import MEASURED
    from specdec_lib.measure.tuned_methods import BenchPlan

    folder = None if smoke else output_folder(out, prompts, MEASURED)
    if folder is not None:
        check_places(edition, folder)
    use_threads(threads)
    named = {
        "prompts": limit,
        "others": others,
        "most": settings,
        "tokens": max_new_tokens,
        "source": prompts,
    }
    asked = {name: one for name, one in named.items() if one is not None}
    plan = replace(SMOKE if smoke else BenchPlan(), **asked, seed=seed, hugging=edition == "exact")
    race_all(edition, plan, folder, smoke=smoke)
