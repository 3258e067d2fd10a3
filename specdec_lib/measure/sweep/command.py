"""`specdec measure table`: measures the table of results on the 60 held-out code prompts.

It is written into the README. A run that was interrupted goes on where it was.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, cache_folder, write_whole
from specdec_lib.measure.sweep.cluster import cluster_for
from specdec_lib.measure.sweep.ratios import summarise
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.measure.sweep.stacks import TABLE_TEMPERATURES
from specdec_lib.workload import load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame, Series

README = DATA.parent / "README.md"
PLACE = DATA / "measured" / "tokens_per_round.csv"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def markdown(table: "DataFrame", command: str) -> str:
    """The summary as the README shows it."""
    greedy, sampled = (
        table[table.temperature == temperature].set_index("draft")
        for temperature in TABLE_TEMPERATURES
    )
    first = greedy.iloc[0]
    lines = [
        f"Measured by `{command}` on {first.prompts:.0f} held-out code prompts, float32, at most"
        " 128 tokens each. Intervals are 95 %, by"
        f" bootstrap over prompts. Greedy text repeats itself ({first.repetition:.2f} of its tokens"
        " end an 8-gram that was generated before,"
        f" sampled text {sampled.iloc[0].repetition:.2f}), so greedy results are also given for"
        f" the {first.prompts_kept:.0f} prompts below 0.3.",
        "",
        "| draft | greedy: tokens per round | acceptance rate | without looping prompts | T = 1:"
        " tokens per round | acceptance rate |",
        "|---|---|---|---|---|---|",
    ]
    both = ("tokens_per_round", "acceptance_rate")
    for name, row in greedy.iterrows():
        cells = [_cell(row, column) for column in (*both, "tokens_per_round_kept")]
        cells += [_cell(sampled.loc[name], column) for column in both]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def replace_table(text: str, page: Path = README) -> None:
    """Replace what stands between the table marks of a page.

    Raises ValueError if a mark is missing.
    """
    whole = page.read_text(encoding="utf-8")
    if BEGIN not in whole or END not in whole:
        raise ValueError(f"{page} needs the marks {BEGIN} and {END} around its table")
    before, after = whole.split(BEGIN)[0], whole.split(END)[1]
    write_whole(page, f"{before}{BEGIN}\n{text}\n{END}{after}".encode())


def measured_rows(
    study: str, description: str, arguments: list[str] | None, *, prompts: int, jobs: int
) -> "DataFrame":
    """The rows of `stacks:…_settings` on so many held-out code prompts, kept in the cache, with the
    arguments of the verb "measure …" of this name.
    """
    parser = Parser(f"measure {study}", description.partition(": ")[2])
    told = f"processes that share the prompts; counts are the same for any number (default: {jobs})"
    parser.add_argument("--jobs", type=int, default=jobs, help=told)
    given = parser.parse_args(arguments)
    if given.jobs < 1:
        parser.error(f"--jobs is at least 1, got {given.jobs}")
    torch.set_num_threads(1)
    asked = load_prompts("code", "held-out", prompts)
    settings = Recipe(f"specdec_lib.measure.sweep.stacks:{study}_settings")
    ladder = Recipe("specdec_lib.workload:load_ladder", {"device": "cpu"})
    with cluster_for(given.jobs) as client:
        return sweep(settings, asked, ladder, keep=cache_folder() / study, client=client)


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    table = summarise(measured_rows("table", __doc__, arguments, prompts=60, jobs=2))
    text = markdown(table, "make table")
    print(text)
    PLACE.parent.mkdir(exist_ok=True)
    write_whole(PLACE, table.round(6).to_csv(index=False).encode())
    replace_table(text)


def _cell(row: "Series", name: str) -> str:
    return (
        "–"
        if math.isnan(row[name])
        else f"{row[name]:.2f} ({row[f'{name}_low']:.2f}–{row[f'{name}_high']:.2f})"
    )
