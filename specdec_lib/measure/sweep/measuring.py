"""`specdec measure staged`: runs the staged notebook's sweep on held-out prompts of every domain,
counted along the target's stored texts, into data/measured/staged.csv.
"""

from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA
from specdec_lib.measure.sweep.command import held_out_sweep, with_domain
from specdec_lib.measure.sweep.stacks import staged_settings

PLACE = DATA / "measured" / "staged.csv"


def main(arguments: list[str] | None = None) -> None:
    """Run the command; an interrupted run goes on where it was."""
    parser = Parser("measure staged", __doc__.partition(": ")[2], writes=[PLACE])
    parser.add_common("--limit", 8, "of each domain")
    prompts, run = held_out_sweep(staged_settings, parser.parse_args(arguments).limit)
    write_csv(with_domain(run(prompts)).drop(columns="sampling"), PLACE, 5)
