"""`specdec measure learning`."""

from typing import Annotated

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    OwnPrompts,
    flag,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def learning(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 10,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """Drafts without a network, and those that learn while they decode, by the clock.

    Run it where nothing else runs. An interrupted run goes on with the domain it was at.
    """
    from specdec_lib.measure.learning import measure_learning, summarise_learning
    from specdec_lib.measure.machine import clocked_file
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.target_text import judged_prompts

    use_threads(1)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, prompts, clocked_file("learning"))
    found = measure_learning(judged_prompts(prompts, limit), Quiet(busy))
    write_csv(found, place, 6)
    print(summarise_learning(found).round(3).to_string(index=False))
    print_where([place])
