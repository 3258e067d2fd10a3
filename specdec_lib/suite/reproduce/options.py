"""The options of `specdec reproduce`."""

import argparse
from collections.abc import Sequence

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.reproduce.settings import PROFILES

DESCRIPTION = (
    "Run the notebooks; every figure is made anew, and figures/index.html shows them all. Exit"
    " status: 0 all went well, 1 a notebook failed or a table differs, 2 refused before anything"
    " ran, 130 interrupted."
)
MODES = {
    "--list": "only show the notebooks and their parameters",
    "--dry-run": "only show what would run, and why",
    "--check": "run into a temporary folder and compare the tables, all but columns of seconds",
    "--refresh": "run with the defaults and store the outputs in the notebooks themselves",
}
SEVERAL = {"nargs": "+", "default": [], "action": "extend"}


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; raises ValueError for an unknown one, or some that do not go together."""
    parser = Parser("reproduce", DESCRIPTION, writes=None)
    modes = parser.add_mutually_exclusive_group()
    for name, what in MODES.items():
        modes.add_argument(name, action="store_true", help=what)
    add, each = parser.add_argument, "parameters, for every notebook that has them"
    add("--only", metavar="NN", help="numbers or names of notebooks; all without", **SEVERAL)
    add("--set", metavar="name=value", help=each, **SEVERAL)
    what = "smoke: the defaults; full: notebooks/full/NN.yml"
    add("--profile", choices=PROFILES, default="smoke", help=what)
    note = "without, the one SPECDEC_FIGURES names, else figures/"
    parser.add_common("--out", note=note)
    add("--fresh", action="store_true", help="run again what is unchanged since its last run")
    add("--jobs", type=int, default=1, help="notebooks at a time; timings are right only with 1")
    given = parser.parse_args(arguments)
    if given.refresh and (given.set or given.profile != "smoke"):
        raise ValueError(
            "--refresh stores what the defaults give; it goes with neither --set nor --profile full"
        )
    others = {name: value for name, value in vars(given).items() if name not in ("list", "only")}
    if given.list and any(value != parser.get_default(name) for name, value in others.items()):
        raise ValueError("--list runs nothing: it goes with --only, and with no other option")
    return given
