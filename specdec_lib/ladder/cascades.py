"""`python -m specdec_lib.ladder.cascades`: the tables of the cascade notebook, into data/measured/cascade_*.csv and prices.csv.

Settings are tuned on development prompts and measured on held-out ones by replay. Domain by domain, each kept as soon as it is done, so that an
interrupted run goes on where it was. The prices are seconds, worth something only where nothing else runs.
"""

import argparse
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.chance import Chance, Sampler
from specdec_lib.decode import decode
from specdec_lib.latency import prices
from specdec_lib.published import price_list
from specdec_lib.replay import MAX_GRAM, CascadeSetting, Recording, record, replay, survival
from specdec_lib.replay.studies import ALONE, CASCADES, TARGET, ablations, measured, tuned, versus, written
from specdec_lib.workload import DATA, DOMAINS, Ladder, load_ladder, load_prompts, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = DATA / "measured"
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
PROMPTS = {"development": 24, "held-out": 40}
THREE = CASCADES[-1]
LENIENCES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
ACROSS, DOWN = tuple(range(9)), (0, 1, 2, 3, 4, 6, 8, 10, 12, 16)  # tokens of the weaker model, and of Max-Gram, that the target verifies
CHECKED = tuple(
    CascadeSetting(drafters, matrix, lenience, exempt)
    for drafters, matrices in (
        (THREE, (((5, 14, 10), (0, 1, 10), (0, 0, 10)), ((2, 2, 4), (0, 2, 4), (0, 0, 6)), ((1, 0, 8), (0, 3, 0), (0, 0, 4)))),
        (CASCADES[0], (((1, 10), (0, 10)), ((4, 0), (0, 6)), ((3, 5), (0, 0)))),
        (CASCADES[1], (((1, 10), (0, 10)), ((6, 2), (0, 3)))),
        (("middle", "draft"), (((4, 0), (0, 2)), ((1, 3), (0, 0)))),
    )
    for matrix in matrices
    for lenience, exempt in ((1.0, True), (3.0, True), (5.0, False))
)
ENTRY = 10  # the tail of copies that the paper always adds

Prices = Mapping[str, Mapping[str, float]]
Tables = dict[str, "DataFrame"]


def price_lists(ladder: Ladder, seconds: "DataFrame") -> Prices:
    """What a pass of each model costs: by the paper's times for models of that place, by parameters, and by what was measured here.

    seconds    as `latency.prices` makes it
    """
    reported = price_list("pw")
    return {
        "parameters": {name: ladder.card["models"][name]["parameters"] for name in (TARGET, "middle", "draft")},
        "reported": {TARGET: reported["t5-xxl"], "middle": reported["t5-base"], "draft": reported["t5-small"]},
        "measured": dict(zip(seconds.model, seconds.paired_price, strict=True)),
    }


def unit(held_out: Sequence[Recording], development: Sequence[Recording], lists: Prices) -> Tables:
    """All tables of one domain and sampler: `swi`, `versus`, `position`, and the `studies` at measured prices."""
    import pandas as pd

    swi, against = [], []
    for name, costs in lists.items():
        best = tuned(development, costs, progress=False)
        settings = {" + ".join(drafters): one.setting for drafters, one in best.items()}
        rows = measured(held_out, settings, costs)
        swi.append(rows.assign(prices=name, development_swi=[one.swi for one in best.values()], tried=[one.tried for one in best.values()]))
        alone, cascade = (max(stacks, key=lambda drafters, best=best: best[drafters].swi) for stacks in (ALONE, CASCADES))
        for drafters in CASCADES:
            ratio, low, high = versus(held_out, best[drafters].setting, best[alone].setting, costs)
            labels = {"prices": name, "cascade": " + ".join(drafters), "alone": " + ".join(alone), "chosen": drafters == cascade}
            against.append(labels | {"ratio": ratio, "low": low, "high": high})
    studies = study(held_out, best[THREE].setting, best[CASCADES[1]].setting, lists["measured"])
    position = pd.concat([survival(held_out, name).assign(drafter=name) for name in ("middle", "draft", MAX_GRAM)])
    return {"swi": pd.concat(swi), "versus": pd.DataFrame(against), "position": position, "studies": studies}


def study(recordings: Sequence[Recording], three: CascadeSetting, two: CascadeSetting, costs: Mapping[str, float]) -> "DataFrame":
    """Ablations and lenience of the cascade of three, the paper's K00, and a surface over the target's row of the cascade of two."""
    import pandas as pd

    lenient = {f"{lenience:g}": replace(three, lenience=lenience) for lenience in LENIENCES}
    bold = {f"{lenience:g}": replace(three, lenience=lenience, exempt_max_gram=False) for lenience in LENIENCES}
    first = {str(k00): CascadeSetting(two.drafters, ((k00, ENTRY), (0, ENTRY))) for k00 in range(1, 9)}
    surface = {f"{k1},{k2}": replace(two, matrix=((k1, k2), two.matrix[1])) for k1, k2 in product(ACROSS, DOWN) if k1 or k2}
    parts = {"ablation": ablations(three), "lenience": lenient, "lenience, no exemption": bold, "K00": first, "surface": surface}
    tables = [measured(recordings, settings, costs).assign(study=name) for name, settings in parts.items()]
    for name in ("no horizontal", "no vertical", "no Max-Gram", "no lenience"):
        if name in parts["ablation"]:
            ratio, low, high = versus(recordings, parts["ablation"][name], three, costs)
            tables.append(pd.DataFrame([{"study": "ablation, relative", "name": name, "swi": ratio, "low": low, "high": high}]))
    return pd.concat(tables, ignore_index=True)


def check(ladder: Ladder, *, texts: int = 6, max_new_tokens: int = 128) -> "DataFrame":
    """Replays beside real runs, settings of all kinds on held-out code prompts: a row per setting and text, tokens of every round and passes."""
    import pandas as pd

    rows = []
    for (sampling, sampler), prompt in product(SAMPLERS.items(), load_prompts("code", "held-out", texts // len(SAMPLERS))):
        [recording] = record([prompt], ladder, sampler, max_new_tokens=max_new_tokens, progress=False)
        run = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
        for setting in CHECKED:
            chance = Chance(seeds([prompt], 0)[0], sampler)
            rounds = decode(ladder.target, setting.draft(ladder), ladder.encode(prompt), chance, **run).rounds
            played = replay(recording, setting)
            real = sum(one.usage[name].passes for one in rounds for name in played.passes)
            labels = {"sampling": sampling, "prompt": prompt.name, "drafters": " + ".join(setting.drafters), "matrix": written(setting.matrix)}
            labels |= {"lenience": setting.lenience, "exempt": setting.exempt_max_gram}
            equal = played.emitted == tuple(len(one.emitted) for one in rounds)
            rows.append(labels | {"rounds": len(rounds), "equal": equal, "passes": real, "replayed_passes": sum(played.passes.values())})
    return pd.DataFrame(rows)


def kept(path: Path, make: Callable[[], "DataFrame"]) -> "DataFrame":
    """The table in this file, made first if there is none; written whole or not at all."""
    import pandas as pd

    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        make().to_csv(partial, index=False)
        os.replace(partial, path)
    return pd.read_csv(path)


def write(tables: Mapping[str, Sequence["DataFrame"]], folder: Path) -> None:
    """A file per name, its parts one after the other; each whole or not at all."""
    import pandas as pd

    for name, parts in tables.items():
        partial = folder / f"{name}.partial"
        pd.concat(parts, ignore_index=True).round(5).to_csv(partial, index=False)
        os.replace(partial, folder / f"{name}.csv")


def main() -> None:
    """Parse the command line, measure what is missing, and write the tables."""
    import pandas as pd
    from tqdm.auto import tqdm

    parser = argparse.ArgumentParser(prog="python -m specdec_lib.ladder.cascades", description=__doc__)
    parser.add_argument("--cache", type=Path, default=DATA / "cache" / "cascade", help="where each domain's tables are kept; remove it to begin anew")
    parser.add_argument("--tokens", type=int, default=128, help="new tokens per prompt, at most")
    given = parser.parse_args()
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    cache = given.cache / hashlib.sha256(repr((ladder.card["files"], PROMPTS, given.tokens)).encode()).hexdigest()[:12]
    seconds = kept(cache / "prices.csv", lambda: prices([ladder.target, ladder.middle, ladder.draft], repeats=201))
    lists, found = price_lists(ladder, seconds), {}
    for (sampling, sampler), domain in tqdm(list(product(SAMPLERS.items(), DOMAINS)), desc="domains"):
        places = {name: cache / f"{sampling.replace(' ', '')}-{domain}-{name}.csv" for name in ("swi", "versus", "position", "studies")}
        if not all(place.exists() for place in places.values()):
            texts = {
                split: record(load_prompts(domain, split, count), ladder, sampler, max_new_tokens=given.tokens) for split, count in PROMPTS.items()
            }
            for name, table in unit(texts["held-out"], texts["development"], lists).items():
                kept(places[name], lambda table=table: table)
        for name, place in places.items():
            found.setdefault(name, []).append(pd.read_csv(place).assign(domain=domain, sampling=sampling))
    found["check"] = [kept(cache / "check.csv", lambda: check(ladder, max_new_tokens=given.tokens))]
    write({"prices": [seconds], **{f"cascade_{name}": tables for name, tables in found.items()}}, FOLDER)


if __name__ == "__main__":
    main()
