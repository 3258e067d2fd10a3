"""`specdec reproduce`."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from specdec_lib.measure.options import Scheduler, flag, place

List = Annotated[
    bool,
    Parameter(
        name="--list",
        help="only show the notebooks and their parameters",
        show_default=False,
    ),
]
DryRun = Annotated[bool, flag("only show what would run, and why")]
Check = Annotated[bool, flag("run into a temporary folder and compare the tables, but times")]
Refresh = Annotated[bool, flag("run with the defaults and store the outputs in the notebooks")]
Fresh = Annotated[bool, flag("run again what is unchanged since its last run")]
Only = Annotated[list[str] | None, Parameter(help="numbers or names of notebooks (default: all)")]
Settings = Annotated[
    list[str] | None,
    Parameter(name="--set", help="name=value …, for every notebook that has the parameter"),
]
Profile = Annotated[
    Literal["smoke", "full"], Parameter(help="smoke: the defaults; full: notebooks/full/NN.yml")
]
Figures = Annotated[
    Path | None,
    place("the folder of the figures (default: what SPECDEC_FIGURES names, else figures/)"),
]
GridFile = Annotated[
    Path | None, place("a YAML file with a list of values for each of some parameters")
]
Jobs = Annotated[
    int | None,
    Parameter(help="notebooks at once, but for those that time this machine (default: 2)"),
]
Notebooks = Annotated[Path | None, place("a folder of other notebooks (default: the suite's own)")]


def reproduce(
    *,
    show_list: List = False,
    dry_run: DryRun = False,
    check: Check = False,
    refresh: Refresh = False,
    only: Only = None,
    settings: Settings = None,
    profile: Profile = "smoke",
    out: Figures = None,
    fresh: Fresh = False,
    notebooks: Notebooks = None,
    jobs: Jobs = None,
    grid: GridFile = None,
    scheduler: Scheduler = None,
) -> int:
    """Run the notebooks; every figure is made anew, and figures/index.html shows them all.

    With --grid, run one notebook at every combination of some values of its parameters, and lay
    the tables of all runs side by side in --out.

    Exit status: 0 all went well, 1 a notebook failed or a table differs, 2 an error, 130
    interrupted.
    """
    modes = {"list": show_list, "dry-run": dry_run, "check": check, "refresh": refresh}
    asked = [name for name, one in modes.items() if one]
    if len(asked) > 1:
        raise ValueError(f"--{asked[0]} does not go with --{asked[1]}")
    _check_grid(grid, scheduler, jobs)
    from specdec_lib.suite.notebook import NOTEBOOKS
    from specdec_lib.suite.reproduce.running import RunRequest, reproduce_figures
    from specdec_lib.suite.reproduce.side_by_side import usual_jobs

    request = RunRequest(
        only=only or (),
        settings=settings or (),
        profile=profile,
        out=out,
        mode=asked[0] if asked else "",
        fresh=fresh,
        notebooks=notebooks or NOTEBOOKS,
        jobs=usual_jobs() if jobs is None else jobs,
    )
    if grid is None:
        return reproduce_figures(request)
    from specdec_lib.suite.reproduce.grid import reproduce_grid

    return reproduce_grid(request, grid, scheduler)


def _check_grid(grid: Path | None, scheduler: str | None, jobs: int | None) -> None:
    """Raises ValueError for an option that does not go with a grid, or only with one."""
    if grid is None and scheduler is not None:
        raise ValueError("--scheduler goes with --grid: figures are made on this machine")
    if grid is not None and jobs is not None:
        raise ValueError("--jobs does not go with --grid: workers of --scheduler share its runs")
