"""`specdec measure staged`: runs the staged notebook's sweep on 32 held-out code prompts.

The table goes to data/measured/staged.csv. An interrupted run goes on where it was. Seconds are
only worth something from one process on a machine that does nothing else.
"""

from specdec_lib.core.files import DATA, write_whole
from specdec_lib.measure.sweep.command import measured_rows

PLACE = DATA / "measured" / "staged.csv"
LEFT_OUT = "match stop prefill_seconds overhead_seconds target_seconds draft_seconds middle_seconds"


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    table = measured_rows("staged", __doc__, arguments, prompts=32, jobs=1)
    table = table.drop(columns=LEFT_OUT.split(), errors="ignore").round(5)
    PLACE.parent.mkdir(exist_ok=True)
    write_whole(PLACE, table.to_csv(index=False).encode())
