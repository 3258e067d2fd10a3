"""`specdec measure cascades`: the tables of the cascade notebook, into
data/measured/cascade_*.csv and prices.csv.

Settings are tuned on development prompts and measured on held-out ones by replay. Domain by domain,
each kept as soon as it is done, so that an interrupted run goes on where it was. The prices are
seconds, worth something only where nothing else runs.
"""

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.measure.cascades.studies import (
    ALONE,
    CASCADES,
    ablations,
    survival,
    swi_ratio,
    tune_stacks,
)
from specdec_lib.measure.latency import prices, time_passes
from specdec_lib.measure.replay import MAX_GRAM, CascadeSetting, Recording, record, replay_cascade
from specdec_lib.measure.replay.recording import TARGET, format_matrix
from specdec_lib.measure.replay.replays import swi_table
from specdec_lib.measure.replay.tuning import LENGTHS
from specdec_lib.measure.sweep.repetition import LOOPING, repetition
from specdec_lib.workload import DOMAINS, Ladder, load_ladder, load_prompts, seeds
from specdec_lib.workload.published import price_list

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = DATA / "measured"
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
PROMPTS = {"development": 24, "held-out": 40}
THREE = CASCADES[-1]
LENIENCES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
ACROSS, DOWN = (
    tuple(range(9)),
    (0, 1, 2, 3, 4, 6, 8, 10, 12, 16),
)  # tokens of the weaker model, and of Max-Gram, that the target verifies
INNER = ((0, 0, 0), (0, 1, 4), (0, 3, 0), (0, 1, 10))
CHECKED = tuple(  # K matrices of all kinds; lenience and exemption go round
    CascadeSetting(drafters, matrix, (1.0, 3.0, 5.0)[number % 3], bool(number % 2))
    for number, (drafters, matrix) in enumerate(
        [
            (THREE, (row, inner, (0, 0, 6)))
            for row in ((5, 14, 10), (2, 2, 4), (1, 0, 8))
            for inner in INNER
        ]
        + [
            (stack, ((k1, k2), (0, k3)))
            for stack in CASCADES[:-1]
            for k1, k2, k3 in ((1, 10, 10), (2, 10, 4), (4, 0, 6), (6, 2, 3), (3, 5, 0), (1, 24, 2))
        ]
        + [
            (("middle", "draft"), ((k1, k2), (0, k3)))
            for k1, k2, k3 in ((4, 0, 2), (1, 3, 0), (2, 2, 3))
        ]
        + [
            ((name,), ((length,),))
            for name, length in (("middle", 3), ("draft", 6), (MAX_GRAM, 20))
        ]
    )
)
ENTRY = 10  # the tail of copies that the paper always adds

Prices = Mapping[str, Mapping[str, float]]
Tables = dict[str, "DataFrame"]


def price_lists(ladder: Ladder, seconds: "DataFrame") -> Prices:
    """What a pass of each model costs: by the paper's times for models of that place, by
    parameters, and by what was measured here.

    seconds    as `latency.prices` makes it
    """
    reported = price_list("pw")
    return {
        "parameters": {
            name: ladder.card["models"][name]["parameters"] for name in (TARGET, "middle", "draft")
        },
        "reported": {
            TARGET: reported["t5-xxl"],
            "middle": reported["t5-base"],
            "draft": reported["t5-small"],
        },
        "measured": dict(zip(seconds.model, seconds.price, strict=True)),
    }


def unit(held_out: Sequence[Recording], development: Sequence[Recording], lists: Prices) -> Tables:
    """All tables of one domain and sampler: `swi`, `versus`, `position`, and the `studies` at
    measured prices.

    `repetition` is the share of all tokens that loop; columns that end in `kept` are of the texts
    that loop less than 0.3.
    """
    import pandas as pd

    swi, against, found = [], [], {}
    calm = [recording for recording in held_out if repetition(recording.tokens) < LOOPING]
    repeated = sum(repetition(one.tokens) * len(one.tokens) for one in held_out) / sum(
        len(one.tokens) for one in held_out
    )
    for name, costs in lists.items():
        best = tune_stacks(development, costs, progress=False)
        settings = {" + ".join(drafters): one.setting for drafters, one in best.items()}
        rows = swi_table(held_out, settings, costs).assign(repetition=repeated)
        if calm:
            rows["swi_kept"] = swi_table(calm, settings, costs).swi
        chosen = {
            "development_swi": [one.swi for one in best.values()],
            "tried": [one.tried for one in best.values()],
        }
        swi.append(rows.assign(prices=name, texts_kept=len(calm), **chosen))
        alone, cascade = (
            max(stacks, key=lambda drafters, best=best: best[drafters].swi)
            for stacks in (ALONE, CASCADES)
        )
        for drafters in CASCADES:
            ratio, low, high = swi_ratio(
                held_out, best[drafters].setting, best[alone].setting, costs
            )
            labels = {
                "prices": name,
                "cascade": " + ".join(drafters),
                "alone": " + ".join(alone),
                "chosen": drafters == cascade,
            }
            kept_ratio = (
                swi_ratio(calm, best[drafters].setting, best[alone].setting, costs)
                if calm
                else (math.nan,) * 3
            )
            against.append(
                labels
                | dict(
                    zip(
                        ("ratio", "low", "high", "ratio_kept", "low_kept", "high_kept"),
                        (ratio, low, high, *kept_ratio),
                        strict=True,
                    )
                )
            )
        found[name] = best
    best = found["measured"]
    studies = study(held_out, best[THREE].setting, best[CASCADES[1]].setting, lists["measured"])
    position = pd.concat(
        [survival(held_out, name).assign(drafter=name) for name in ("middle", "draft", MAX_GRAM)]
    )
    return {
        "swi": pd.concat(swi),
        "versus": pd.DataFrame(against),
        "position": position,
        "studies": studies,
    }


def study(
    recordings: Sequence[Recording],
    three: CascadeSetting,
    two: CascadeSetting,
    costs: Mapping[str, float],
) -> "DataFrame":
    """Ablations and lenience of the cascade of three, the paper's K00, and a surface over the
    target's row of the cascade of two.
    """
    import pandas as pd

    lenient = {f"{lenience:g}": replace(three, lenience=lenience) for lenience in LENIENCES}
    bold = {
        f"{lenience:g}": replace(three, lenience=lenience, exempt_max_gram=False)
        for lenience in LENIENCES
    }
    first = {
        str(k00): CascadeSetting(two.drafters, ((k00, ENTRY), (0, ENTRY))) for k00 in range(1, 9)
    }
    surface = {
        f"{k1},{k2}": replace(two, matrix=((k1, k2), two.matrix[1]))
        for k1, k2 in product(ACROSS, DOWN)
        if k1 or k2
    }
    parts = {
        "ablation": ablations(three),
        "lenience": lenient,
        "lenience, no exemption": bold,
        "K00": first,
        "surface": surface,
    }
    tables = [
        swi_table(recordings, settings, costs).assign(study=name)
        for name, settings in parts.items()
    ]
    for name in ("no horizontal", "no vertical", "no Max-Gram", "no lenience"):
        if name in parts["ablation"]:
            ratio, low, high = swi_ratio(recordings, parts["ablation"][name], three, costs)
            tables.append(
                pd.DataFrame(
                    [
                        {
                            "study": "ablation, relative",
                            "name": name,
                            "swi": ratio,
                            "low": low,
                            "high": high,
                        }
                    ]
                )
            )
    return pd.concat(tables, ignore_index=True)


def check(ladder: Ladder, *, max_new_tokens: int = 128) -> "DataFrame":
    """Replays beside real runs of `CHECKED` settings on a held-out prompt per domain and sampler:
    whether every round is equal, and passes.
    """
    import pandas as pd

    rows, run = [], {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    for (sampling, sampler), domain in product(SAMPLERS.items(), DOMAINS):
        [prompt] = load_prompts(domain, "held-out", 1)
        [recording] = record(
            [prompt], ladder, sampler, max_new_tokens=max_new_tokens, progress=False
        )
        for setting in CHECKED:
            rounds = decode(
                ladder.target,
                setting.draft(ladder),
                ladder.encode(prompt),
                Chance(seeds([prompt], 0)[0], sampler),
                **run,
            ).rounds
            played = replay_cascade(recording, setting)
            labels = {
                "sampling": sampling,
                "domain": domain,
                "drafters": " + ".join(setting.drafters),
                "matrix": format_matrix(setting.matrix),
            }
            labels |= {
                "lenience": setting.lenience,
                "exempt": setting.exempt_max_gram,
                "rounds": len(rounds),
            }
            counts = {"equal": played.emitted == tuple(len(one.emitted) for one in rounds)}
            for name, replayed_passes in played.passes.items():
                real = sum(
                    one.usage[name].passes for one in rounds if name in one.usage
                )  # who is never asked is in no record
                counts |= {f"{name}_passes": real, f"replayed_{name}_passes": replayed_passes}
            rows.append(labels | counts)
    return pd.DataFrame(rows)


def kept(path: Path, make: Callable[[], "DataFrame"]) -> "DataFrame":
    """The table in this file, made first if there is none; written whole or not at all."""
    import pandas as pd

    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        store(make(), path)
    return pd.read_csv(path)


def store(table: "DataFrame", path: Path) -> None:
    """Write a table whole or not at all."""
    partial = path.with_suffix(".partial")
    table.to_csv(partial, index=False)
    os.replace(partial, path)


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
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu")
    cache = (
        given.cache
        / hashlib.sha256(
            repr((ladder.card["files"], PROMPTS, CHECKED, LENGTHS, given.tokens)).encode()
        ).hexdigest()[:12]
    )
    seconds = kept(
        cache / "prices.csv",
        lambda: prices(time_passes([ladder.target, ladder.middle, ladder.draft], repeats=201)),
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
                    load_prompts(domain, split, count), ladder, sampler, max_new_tokens=given.tokens
                )
                for split, count in PROMPTS.items()
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
