"""`specdec measure staged`."""

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


def staged(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 8,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """The sweep behind notebook 03b, on held-out prompts; an interrupted run goes on."""
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.domain_table import LADDER, STAGED, measure_staged
    from specdec_lib.measure.target_text import judged_prompts

    (place,) = table_places(csv, prompts, STAGED)
    use_threads(1)
    asked = judged_prompts(prompts, limit)
    with opened(scheduler, LADDER) as cluster:
        write_csv(measure_staged(asked, cluster), place, 5)
    print_where([place])
