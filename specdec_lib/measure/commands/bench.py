"""`specdec bench`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

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

if TYPE_CHECKING:
    from specdec_lib.measure.tuned_methods import BenchPlan

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


Mine = Annotated[
    str | None,
    Parameter(
        help="a draft of your own in the current folder, MODULE:NAME, such as my_draft:MyDraft; it"
        " races beside plain decoding and our fastest methods as they were tuned on the README's"
        " machine, and the last line is a row of the record table (of --limit the first two"
        " numbers count)"
    ),
]
Smoke = Annotated[bool, flag("everything once, on a few prompts; nothing is kept")]
Others = Annotated[
    int | None, Parameter(help="of these prompts, those that the slower baselines run too")
]
Settings = Annotated[
    int | None, Parameter(help="of each method, tried on development prompts (default: all)")
]
NewTokens = Annotated[int | None, Parameter(help="new tokens per prompt, at most (default: 128)")]


def bench(
    *,
    mine: Mine = None,
    smoke: Smoke = False,
    threads: Threads = None,
    edition: Edition = "exact",
    prompts: OwnPrompts = None,
    limit: Limits | None = None,
    others: Others = None,
    settings: Settings = None,
    max_new_tokens: NewTokens = None,
    seed: Seed = 0,
    out: Out = None,
) -> int:
    """Time every method against what a user would pick instead: run it where nothing else runs.

    Under each sampler methods are tuned on development prompts and race on held-out ones. What is
    finished is kept by prompt, so that a run goes on where it was. The tables are
    race_MACHINE.csv and those beside it.

    With --mine it tunes and stores nothing; the exit status is 1 if a text of the draft is not the
    target's own.
    """
    if mine is not None and (out, others, settings) != (None, None, None):
        raise ValueError(
            "--mine takes no --out, --others or --settings: it tunes and stores nothing"
        )
    from specdec_lib.measure.bench import SMOKE, check_places, race_all
    from specdec_lib.measure.race_table import MEASURED
    from specdec_lib.measure.tuned_methods import BenchPlan

    folder = None if smoke or mine is not None else output_folder(out, prompts, MEASURED)
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
    if mine is not None:
        return _race_mine(mine, edition, plan, as_ours=limit is None and not smoke)
    race_all(edition, plan, folder, smoke=smoke)
    return 0


def _race_mine(mine: str, edition: Edition, plan: "BenchPlan", *, as_ours: bool) -> int:
    """Race a draft and print its row of the record table last; 1 if it is not exact."""
    from specdec_lib.measure.own_race import race_in_words, race_own, why_no_record

    table, record = race_own(mine, edition, plan, as_ours=as_ours)
    why = why_no_record(plan, as_ours=as_ours)
    print(f"{race_in_words(table, mine)}\n")
    print(f"no record, for {why}: {record.row()}" if why else record.row())
    return int(not record.exact)
