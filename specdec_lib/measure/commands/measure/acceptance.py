"""`specdec measure acceptance`."""

from specdec_lib.measure.options import (
    Csv,
    OwnPrompts,
    Scheduler,
    SplitLimit,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def acceptance(
    *,
    prompts: OwnPrompts = None,
    limit: SplitLimit = 30,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """Theory against measurement: what a wide tree on development prompts predicts of others.

    A dozen other trees are measured on held-out prompts beside five predictions of each.
    """
    from specdec_lib.measure.acceptance.prediction import (
        COLUMNS,
        LADDER,
        PLACE,
        errors,
        measure_acceptance,
    )
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.target_text import chosen_prompts
    from specdec_lib.workload import SPLITS

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    known, unseen = (chosen_prompts(prompts, split, limit) for split in SPLITS)
    with opened(scheduler, LADDER) as cluster:
        found = measure_acceptance(known, unseen, cluster)
    print(errors(found, ["temperature", "predictor"]).round(4).to_string(index=False))
    write_csv(found[COLUMNS], place, 6)
    print_where([place])
