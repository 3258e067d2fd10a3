"""`specdec measure cascades`: the tables of the cascade notebook, into
data/measured/cascade_*.csv and prices.csv.

Settings are tuned on development prompts and measured on held-out ones by replay. What is done is
kept, so that an interrupted run goes on where it was. The prices are seconds, worth something only
where nothing else runs.
"""

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, cache_folder, write_whole
from specdec_lib.measure.cascades.tables import SAMPLERS, check_replays, domain_tables, price_lists
from specdec_lib.measure.latency import machine_name, prices, time_passes
from specdec_lib.measure.replay import Recording, record
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import DOMAINS, SPLITS, load_ladder, load_prompts

FOLDER = DATA / "measured"
TABLES = ["prices"]
TABLES += [f"cascade_{name}" for name in ("swi", "versus", "position", "studies", "check")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and write the tables."""
    written = [FOLDER / f"{name}.csv" for name in TABLES]
    parser = Parser("measure cascades", __doc__.partition(": ")[2], writes=written)
    parser.add_argument("--tokens", type=int, default=128, help="new tokens per prompt, at most")
    asked = {"type": int, "default": (12, 20), "nargs": 2, "metavar": ("DEVELOPMENT", "HELD_OUT")}
    parser.add_argument("--limit", **asked, help="prompts of each domain")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")

    def recorded(domain: str, split: str, count: int, sampler: Sampler) -> list[Recording]:
        options = {"max_new_tokens": given.tokens, "texts": Texts.stored((sampler,))[0]}
        return record(load_prompts(domain, split, count), ladder, sampler, **options)

    asked = repr((ladder.card["files"], given.limit, given.tokens))
    kept = cache_folder() / "cascade" / hashlib.sha256(asked.encode()).hexdigest()[:12]
    found = {name: [] for name in TABLES}
    passes = partial(time_passes, ladder.models, repeats=51)

    def timed() -> dict[str, pd.DataFrame]:
        return {"prices": prices(passes()).assign(machine=machine_name())}

    found["prices"] = [*keep(kept / "prices.json", timed).values()]
    lists = price_lists(ladder, found["prices"][0])
    for sampling, domain in tqdm(list(product(SAMPLERS, DOMAINS)), desc="domains"):

        def measured(sampling: str = sampling, domain: str = domain) -> dict[str, pd.DataFrame]:
            sets = zip(SPLITS, given.limit, strict=True)
            development, held_out = (recorded(domain, *one, SAMPLERS[sampling]) for one in sets)
            # the paper's own lists are for its greedy runs
            allowed = lists if sampling == "greedy" else {"measured": lists["measured"]}
            return domain_tables(held_out, development, allowed)

        for name, table in keep(kept / f"{sampling}-{domain}.json", measured).items():
            named = table.assign(domain=domain, sampling=sampling)
            found[f"cascade_{name}"].append(named)
    check = partial(check_replays, ladder, max_new_tokens=given.tokens)
    found["cascade_check"] = [*keep(kept / "check.json", lambda: {"check": check()}).values()]
    for name, parts in found.items():
        write_csv(pd.concat(parts, ignore_index=True), FOLDER / f"{name}.csv", 5)


def keep(file: Path, measure: Callable[[], dict[str, pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """Tables by name: those that an earlier run kept in a file, else measured, and then kept."""
    if not file.is_file():
        texts = {name: table.to_csv(index=False) for name, table in measure().items()}
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(texts).encode())
    texts = json.loads(file.read_text(encoding="utf-8"))
    return {name: pd.read_csv(io.StringIO(text)) for name, text in texts.items()}
