"""Verbs of the command line, run in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec_lib.suite.command import parse


def run(*words: str) -> Any:
    """What the verb of a command line returns; what it raises is raised."""
    call, given = parse(words)
    return call(*given.args, **given.kwargs)


def reproduce(words: Sequence[str], notebooks: Path) -> int:
    """The exit status of `specdec reproduce` with other notebooks, in this process unless --jobs
    says otherwise.
    """
    here = () if {"--jobs", "--grid"} & {*words} else ("--jobs", "1")
    return run("reproduce", "--notebooks", str(notebooks), *here, *words)
