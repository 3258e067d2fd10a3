"""`specdec measure latency`."""

from typing import Annotated

from cyclopts import Parameter

from specdec_lib.core.files import check_output
from specdec_lib.measure.options import Out, OwnPrompts, flag, output_folder, use_threads

Prompts = Annotated[
    int,
    Parameter(name="--limit", help="prompts for speeds; half for sweeps, a quarter for the ledger"),
]


def latency(
    *,
    prompts: OwnPrompts = None,
    limit: Prompts = 20,
    threads: Annotated[int, Parameter(help="of torch")] = 1,
    busy: Annotated[bool, flag("time it though other programs run")] = False,
    out: Out = None,
) -> None:
    """Seconds per pass, per round and per setting, in four tables with the name of the machine.

    Drafts are in the int8 edition. What is compared is timed in turn, so that a slow machine slows
    all of it. Run it where nothing else runs. An interrupted run goes on where it was.
    """
    from specdec_lib.measure.latency.measuring import MEASURES, write_tables
    from specdec_lib.measure.latency.predict import Ranges
    from specdec_lib.measure.machine import clocked_file
    from specdec_lib.measure.quiet import Quiet
    from specdec_lib.measure.race_table import MEASURED

    use_threads(threads)  # before the machine is named: its threads are part of the name
    folder = output_folder(out, prompts, MEASURED)
    for name in MEASURES:
        check_output(clocked_file(name, folder=folder))
    domains = Ranges().domains if prompts is None else (prompts,)
    write_tables(Ranges(prompts=limit, domains=domains), folder, Quiet(busy))
