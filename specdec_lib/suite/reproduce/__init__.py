"""Runs the notebooks through papermill: `python -m specdec_lib.suite.reproduce`.

A run is a notebook, its parameters and everything it depends on; it is done once and then known by
its fingerprint. Executed notebooks and one manifest per run lie in `runs/` beside the figures; the
notebooks themselves change only under `--refresh`.
"""

from specdec_lib.suite.reproduce.command import main
from specdec_lib.suite.reproduce.plan import Run, planned
from specdec_lib.suite.reproduce.running import Outcome, outcome, refreshed

__all__ = ["Outcome", "Run", "main", "outcome", "planned", "refreshed"]
