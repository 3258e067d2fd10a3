"""Prices of a machine: the seconds of a pass by model and rows, measured here or read from a file
that another machine made.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import read_prompt
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.latency.passes import curves, pass_tables, time_passes
from specdec_lib.measure.machine import clocked_here
from specdec_lib.measure.quiet import Quiet, watch
from specdec_lib.measure.settings.ladder_drafts import (
    EDITIONS,
    LadderDrafts,
    drafting_models,
    racing_ladder,
)
from specdec_lib.measure.settings.setting import GREEDY, TOP_50
from specdec_lib.theory import PassTable
from specdec_lib.workload import Ladder

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17)
CONTEXTS = (64, 256, 512)
REPEATS = 15
NEEDED = ("model", "rows", "seconds")
COLUMNS = """edition model rows context_tokens seconds low_seconds high_seconds greedy_choice
    drawn_choice repeats threads cores machine state date""".split()
CHOICES = {"greedy_choice": GREEDY, "drawn_choice": TOP_50}
GROWN = 4  # guesses of the chain whose passes tell what choosing a guess takes


def measure_passes(
    quiet: Quiet, *, rows: Sequence[int] = ROWS, contexts: Sequence[int] = CONTEXTS
) -> pd.DataFrame:
    """Seconds of a pass of every model of the embedded ladder, by rows and context, per edition of
    the target; drafts are in the int8 edition. What a draft takes to choose its guesses after a
    pass, greedily or drawn, stands beside.
    """
    quiet.check()
    tables = []
    for edition in EDITIONS:
        ladder = racing_ladder(edition)
        watched = watch(partial(time_passes, ladder.models, rows, contexts, repeats=REPEATS))
        found = price_table(ladder, watched.found, repeats=REPEATS)
        tables.append(found.assign(edition=edition, cores=watched.cores))
    day = time.strftime("%Y-%m-%d")
    return pd.concat(tables).assign(**clocked_here(), date=day)[COLUMNS]


def price_table(ladder: Ladder, passes: pd.DataFrame, *, repeats: int) -> pd.DataFrame:
    """The `curves` of timed passes, with the seconds that the models count themselves; and what a
    draft takes to choose its guesses after a pass, `greedy_choice` and `drawn_choice`, timed here
    in so many chains.
    """
    found = curves(passes)
    found["seconds"] = found.network_seconds
    for name, sampler in CHOICES.items():
        chosen = choice_seconds(ladder, sampler, found, repeats=repeats)
        found[name] = found.model.map(chosen)
    return found


def choice_seconds(
    ladder: Ladder, sampler: Sampler, passes: pd.DataFrame, *, repeats: int
) -> dict[str, float]:
    """By draft model, the seconds of a pass that guesses, beyond those of a pass that scores: for
    noise, sorting and the next guess; in the median of so many chains. The target guesses nothing.
    """
    found = {ladder.target.name: 0.0}
    longest = passes.context_tokens.max()
    for name, model in drafting_models(ladder).items():
        own = passes[(passes.model == name) & (passes["rows"] == 1)]
        scored = own[own.context_tokens == longest].seconds.iloc[0]
        draft = LadderDrafts(ladder, sampler).chain(GROWN, model=name)
        took = []
        text = [at % model.vocabulary for at in range(longest + repeats + 1)]
        for length in range(longest, longest + repeats + 1):
            context = Context.of(text[:length])
            read_prompt(ladder.target, NoDraft(), context, again=True)
            before = model.usage
            draft.propose(context, Chance(length, sampler))
            used = model.usage - before
            took.append(used.seconds / used.passes)
        found[name] = max(0.0, median(took[1:]) - scored)
    return found


def read_prices(path: Path, edition: str = "") -> dict[str, PassTable]:
    """Seconds of a pass by model, from a CSV file with a row per model and number of rows: columns
    `model`, `rows` and `seconds`, perhaps `context_tokens`, and `edition`, of which one is taken.

    Raises ValueError, in one line, for a file that is no such table.
    """

    def refused(why: str) -> ValueError:
        return ValueError(
            f"{path} is no table of rows and seconds ({why}); it has the columns"
            f" {', '.join(NEEDED)}, as `specdec measure passes --csv FILE` writes them"
        )

    try:
        table = pd.read_csv(path)
    except FileNotFoundError as error:
        raise refused("there is no such file") from error
    except (ValueError, OSError) as error:
        raise refused(" ".join(str(error).split())) from error
    if missing := [name for name in NEEDED if name not in table]:
        raise refused(f"it lacks {', '.join(missing)}")
    if "edition" in table and table.edition.nunique() > 1:
        if edition not in set(table.edition):
            known = ", ".join(map(str, table.edition.unique()))
            raise refused(f"its editions are {known}, asked for is {edition or 'none'}")
        table = table[table.edition == edition]
    if table.empty:
        raise refused("it has no rows")
    table = table.assign(context_tokens=table.get("context_tokens", 0))
    for name, least in {"rows": 1, "context_tokens": 0, "seconds": 0}.items():
        numbers = pd.to_numeric(table[name], errors="coerce")
        whole = name == "seconds" or (numbers == numbers.round()).all()
        above = (numbers > 0).all() if name == "seconds" else (numbers >= least).all()
        if not (np.isfinite(numbers).all() and whole and above):
            said = "seconds above 0" if name == "seconds" else f"whole {name} from {least}"
            raise refused(f"it needs {said}")
        table[name] = numbers if name == "seconds" else numbers.astype(int)
    try:
        return pass_tables(table.assign(runtime=""), column="seconds")
    except ValueError as error:
        raise refused(str(error)) from error


def prices_of(path: Path | None, runtime: str) -> tuple[Path, dict[str, PassTable]] | None:
    """A file and its prices for a target on a runtime; None without a file."""
    if path is None:
        return None
    return path, read_prices(path, "int8" if runtime == "int8" else "exact")


def check_prices(priced: tuple[Path, Mapping[str, PassTable]] | None, ladder: Ladder) -> None:
    """Raise ValueError if there are prices, and a model of the ladder has none."""
    path, prices = priced or (None, {})
    missing = [model.name for model in ladder.models if model.name not in prices]
    if path is not None and missing:
        raise ValueError(
            f"{path} has no seconds of {', '.join(missing)}, which this ladder runs; it has"
            f" {', '.join(prices)}"
        )
