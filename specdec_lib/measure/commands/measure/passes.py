"""`specdec measure passes`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.measure.options import (
    Csv,
    flag,
    print_where,
    table_places,
    use_threads,
    write_csv,
)


def passes(
    *,
    threads: Annotated[int, Parameter(help="of torch")] = 1,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    csv: Csv = None,
) -> None:
    """Prices of this machine: seconds of a pass of every model, by rows and context. `specdec plan
    --prices` and notebook 08 read such a table, also one from another machine.

    Run it where nothing else runs.
    """
    from specdec_lib.measure.machine import clocked_file
    from specdec_lib.measure.price_list import measure_passes
    from specdec_lib.measure.quiet import Quiet

    use_threads(threads)  # before the machine is named: its threads are part of the name
    (place,) = table_places(csv, None, clocked_file("passes"))
    found = measure_passes(Quiet(busy))
    write_csv(found, place, 8)
    shown = found[found.context_tokens == found.context_tokens.median()]
    table = 1000 * shown.pivot(index=["edition", "model"], columns="rows", values="seconds")
    print("milliseconds of a pass by rows:")
    print(table.round(2).to_string())
    print_where([place])
