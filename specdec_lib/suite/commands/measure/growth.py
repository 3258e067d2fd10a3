"""`specdec measure growth`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import (
    Csv,
    OwnPrompts,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def growth(
    *,
    prompts: OwnPrompts = None,
    limit: Annotated[int, Parameter(help="development prompts of each domain")] = 12,
    csv: Csv = None,
) -> None:
    """N-gram quality by number of samples, and what pruning costs.

    Source: Spector and Ré 2023, section 3.2, which reports one table (120 M tokens sampled from the
    draft at temperature 1.5) and no curve.
    """
    from specdec_lib.measure.target_text import chosen_prompts
    from specdec_lib.suite.distil.ngrams import PLACE, measure_growth

    (place,) = table_places(csv, prompts, PLACE)
    use_threads(1)
    found = measure_growth(chosen_prompts(prompts, "development", limit))
    write_csv(found, place, 4)
    print(found.to_string())
    print_where([place])
