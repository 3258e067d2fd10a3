"""`specdec measure walltime`."""

from specdec_lib.measure.options import (
    Csv,
    DomainLimit,
    OwnPrompts,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def walltime(*, prompts: OwnPrompts = None, limit: DomainLimit = 12, csv: Csv = None) -> None:
    """Cascades by the clock: run it where nothing else runs.

    The settings are the cascade paper's own (its tables 3 and 4), and what is left of a tuned
    cascade without each of its ideas, or with another entry or lenience. Finished prompts are kept.
    """
    import pandas as pd

    from specdec_lib.measure.cascade.variants import DEVELOPMENT, PLACE, measure_walltime
    from specdec_lib.measure.target_text import prompts_of_splits

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    timed = pd.read_csv(PLACE.with_name("prices.csv"))
    prices = dict(zip(timed.model, timed.price, strict=True))
    both = prompts_of_splits(prompts, DEVELOPMENT, limit)
    write_csv(measure_walltime(both, prices), place, 5)
    print_where([place])
