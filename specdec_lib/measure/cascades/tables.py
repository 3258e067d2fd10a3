"""`specdec measure cascades`: the tables of the cascade notebook by replay, into
data/measured/cascade_*.csv, and what a pass costs, into prices.csv.

Settings are tuned on development prompts and measured on held-out ones. An interrupted run goes on
where it was. The prices are seconds, worth something only where nothing else runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure.cascades.variants import (
    ALONE,
    CASCADES,
    ablations,
    survival,
    swi_ratio,
    tune_stacks,
)
from specdec_lib.measure.latency.passes import machine_name, prices, time_passes
from specdec_lib.measure.own_text import OwnText, replay_draft
from specdec_lib.measure.replay import CascadeSetting, Recording, record, replay_cascade
from specdec_lib.measure.replay.recording import TARGET
from specdec_lib.measure.replay.replays import swi_table
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import DOMAINS, SPLITS, Ladder, load_ladder, load_prompts, seeds
from specdec_lib.workload.published import price_list

FOLDER = DATA / "measured"
TABLES = ("swi", "versus", "position", "studies", "check")
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
THREE, TWO = CASCADES[-1], CASCADES[1]
LENIENCES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
# tokens of the weaker model, and of Max-Gram, that the target verifies
ACROSS, DOWN = range(9), (0, 1, 2, 3, 4, 6, 8, 10, 12, 16)
OUTER = ((5, 14, 10), (2, 2, 4), (1, 0, 8))
INNER = ((0, 0, 0), (0, 1, 4), (0, 3, 0), (0, 1, 10))
PAIRS = ((1, 10, 10), (2, 10, 4), (4, 0, 6), (6, 2, 3), (3, 5, 0), (1, 24, 2))
MATRICES = [  # of all kinds, by drafters
    *((THREE, (row, inner, (0, 0, 6))) for row, inner in product(OUTER, INNER)),
    *((stack, ((k1, k2), (0, k3))) for stack in CASCADES[:-1] for k1, k2, k3 in PAIRS),
    *((THREE[:2], ((k1, k2), (0, k3))) for k1, k2, k3 in ((4, 0, 2), (1, 3, 0), (2, 2, 3))),
    *(((name,), ((length,),)) for name, length in zip(THREE, (3, 6, 20), strict=True)),
]
CHECKED = tuple(  # lenience and exemption go round
    CascadeSetting(*one, (1.0, 3.0, 5.0)[number % 3], bool(number % 2))
    for number, one in enumerate(MATRICES)
)
CHECKED_DOMAINS = ("chat", "code")
ENTRY = 10  # the tail of copies that the paper always adds

Costs = Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, and write the tables."""
    places = {name: FOLDER / f"cascade_{name}.csv" for name in TABLES}
    priced, about = FOLDER / "prices.csv", __doc__.partition(": ")[2].partition("\n\n")[0]
    parser = Parser("measure cascades", about, writes=[*places.values(), priced])
    asked = {"type": int, "default": (12, 20), "nargs": 2, "metavar": ("DEVELOPMENT", "HELD_OUT")}
    parser.add_argument("--limit", **asked, help="prompts of each domain")
    limit = parser.parse_args(arguments).limit
    torch.set_num_threads(1)
    ladder = load_ladder(device="cpu", runtime="fast")
    kept = Kept(cache_folder() / "cascade" / fingerprint(ladder.models, limit))
    [one], found = load_prompts(DOMAINS[0], "development", 1), {name: [] for name in TABLES}

    def timed() -> list[dict]:
        table = prices(time_passes(ladder.models, repeats=51)).assign(machine=machine_name())
        return table.to_dict("records")

    table = pd.DataFrame(kept.rows(replace(one, name="prices"), timed))
    write_csv(table, priced, 5)
    lists = price_lists(ladder, table)
    for (sampling, sampler), domain in tqdm([*product(SAMPLERS.items(), DOMAINS)], "domains"):
        texts = {"texts": Texts.stored((sampler,))[0]}
        splits = [load_prompts(domain, *size) for size in zip(SPLITS, limit, strict=True)]
        # the paper's own lists are for its greedy runs
        allowed = lists if sampling == "greedy" else {"measured": lists["measured"]}

        def measured(sampler=sampler, splits=splits, allowed=allowed, texts=texts) -> list[dict]:
            recorded = (record(one, ladder, sampler, **texts) for one in splits)
            tables = domain_tables(*recorded, allowed)
            return [{name: one.to_dict("records") for name, one in tables.items()}]

        [tables] = kept.rows(replace(one, name=f"{sampling}-{domain}"), measured)
        for name, rows in tables.items():
            found[name].append(pd.DataFrame(rows).assign(domain=domain, sampling=sampling))
    found["check"].append(check_replays(ladder))
    for name, parts in found.items():
        write_csv(pd.concat(parts, ignore_index=True), places[name], 5)


def price_lists(ladder: Ladder, seconds: pd.DataFrame) -> dict[str, Costs]:
    """What a pass of each model costs: by the paper's times, by parameters, as measured here."""
    names, reported = (TARGET, "middle", "draft"), price_list("pw")
    theirs = zip(names, ("t5-xxl", "t5-base", "t5-small"), strict=True)
    return {
        "parameters": {name: ladder.card["models"][name]["parameters"] for name in names},
        "reported": {name: reported[model] for name, model in theirs},
        "measured": dict(zip(seconds.model, seconds.price, strict=True)),
    }


def domain_tables(
    development: Sequence[Recording], held_out: Sequence[Recording], lists: Mapping[str, Costs]
) -> dict[str, pd.DataFrame]:
    """All tables of one domain and sampler: `swi` of every stack at its best setting, `versus`,
    each cascade's against that of the best drafter alone, `position`, and the `studies` at measured
    prices. `repetition` is the share of all tokens that loop.
    """
    tokens = sum(len(one.tokens) for one in held_out)
    looping = sum(repetition(one.tokens) * len(one.tokens) for one in held_out)
    swi, versus = [], []
    for name, costs in lists.items():
        best = tune_stacks(development, costs)
        settings = {" + ".join(drafters): one.setting for drafters, one in best.items()}
        rows = swi_table(held_out, settings, costs)
        swi.append(rows.assign(repetition=looping / tokens, prices=name))
        alone, chosen = (max(some, key=lambda one: best[one].swi) for some in (ALONE, CASCADES))
        for drafters in CASCADES:
            ratio = swi_ratio(held_out, best[drafters].setting, best[alone].setting, costs)
            both = {"prices": name, "cascade": " + ".join(drafters), "alone": " + ".join(alone)}
            ends = dict(zip(("ratio", "low", "high"), ratio, strict=True))
            versus.append(both | {"chosen": drafters == chosen} | ends)
        if name == "measured":
            studied = study(held_out, best[THREE].setting, best[TWO].setting, costs)
    position = [survival(held_out, name).assign(drafter=name) for (name,) in ALONE]
    parts = pd.concat(swi), pd.DataFrame(versus), pd.concat(position), studied
    return dict(zip(TABLES, parts, strict=False))


def study(
    recordings: Sequence[Recording], three: CascadeSetting, two: CascadeSetting, costs: Costs
) -> pd.DataFrame:
    """Ablations (÷ the whole) and lenience of three, the paper's K00, and a surface over two's
    first row.
    """
    parts = {
        "lenience": {f"{one:g}": replace(three, lenience=one) for one in LENIENCES},
        "K00": {str(k00): CascadeSetting(TWO, ((k00, ENTRY), (0, ENTRY))) for k00 in range(1, 9)},
        "surface": {
            f"{k1},{k2}": replace(two, matrix=((k1, k2), two.matrix[1]))
            for k1, k2 in product(ACROSS, DOWN)
            if k1 or k2
        },
    }
    tables = [swi_table(recordings, its, costs).assign(study=name) for name, its in parts.items()]
    rows = [
        ("ablation, relative", name, *swi_ratio(recordings, setting, three, costs))
        for name, setting in ablations(three).items()
        if name != "full"
    ]
    tables.append(pd.DataFrame(rows, columns=["study", "name", "swi", "low", "high"]))
    return pd.concat(tables, ignore_index=True)


def check_replays(ladder: Ladder, *, max_new_tokens: int = 128) -> pd.DataFrame:
    """`CHECKED` settings, replayed and really run: whether every round is equal, and passes."""
    rows = []
    for (sampling, sampler), domain in product(SAMPLERS.items(), CHECKED_DOMAINS):
        [prompt], (texts,) = load_prompts(domain, "held-out", 1), Texts.stored((sampler,))
        limit = {"max_new_tokens": max_new_tokens}
        [recording] = record([prompt], ladder, sampler, texts=texts, progress=False, **limit)
        given = ladder.encode(prompt)
        text = OwnText.of(ladder.target, given, texts.of(prompt), max_new_tokens)
        chance = Chance(seeds([prompt], 0)[0], sampler)
        for setting in CHECKED:
            run = replay_draft(text, setting.draft(ladder), chance, stop_tokens=ladder.stop_tokens)
            rounds, played = run.rounds, replay_cascade(recording, setting)
            row = {"sampling": sampling, "domain": domain, **setting.labels, "rounds": len(rounds)}
            row["equal"] = played.emitted == tuple(len(one.emitted) for one in rounds)
            for name, replayed in played.passes.items():  # who is never asked is in no record
                real = sum(one.usage[name].passes for one in rounds if name in one.usage)
                row |= {f"{name}_passes": real, f"replayed_{name}_passes": replayed}
            rows.append(row)
    return pd.DataFrame(rows)
