"""`specdec measure staged`: runs the staged notebook's sweep on held-out prompts of every domain,
counted along the target's stored texts.

The table goes to data/measured/staged.csv. An interrupted run goes on where it was.
"""

from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA
from specdec_lib.measure.sweep.command import count_texts, held_out, parse_jobs

PLACE = DATA / "measured" / "staged.csv"
MAX_NEW_TOKENS = 128


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = Parser(
        "measure staged", __doc__.partition(": ")[2].partition("\n\n")[0], writes=[PLACE]
    )
    parser.add_common("--limit", 8, "of each domain")
    given, jobs = parse_jobs(parser, arguments)
    rows = count_texts(held_out(given.limit), jobs, study="staged", max_new_tokens=MAX_NEW_TOKENS)
    timed = [name for name in rows if name.endswith("seconds")]  # nothing is worth timing here
    write_csv(rows.drop(columns=["match", "stop", "sampling", *timed]), PLACE, 5)
