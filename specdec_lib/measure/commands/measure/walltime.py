"""`specdec measure walltime`."""

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


def walltime(
    *,
    prompts: OwnPrompts = None,
    limit: DomainLimit = 10,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """Cascades by the clock: run it where nothing else runs.

    The settings are the cascade paper's own (its tables 3 and 4), and what is left of a tuned
    cascade without each of its ideas, or with another entry or lenience. Finished prompts are kept.
    """
    from specdec_lib.measure.cascade.variants import DEVELOPMENT, measure_walltime
    from specdec_lib.measure.machine import HERE, clocked_file
    from specdec_lib.measure.price_map import timed_prices
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.target_text import prompts_of_splits

    use_threads(1)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, prompts, clocked_file("walltime"))
    both = prompts_of_splits(prompts, DEVELOPMENT, limit)
    write_csv(measure_walltime(both, timed_prices(HERE), Quiet(busy)), place, 5)
    print_where([place])
