"""`specdec measure cascades`: the tables of the cascade notebook, into
data/measured/cascade_*.csv and prices.csv.

Settings are tuned on development prompts and measured on held-out ones by replay. Domain by domain,
each kept as soon as it is done, so that an interrupted run goes on where it was. The prices are
seconds, worth something only where nothing else runs.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.measure.cascades.tables import CHECKED, SAMPLERS, check, price_lists, unit
from specdec_lib.measure.latency import prices, time_passes
from specdec_lib.measure.replay import record
from specdec_lib.measure.replay.tuning import LENGTHS
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import DOMAINS, SPLITS, load_ladder, load_prompts

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = DATA / "measured"
LIMITS = 12, 20  # development and held-out prompts of each domain


def kept(path: Path, make: Callable[[], "DataFrame"]) -> "DataFrame":
    """The table in this file, made first if there is none; written whole or not at all."""
    import pandas as pd

    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        store(make(), path)
    return pd.read_csv(path)


def store(table: "DataFrame", path: Path) -> None:
    """Write a table whole or not at all."""
    write_whole(path, table.to_csv(index=False).encode())


def write(tables: Mapping[str, Sequence["DataFrame"]], folder: Path) -> None:
    """A file per name, its parts one after the other; each whole or not at all."""
    import pandas as pd

    for name, parts in tables.items():
        store(pd.concat(parts, ignore_index=True).round(5), folder / f"{name}.csv")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure what is missing, and write the tables."""
    import pandas as pd
    from tqdm.auto import tqdm

    parser = Parser("measure cascades", __doc__.partition(": ")[2])
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
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")
    cache = (
        given.cache
        / hashlib.sha256(
            repr((ladder.card["files"], given.limit, CHECKED, LENGTHS, given.tokens)).encode()
        ).hexdigest()[:12]
    )
    seconds = kept(
        cache / "prices.csv",
        lambda: prices(time_passes([ladder.target, ladder.middle, ladder.draft], repeats=51)),
    )
    lists, found = price_lists(ladder, seconds), {}
    for (sampling, sampler), domain in tqdm(
        list(product(SAMPLERS.items(), DOMAINS)), desc="domains"
    ):
        places = {
            name: cache / f"{sampling.replace(' ', '')}-{domain}-{name}.csv"
            for name in ("swi", "versus", "position", "studies")
        }
        if not all(place.exists() for place in places.values()):
            texts = {
                split: record(
                    load_prompts(domain, split, count),
                    ladder,
                    sampler,
                    max_new_tokens=given.tokens,
                    texts=Texts.stored((sampler,))[0],
                )
                for split, count in zip(SPLITS, given.limit, strict=True)
            }
            asked = (
                lists if sampling == "greedy" else {"measured": lists["measured"]}
            )  # the paper's own lists are for its greedy runs
            for name, table in unit(texts["held-out"], texts["development"], asked).items():
                kept(places[name], lambda table=table: table)
        for name, place in places.items():
            found.setdefault(name, []).append(
                pd.read_csv(place).assign(domain=domain, sampling=sampling)
            )
    found["check"] = [kept(cache / "check.csv", lambda: check(ladder, max_new_tokens=given.tokens))]
    write(
        {"prices": [seconds], **{f"cascade_{name}": tables for name, tables in found.items()}},
        FOLDER,
    )
