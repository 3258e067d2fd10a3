"""`specdec measure learning`."""

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    OwnPrompts,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def learning(*, prompts: OwnPrompts = None, limit: DomainLimit = 10, csv: Csv = None) -> None:
    """Drafts without a network, and those that learn while they decode, by the clock.

    Run it where nothing else runs. An interrupted run goes on with the domain it was at.
    """
    from specdec_lib.measure.learning import PLACE, measure_learning, summarise_learning
    from specdec_lib.measure.target_text import judged_prompts

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    found = measure_learning(judged_prompts(prompts, limit))
    write_csv(found, place, 6)
    print(summarise_learning(found).round(3).to_string(index=False))
    print_where([place])
