"""`specdec measure table`."""

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


def table(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 60,
    csv: Csv = None,
    scheduler: Scheduler = None,
) -> None:
    """Tokens per round and acceptance by domain and sampler, into docs/results.md too.

    They are counted along what the target writes after held-out prompts; every tenth prompt is
    really decoded too. A run that was interrupted goes on where it was.
    """
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.domain_table import LADDER, PLACE, markdown, measure_domains
    from specdec_lib.measure.pages import RESULTS, replace_marked
    from specdec_lib.measure.target_text import judged_prompts

    place, page = table_places(csv, prompts, PLACE, RESULTS)
    use_threads(1)
    asked = judged_prompts(prompts, limit)
    with opened(scheduler, LADDER) as cluster:
        found = measure_domains(asked, cluster)
    text = markdown(found)
    print(text if page else found.round(2).to_string(index=False))
    write_csv(found, place, 6)
    if page:
        replace_marked("table", text, page)
    print_where([place, page])
