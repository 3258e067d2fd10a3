"""`specdec measure verifiers`."""

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


def verifiers(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 15,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """Expected tokens per round of every verification rule, on the same drafts.

    They stand beside a bound that none can exceed, at the same contexts of what the target writes
    after held-out prompts. Finished prompts are kept, and a run that was stopped goes on there.
    """
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.rule_bench.verifying import (
        LADDER,
        PLACE,
        measure_rules,
        summarise_rules,
    )
    from specdec_lib.measure.target_text import judged_prompts

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    asked = judged_prompts(prompts, limit)
    with opened(scheduler, LADDER) as cluster:
        found = measure_rules(asked, cluster)
    print(summarise_rules(found).round(3).to_string(index=False))
    write_csv(found, place, 6)
    print_where([place])
