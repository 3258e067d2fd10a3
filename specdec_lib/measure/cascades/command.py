"""`specdec measure cascades`: the tables of the cascade notebook, into
data/measured/cascade_*.csv and prices.csv.

Settings are tuned on development prompts and measured on held-out ones by replay. Domain by domain,
each kept as soon as it is done, so that an interrupted run goes on where it was. The prices are
seconds, worth something only where nothing else runs.
"""

import hashlib
from argparse import Namespace
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import torch

from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA
from specdec_lib.measure.cascades.tables import (
    CHECKED,
    SAMPLERS,
    Prices,
    Tables,
    check_replays,
    domain_tables,
    price_lists,
)
from specdec_lib.measure.latency import prices, time_passes
from specdec_lib.measure.replay import record
from specdec_lib.measure.replay.tuning import LENGTHS
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import DOMAINS, SPLITS, Ladder, load_ladder, load_prompts

FOLDER = DATA / "measured"
LIMITS = 12, 20  # development and held-out prompts of each domain


TABLES = "swi", "versus", "position", "studies"  # of each domain


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure what is missing, and write the tables."""
    import pandas as pd
    from tqdm.auto import tqdm

    given = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")
    measured = ladder.card["files"], given.limit, CHECKED, LENGTHS, given.tokens
    given.cache /= hashlib.sha256(repr(measured).encode()).hexdigest()[:12]
    place = given.cache / "prices.csv"
    if not place.exists():
        models = [ladder.target, ladder.middle, ladder.draft]
        write_csv(prices(time_passes(models, repeats=51)), place)
    found = {"prices": [pd.read_csv(place)]}
    lists = price_lists(ladder, found["prices"][0])
    for sampling, domain in tqdm(list(product(SAMPLERS, DOMAINS)), desc="domains"):
        for name, table in kept_tables(sampling, domain, ladder, lists, given).items():
            named = table.assign(domain=domain, sampling=sampling)
            found.setdefault(f"cascade_{name}", []).append(named)
    place = given.cache / "check.csv"
    if not place.exists():
        write_csv(check_replays(ladder, max_new_tokens=given.tokens), place)
    found["cascade_check"] = [pd.read_csv(place)]
    for name, parts in found.items():
        write_csv(pd.concat(parts, ignore_index=True), FOLDER / f"{name}.csv", 5)


def kept_tables(
    sampling: str, domain: str, ladder: Ladder, lists: Prices, given: Namespace
) -> Tables:
    """The tables of one domain and sampler: those of an earlier run, else measured and kept.

    given    `limit` prompts of each split, `tokens` of each text, and `cache`, the folder
    """
    import pandas as pd

    start, sampler = f"{sampling.replace(' ', '')}-{domain}", SAMPLERS[sampling]
    places = {name: given.cache / f"{start}-{name}.csv" for name in TABLES}
    if not all(place.exists() for place in places.values()):
        options = {"max_new_tokens": given.tokens, "texts": Texts.stored((sampler,))[0]}
        development, held_out = (
            record(load_prompts(domain, split, count), ladder, sampler, **options)
            for split, count in zip(SPLITS, given.limit, strict=True)
        )
        # the paper's own lists are for its greedy runs
        asked = lists if sampling == "greedy" else {"measured": lists["measured"]}
        for name, table in domain_tables(held_out, development, asked).items():
            write_csv(table, places[name])
    return {name: pd.read_csv(place) for name, place in places.items()}


def _parser() -> Parser:
    tables = "prices", "cascade_check", *(f"cascade_{name}" for name in TABLES)
    written = [FOLDER / f"{name}.csv" for name in tables]
    parser = Parser("measure cascades", __doc__.partition(": ")[2], writes=written)
    parser.add_argument(
        "--cache",
        type=Path,
        default=DATA / "cache" / "cascade",
        help="where each domain's tables are kept; remove it to begin anew",
    )
    parser.add_argument("--tokens", type=int, default=128, help="new tokens per prompt, at most")
    limits = "development and held-out prompts of each domain"
    names = {"metavar": ("DEVELOPMENT", "HELD_OUT"), "nargs": 2}
    parser.add_argument("--limit", type=int, default=LIMITS, help=limits, **names)
    return parser
