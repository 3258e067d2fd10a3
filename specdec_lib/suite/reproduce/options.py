"""The options of `specdec reproduce`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.reproduce.settings import PROFILES

DESCRIPTION = (
    "Run the notebooks; every figure is made anew, and figures/index.html shows them all. Exit"
    " status: 0 all went well, 1 a notebook failed or a table differs, 2 refused before anything"
    " ran, 130 interrupted."
)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; raises ValueError for an unknown one, or some that do not go together."""
    parser = Parser("reproduce", DESCRIPTION)
    add = parser.add_mutually_exclusive_group().add_argument
    add("--list", action="store_true", help="only show the notebooks and their parameters")
    add("--dry-run", action="store_true", help="only show what would run, and why")
    add(
        "--check",
        action="store_true",
        help="run into a temporary folder and compare the tables, all but columns of seconds",
    )
    add(
        "--refresh",
        action="store_true",
        help="run with the defaults and store the outputs in the notebooks themselves",
    )
    add = parser.add_argument
    several = {"nargs": "+", "default": [], "action": "extend"}
    add("--only", metavar="NN", help="numbers or names of notebooks; all without", **several)
    add(
        "--set",
        metavar="name=value",
        help="parameters, for every notebook that has them",
        **several,
    )
    add(
        "--profile",
        choices=PROFILES,
        default="smoke",
        help="smoke: the defaults; full: notebooks/full/NN.yml",
    )
    add(
        "--out",
        type=Path,
        help="the folder for figures; without, the one SPECDEC_FIGURES names, else figures/",
    )
    add("--fresh", action="store_true", help="run again what is unchanged since its last run")
    add("--jobs", type=int, default=1, help="notebooks at a time; timings are right only with 1")
    given = parser.parse_args(arguments)
    _check(given, parser)
    return given


def _check(given: argparse.Namespace, parser: Parser) -> None:
    if given.refresh and (given.set or given.profile != "smoke"):
        raise ValueError(
            "--refresh stores what the defaults give; it goes with neither --set nor --profile full"
        )
    if given.jobs < 1:
        raise ValueError(f"--jobs counts from 1, got {given.jobs}")
    others = {name: value for name, value in vars(given).items() if name not in ("list", "only")}
    if given.list and any(value != parser.get_default(name) for name, value in others.items()):
        raise ValueError("--list runs nothing: it goes with --only, and with no other option")
