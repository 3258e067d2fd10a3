"""Every table that README and the page of results show, written anew from what is stored."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pandas as pd

from specdec_lib.measure import defaults, domain_table, record_table
from specdec_lib.measure.idea_tables import ideas_page, stored_ideas, worth_page
from specdec_lib.measure.ideas import ideas_file
from specdec_lib.measure.pages import README, RESULTS, replace_marked
from specdec_lib.measure.race_table import MARKS, RACED, shown_races, speeds
from specdec_lib.measure.rival_tables import front_page, rivals_page, side_by_side, stored_rivals
from specdec_lib.measure.rivals import rivals_file
from specdec_lib.measure.sizes import SHOWN, sizes_page

AVX2 = "amd-epyc-zen-3-avx2-1-threads"  # a machine without AVX-512
ZEN_4 = "amd-epyc-zen-4-avx512-bf16-1-threads"  # one generation before the README's
OF_IDEAS = ("front", "worth", "rivals", "ideas", record_table.MARK)  # of the two races


def shown_tables() -> dict[str, tuple[Path, Callable[[], str]]]:
    """By mark, the page of every table and a function that makes its text from stored tables."""
    found: dict[str, tuple[Path, Callable[[], str]]] = {
        "front": (README, lambda: front_page(_both_races())),
        "worth": (README, lambda: worth_page(stored_ideas(RACED))),
        "table": (RESULTS, lambda: domain_table.markdown(pd.read_csv(domain_table.PLACE))),
        "rivals": (RESULTS, lambda: rivals_page(_both_races())),
        "ideas": (RESULTS, lambda: ideas_page(stored_ideas(RACED))),
        "ideas_zen_4": (RESULTS, lambda: ideas_page(stored_ideas(ZEN_4))),
        "ideas_avx2": (RESULTS, lambda: ideas_page(stored_ideas(AVX2))),
        record_table.MARK: (
            RESULTS,
            lambda: record_table.records_page(record_table.entered_rows()),
        ),
        "sizes": (RESULTS, lambda: sizes_page(pd.read_csv(SHOWN))),
    }
    for mark, (page, machine) in defaults.PAGES.items():
        found[mark] = (page, partial(_defaults, machine))
    for edition in MARKS:
        for mark, page, raced in shown_races(edition):
            found[mark] = (page, partial(speeds, raced))
    return found


def renew_tables(marks: Iterable[str] = ()) -> list[str]:
    """Write these tables anew, without any all; the marks of those that changed come back."""
    tables = shown_tables()
    changed = []
    for mark in marks or tables:
        page, made = tables[mark]
        before = page.read_bytes()
        replace_marked(mark, made(), page)
        if page.read_bytes() != before:
            changed.append(mark)
    return changed


def renew_raced(place: Path) -> None:
    """Write anew what pages show of the races of ideas and against Hugging Face, if the one that
    was stored there is shown.
    """
    shown = [
        file(RACED, published=published)
        for file in (ideas_file, rivals_file)
        for published in (False, True)
    ]
    if place.resolve() in shown:
        renew_tables(OF_IDEAS)


def _both_races() -> pd.DataFrame:
    return side_by_side(stored_ideas(RACED), stored_rivals())


def _defaults(machine: str) -> str:
    return defaults.page_table(defaults.stored_defaults(machine))
