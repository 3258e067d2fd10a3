"""The words of the command line."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.reproduce.settings import PROFILES


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for; argparse's own exit on a word it does not know."""
    parser = Parser(
        "reproduce",
        "Run the notebooks; every figure is made anew, and figures/index.html shows them all.",
    )
    told = parser.add_argument_group("instead of running")
    told.add_argument("--list", action="store_true", help="show the notebooks and their parameters")
    told.add_argument("--dry-run", action="store_true", help="show what would run, and why")
    told.add_argument(
        "--check",
        action="store_true",
        help="run into a temporary folder and compare the tables, all but columns of seconds",
    )
    told.add_argument(
        "--refresh",
        action="store_true",
        help="run with the defaults and store the outputs in the notebooks themselves",
    )
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "--only",
        nargs="+",
        default=[],
        action="extend",
        metavar="NN",
        help="numbers or names of notebooks; all without",
    )
    what.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="name=value",
        action="extend",
        help="parameters, for every notebook that has them",
    )
    what.add_argument(
        "--profile",
        choices=PROFILES,
        default="smoke",
        help="smoke: the defaults; full: notebooks/full/NN.yml",
    )
    what.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where figures go; without, the folder SPECDEC_FIGURES names, else figures/",
    )
    how = parser.add_argument_group("how to run")
    how.add_argument(
        "--fresh",
        dest="resume",
        action="store_false",
        help="run again what is unchanged since its last run",
    )
    how.add_argument(
        "--resume",
        dest="resume",
        action="store_true",
        default=True,
        help="skip what is unchanged since its last run (the default)",
    )
    how.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="notebooks at a time; timings are only right with 1 (the default)",
    )
    return parser.parse_args(arguments)


def check_options(asked: argparse.Namespace) -> None:
    """Raises ValueError for options that do not go together, or a wrong number of jobs."""
    if asked.refresh and (asked.set or asked.profile != "smoke"):
        raise ValueError(
            "--refresh stores what the defaults give; it goes with neither --set nor --profile full"
        )
    if asked.jobs < 1:
        raise ValueError(f"--jobs counts from 1, got {asked.jobs}")
    if asked.list and (
        asked.set or asked.profile != "smoke" or asked.out or asked.jobs != 1 or not asked.resume
    ):
        raise ValueError(
            "--list shows notebooks and runs nothing: it goes with --only, and with no other word"
        )
    modes = [
        name
        for name in ("--list", "--dry-run", "--check", "--refresh")
        if getattr(asked, name[2:].replace("-", "_"))
    ]
    if len(modes) > 1:
        raise ValueError(f"one of {', '.join(modes)} at a time")
