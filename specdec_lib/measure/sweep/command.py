"""`specdec measure table`: measures the table of results on the held-out code prompts.

It is written into the README. A run that was interrupted goes on where it was.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, cache_folder, write_whole
from specdec_lib.measure.sweep.cluster import LADDER, cluster_for
from specdec_lib.measure.sweep.comparison import TEMPERATURES
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep
from specdec_lib.measure.sweep.statistics import summary
from specdec_lib.workload import load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame, Series

README = DATA.parent / "README.md"
KEPT = cache_folder() / "sweep"
PLACE = DATA / "measured" / "tokens_per_round.csv"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def markdown(table: "DataFrame", command: str) -> str:
    """The summary as the README shows it."""
    greedy, sampled = (
        table[table.temperature == temperature].set_index("draft") for temperature in TEMPERATURES
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
    for name, row in greedy.iterrows():
        cells = [
            _cell(row, "tokens_per_round"),
            _cell(row, "acceptance_rate"),
            _cell(row, "tokens_per_round_kept"),
        ]
        cells += [
            _cell(sampled.loc[name], "tokens_per_round"),
            _cell(sampled.loc[name], "acceptance_rate"),
        ]
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


def _parser() -> Parser:
    parser = Parser("measure table", __doc__.partition(": ")[2])
    for name, default in {"--limit": 60, "--max-new-tokens": 128, "--seed": 0}.items():
        parser.add_common(name, default)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the table and leave the README and data/measured alone",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="processes that share the prompts; the table is the same for any number",
    )
    return parser


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    parser = _parser()
    given = parser.parse_args(arguments)
    usual = parser.parse_args([])
    if given.jobs < 1:
        parser.error(f"--jobs is at least 1, got {given.jobs}")
    if not given.dry_run and (given.limit, given.max_new_tokens, given.seed) != (
        usual.limit,
        usual.max_new_tokens,
        usual.seed,
    ):
        parser.error(
            "only the usual run is written into the README; add --dry-run to print another one"
        )
    torch.set_num_threads(1)
    settings, prompts = (
        Recipe("specdec_lib.measure.sweep.comparison:settings"),
        load_prompts("code", "held-out", given.limit),
    )
    with cluster_for(given.jobs) as client:
        rows = sweep(
            settings,
            prompts,
            LADDER,
            seed=given.seed,
            max_new_tokens=given.max_new_tokens,
            keep=KEPT,
            client=client,
        )
    table = summary(rows)
    text = markdown(table, "make table")
    print(text)
    if not given.dry_run:
        PLACE.parent.mkdir(exist_ok=True)
        write_whole(PLACE, table.round(6).to_csv(index=False).encode())
        replace_table(text)


def _cell(row: "Series", name: str) -> str:
    return (
        "–"
        if math.isnan(row[name])
        else f"{row[name]:.2f} ({row[f'{name}_low']:.2f}–{row[f'{name}_high']:.2f})"
    )
