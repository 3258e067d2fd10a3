"""`specdec measure cascades`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import check_output
from specdec_lib.measure.options import (
    Out,
    OwnPrompts,
    Scheduler,
    output_folder,
    use_threads,
    write_csv,
)

Limits = Annotated[
    tuple[int, int], Parameter(help="development and held-out prompts of each domain")
]


def cascades(
    *,
    prompts: OwnPrompts = None,
    limit: Limits = (12, 20),
    out: Out = None,
    scheduler: Scheduler = None,
) -> None:
    """The tables of notebooks 04 to 04c by replay: cascade_*.csv.

    Settings are tuned on development prompts and measured on held-out ones, at the passes that
    `measure passes` timed on this machine, else at those of the README's. An interrupted run goes
    on where it was.
    """
    from specdec_lib.measure.cascade.studies import FOLDER, LADDER, TABLES, measured_tables
    from specdec_lib.measure.cluster import opened
    from specdec_lib.measure.price_map import timed_prices
    from specdec_lib.measure.target_text import prompts_of_splits

    folder = output_folder(out, prompts, FOLDER)
    places = {name: folder / f"cascade_{name}.csv" for name in TABLES}
    for place in places.values():
        check_output(place)
    use_threads(1)
    both = prompts_of_splits(prompts, *limit)
    with opened(scheduler, LADDER) as cluster:
        tables = measured_tables(LADDER.load(), both, timed_prices(), cluster)
    for name, table in tables.items():
        write_csv(table, places[name], 5)
    print(f"written to {folder}")
