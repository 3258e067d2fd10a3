"""`specdec measure editions`."""

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    OwnPrompts,
    Scheduler,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def editions(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 8,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """How far the target's int8 edition is from the exact one, on what the target writes at T = 1.

    The loss in nats per token, the Kullback-Leibler divergence, and how often both choose the same
    likeliest token.
    """
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.int8_quality import LADDER, PLACE, measure_editions
    from specdec_lib.measure.target_text import judged_prompts

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    asked = judged_prompts(prompts, limit)
    with opened(scheduler, LADDER) as cluster:
        found = measure_editions(asked, cluster)
    print(found.to_string(index=False))
    write_csv(found, place)
    print_where([place])
