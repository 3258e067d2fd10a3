"""The tables of the cascade notebook, of one domain and sampler each, by replay."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.measure.cascades.variants import (
    ALONE,
    CASCADES,
    ablations,
    survival,
    swi_ratio,
    tune_stacks,
)
from specdec_lib.measure.own_text import OwnText, replay_draft
from specdec_lib.measure.replay import CascadeSetting, Recording, record, replay_cascade
from specdec_lib.measure.replay.recording import TARGET
from specdec_lib.measure.replay.replays import swi_table
from specdec_lib.measure.replay.tuning import Tuned
from specdec_lib.measure.sweep.repetition import LOOPING, repetition
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import Ladder, load_prompts, seeds
from specdec_lib.workload.published import price_list

SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
THREE = CASCADES[-1]
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

RATIOS = ("ratio", "low", "high", "ratio_kept", "low_kept", "high_kept")

Best = Mapping[tuple[str, ...], Tuned]
Costs = Mapping[str, float]
Prices = Mapping[str, Costs]
Tables = dict[str, pd.DataFrame]


def price_lists(ladder: Ladder, seconds: pd.DataFrame) -> Prices:
    """What a pass of each model costs: by the paper's times, by parameters, as measured here."""
    names, reported = (TARGET, "middle", "draft"), price_list("pw")
    theirs = zip(names, ("t5-xxl", "t5-base", "t5-small"), strict=True)
    return {
        "parameters": {name: ladder.card["models"][name]["parameters"] for name in names},
        "reported": {name: reported[model] for name, model in theirs},
        "measured": dict(zip(seconds.model, seconds.price, strict=True)),
    }


def domain_tables(
    held_out: Sequence[Recording], development: Sequence[Recording], lists: Prices
) -> Tables:
    """All tables of one domain and sampler: `swi`, `versus`, `position`, and the `studies` at
    measured prices.

    `repetition` is the share of all tokens that loop; columns that end in `kept` are of the texts
    that loop less than 0.3.
    """
    calm = [one for one in held_out if repetition(one.tokens) < LOOPING]
    best = {name: tune_stacks(development, costs) for name, costs in lists.items()}
    swi, against = [], []
    for name, costs in lists.items():
        rows = _swi(held_out, calm, best[name], costs)
        tuned = best[name].values()
        reached = {"development_swi": [one.swi for one in tuned]}
        reached["tried"] = [one.tried for one in tuned]
        swi.append(rows.assign(prices=name, texts_kept=len(calm), **reached))
        against += [{"prices": name} | row for row in _versus(held_out, calm, best[name], costs)]
    three, two = (best["measured"][drafters].setting for drafters in (THREE, CASCADES[1]))
    position = [survival(held_out, name).assign(drafter=name) for (name,) in ALONE]
    return {
        "swi": pd.concat(swi),
        "versus": pd.DataFrame(against),
        "position": pd.concat(position),
        "studies": study(held_out, three, two, lists["measured"]),
    }


def _swi(
    held_out: Sequence[Recording], calm: Sequence[Recording], best: Best, costs: Costs
) -> pd.DataFrame:
    """A row per stack of drafters at its best setting, on all texts and on the calm ones."""
    settings = {" + ".join(drafters): one.setting for drafters, one in best.items()}
    tokens = sum(len(one.tokens) for one in held_out)
    looping = sum(repetition(one.tokens) * len(one.tokens) for one in held_out)
    rows = swi_table(held_out, settings, costs).assign(repetition=looping / tokens)
    if calm:
        rows["swi_kept"] = swi_table(calm, settings, costs).swi
    return rows


def _versus(
    held_out: Sequence[Recording], calm: Sequence[Recording], best: Best, costs: Costs
) -> list[dict]:
    """A row per cascade: its SWI against that of the best single drafter."""
    alone, chosen = (
        max(stacks, key=lambda drafters: best[drafters].swi) for stacks in (ALONE, CASCADES)
    )
    rows = []
    for drafters in CASCADES:
        pair = best[drafters].setting, best[alone].setting
        kept = swi_ratio(calm, *pair, costs) if calm else (math.nan,) * 3
        ratios = dict(zip(RATIOS, (*swi_ratio(held_out, *pair, costs), *kept), strict=True))
        labels = {"cascade": " + ".join(drafters), "alone": " + ".join(alone)}
        rows.append(labels | {"chosen": drafters == chosen} | ratios)
    return rows


def study(
    recordings: Sequence[Recording], three: CascadeSetting, two: CascadeSetting, costs: Costs
) -> pd.DataFrame:
    """Ablations and lenience of three, the paper's K00, and a surface over the first row of two."""
    parts = _studied(three, two)
    tables = [
        swi_table(recordings, settings, costs).assign(study=name)
        for name, settings in parts.items()
    ]
    rows = [
        ("ablation, relative", name, *swi_ratio(recordings, setting, three, costs))
        for name, setting in parts["ablation"].items()
        if name != "full"
    ]
    tables.append(pd.DataFrame(rows, columns=["study", "name", "swi", "low", "high"]))
    return pd.concat(tables, ignore_index=True)


def _studied(three: CascadeSetting, two: CascadeSetting) -> dict[str, dict[str, CascadeSetting]]:
    """The settings of each study, by name."""
    lenient = {f"{lenience:g}": replace(three, lenience=lenience) for lenience in LENIENCES}
    return {
        "ablation": ablations(three),
        "lenience": lenient,
        "lenience, no exemption": {
            name: replace(one, exempt_max_gram=False) for name, one in lenient.items()
        },
        "K00": {
            str(k00): CascadeSetting(two.drafters, ((k00, ENTRY), (0, ENTRY)))
            for k00 in range(1, 9)
        },
        "surface": {
            f"{k1},{k2}": replace(two, matrix=((k1, k2), two.matrix[1]))
            for k1, k2 in product(ACROSS, DOWN)
            if k1 or k2
        },
    }


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
            rounds = run.rounds
            played = replay_cascade(recording, setting)
            row = {"sampling": sampling, "domain": domain, **setting.labels, "rounds": len(rounds)}
            row["equal"] = played.emitted == tuple(len(one.emitted) for one in rounds)
            for name, replayed in played.passes.items():  # who is never asked is in no record
                real = sum(one.usage[name].passes for one in rounds if name in one.usage)
                row |= {f"{name}_passes": real, f"replayed_{name}_passes": replayed}
            rows.append(row)
    return pd.DataFrame(rows)
