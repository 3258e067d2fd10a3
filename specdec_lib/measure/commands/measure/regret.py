"""`specdec measure regret`."""

from typing import Annotated

from specdec_lib.measure.options import (
    Csv,
    OwnPrompts,
    Scheduler,
    SplitLimit,
    flag,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def regret(
    *,
    prompts: OwnPrompts = None,
    limit: SplitLimit = 10,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """What a plan loses against the best of all settings that were tried.

    Settings are chosen on development prompts (the plan), or on one half of the held-out prompts
    (the best), and compared on the other half. Tokens and passes are counted along the target's
    text; passes are priced as they are timed here and now, the rest by the clock. Run it where
    nothing else runs.
    """
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.plan_regret import PLACE, RECIPE, measure_regret
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.target_text import prompts_of_splits

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    both = prompts_of_splits(prompts, limit, limit)
    with opened(scheduler, RECIPE) as cluster:
        Quiet(busy).check()
        write_csv(measure_regret(both, cluster), place, 6)
    print_where([place])
