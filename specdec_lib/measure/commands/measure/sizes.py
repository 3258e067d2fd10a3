"""`specdec measure sizes`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import Csv, print_where, table_places, write_csv

Models = Annotated[
    tuple[str, ...],
    Parameter(
        help="shapes: Qwen3-0.6B, Llama-3.2-1B, Gemma-3-1B, SmolLM3-3B", consume_multiple=True
    ),
]
Threads = Annotated[
    tuple[int, ...], Parameter(help="numbers of threads, in turn", consume_multiple=True)
]


def sizes(*, models: Models = (), threads: Threads = (1, 2), csv: Csv = None) -> None:
    """What models of the sizes that people use take here: memory, loading, passes by rows, rounds.

    Their weights are random and written into the cache first, 12 GB for all. Run it where nothing
    else runs.
    """
    from specdec_lib.measure.sizes import measure_sizes, renew_page, shapes_named, stored_place

    names = shapes_named(models)
    (place,) = table_places(csv, None, stored_place())
    found = measure_sizes(names, threads)
    print(found.to_string(index=False))
    write_csv(found, place, digits=2)
    if csv is None and place is not None:
        renew_page(place)
    print_where([place])
