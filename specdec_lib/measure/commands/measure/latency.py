"""`specdec measure latency`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import check_output
from specdec_lib.measure.options import Out, OwnPrompts, output_folder, use_threads

Prompts = Annotated[
    int,
    Parameter(name="--limit", help="prompts for speeds; half for sweeps, a quarter for the ledger"),
]


def latency(
    *,
    prompts: OwnPrompts = None,
    limit: Prompts = 40,
    threads: Annotated[int, Parameter(help="of torch")] = 1,
    out: Out = None,
) -> None:
    """Seconds per pass, per round and per setting, in four tables with the name of the machine.

    What is compared is timed in turn, so that a slow machine slows all of it. Run it where nothing
    else runs.
    """
    from specdec_lib.measure.latency.measuring import MEASURES, PLACE, table_file, write_tables
    from specdec_lib.measure.latency.predict import Ranges

    folder = output_folder(out, prompts, PLACE)
    for name in MEASURES:
        check_output(table_file(name, folder))
    use_threads(threads)
    domains = Ranges().domains if prompts is None else (prompts,)
    write_tables(Ranges(prompts=limit, domains=domains), folder)
