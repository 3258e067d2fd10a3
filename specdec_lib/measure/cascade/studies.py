"""The tables of the cascade notebook by replay.

Settings are tuned on development prompts and measured on held-out ones. An interrupted run goes on
where it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure.bytes_moved import CASCADE
from specdec_lib.measure.cascade.record import CascadeSetting, Recording, record
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.cascade.tune import Prices, swi_ratio, swi_table
from specdec_lib.measure.cascade.variants import ALONE, CASCADES, ablations, tune_stacks
from specdec_lib.measure.cluster import Cluster, LadderRecipe, spread_rows
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.ratios import interval
from specdec_lib.measure.recorded_target import RecordedTarget, replay_draft
from specdec_lib.measure.row_cache import RowCache, records
from specdec_lib.measure.target_text import TargetText, repetition
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.workload import Ladder, Prompt, seeds
from specdec_lib.workload.published import price_list

FOLDER = DATA / "measured"
LADDER = LadderRecipe(device="cpu", runtime="fast")
TABLES = ("swi", "versus", "position", "studies", "check")
VERSUS = ["prices", "cascade", "alone", "chosen", "ratio", "low", "high"]
SAMPLERS = {"greedy": Sampler(0), "T = 1": Sampler(1.0)}
THREE = CASCADES[-1]
TWO = CASCADES[1]
LENIENCES = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
# tokens of the weaker model, and of Max-Gram, that the target verifies
ACROSS = range(9)
DOWN = (0, 1, 2, 3, 4, 6, 8, 10, 12, 16)
OUTER = ((5, 14, 10), (2, 2, 4), (1, 0, 8))
INNER = ((0, 0, 0), (0, 1, 4), (0, 3, 0), (0, 1, 10))
PAIRS = ((1, 10, 10), (2, 10, 4), (4, 0, 6), (6, 2, 3), (3, 5, 0), (1, 24, 2))
MATRICES = [  # of all kinds, by drafters
    *((THREE, (row, inner, (0, 0, 6))) for row, inner in product(OUTER, INNER)),
    *((stack, ((k1, k2), (0, k3))) for stack in CASCADES[:-1] for k1, k2, k3 in PAIRS),
    *((THREE[:2], ((k1, k2), (0, k3))) for k1, k2, k3 in ((4, 0, 2), (1, 3, 0), (2, 2, 3))),
    *(((name,), ((length,),)) for name, length in zip(THREE, (3, 6, 20), strict=True)),
]
LENIENT = ((1.0, False), (3.0, True), (5.0, False), (1.0, True), (3.0, False), (5.0, True))
CHECKED = [
    CascadeSetting(drafters, matrix, lenience, exempt)
    for (drafters, matrix), (lenience, exempt) in zip(MATRICES, cycle(LENIENT), strict=False)
]
# the first prompt of so many, and new tokens
CHECKED_DOMAINS = 2
CHECKED_TOKENS = 128


def measured_tables(
    ladder: Ladder,
    given: Mapping[str, tuple[Sequence[Prompt], Sequence[Prompt]]],
    measured: Prices,
    cluster: Cluster | None = None,
) -> dict[str, pd.DataFrame]:
    """`TABLES` of all samplers and domains.

    given       by domain its development and its held-out prompts
    measured    what a pass over one row of each model costs
    """
    both = [prompt for pair in given.values() for its in pair for prompt in its]
    texts = texts_after(both, [*SAMPLERS.values()], ladder, cluster=cluster)
    kept = RowCache(cache_folder() / "cascade" / fingerprint(ladder.models, given, measured))
    pairs = [*product(SAMPLERS, given)]
    items = []
    for sampling, domain in pairs:
        names = {prompt.name for its in given[domain] for prompt in its}
        own = [one for one in texts if one.prompt in names and one.sampler == SAMPLERS[sampling]]
        items.append((f"{sampling}-{domain}", (sampling, *given[domain], own)))
    studied = spread_rows(
        study_rows,
        items,
        ladder,
        {"lists": price_lists(ladder, measured)},
        kept,
        cluster=cluster,
        label="domains",
    )
    found = {name: [] for name in TABLES}
    for (sampling, domain), tables in zip(pairs, studied, strict=True):
        for name, rows in tables.items():
            found[name].append(pd.DataFrame(rows).assign(domain=domain, sampling=sampling))
    checked = [held_out[0] for _, held_out in [*given.values()][:CHECKED_DOMAINS]]
    found["check"].append(check_replays(ladder, checked, texts))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in found.items()}


def price_lists(ladder: Ladder, measured: Prices) -> dict[str, Prices]:
    """What a pass of each model costs: by parameters, by the paper's times, as measured."""
    reported = price_list("pw")
    models = ladder.card["models"]
    return {
        "parameters": {name: models[name]["parameters"] for name in CASCADE},
        "reported": {name: reported[theirs] for name, theirs in CASCADE.items()},
        "measured": measured,
    }


def study_rows(
    ladder: Ladder,
    item: tuple[str, Sequence[Prompt], Sequence[Prompt], Sequence[TargetText]],
    *,
    lists: Mapping[str, Prices],
) -> list[dict[str, list[dict]]]:
    """The rows of `domain_tables` of one sampler, by its name, and one domain's development and
    held-out prompts and texts; the paper's own price lists are for its greedy runs.
    """
    sampling, development, held_out, texts = item
    sampler = SAMPLERS[sampling]
    known, unseen = (
        record(prompts, ladder, sampler, texts=texts) for prompts in (development, held_out)
    )
    allowed = lists if sampler.temperature == 0 else {"measured": lists["measured"]}
    tables = domain_tables(known, unseen, allowed)
    return [{name: records(one) for name, one in tables.items()}]


def domain_tables(
    development: Sequence[Recording], held_out: Sequence[Recording], lists: Mapping[str, Prices]
) -> dict[str, pd.DataFrame]:
    """All tables of one domain and sampler: `swi` of every stack at its best setting, `versus`,
    each cascade's against that of the best drafter alone, `position`, and the `studies` at measured
    prices. `repetition` is the share of all tokens that loop.
    """
    texts = [one.tokens for one in held_out]
    swi = []
    versus = []
    looping = np.average([*map(repetition, texts)], weights=[*map(len, texts)])
    for name, costs in lists.items():
        best = tune_stacks(development, costs)
        settings = {" + ".join(drafters): one.setting for drafters, one in best.items()}
        swi.append(swi_table(held_out, settings, costs).assign(repetition=looping, prices=name))
        alone, chosen = (max(some, key=lambda one: best[one].swi) for some in (ALONE, CASCADES))
        for drafters in CASCADES:
            ratio = swi_ratio(held_out, best[drafters].setting, best[alone].setting, costs)
            names = name, " + ".join(drafters), " + ".join(alone)
            versus.append((*names, drafters == chosen, *ratio))
        if name == "measured":
            studied = study(held_out, best[THREE].setting, best[TWO].setting, costs)
    position = [survival(held_out, name).assign(drafter=name) for (name,) in ALONE]
    versus = pd.DataFrame(versus, columns=VERSUS)
    return dict(zip(TABLES, (pd.concat(swi), versus, pd.concat(position), studied), strict=False))


def survival(recordings: Sequence[Recording], drafter: str, *, length: int = 30) -> pd.DataFrame:
    """P(a draft of `length` tokens is accepted up to and including a position), by position from 1:
    position, at_risk (drafts that the text is long enough for), rate, low, high.

    Source: Chen et al. 2024, figure 2.
    """
    setting = CascadeSetting((drafter,), ((length,),))
    places = np.arange(1, length + 1)
    accepted, tried = np.zeros((2, len(recordings), length), dtype=int)
    for text, recording in enumerate(recordings):
        emitted = np.array(replay_cascade(recording, setting).emitted)[:, None]
        left = emitted[::-1].cumsum(axis=0)[::-1]  # no round may guess the text's last token
        tried[text], accepted[text] = ((places < most).sum(axis=0) for most in (left, emitted))
    rows = []
    for place, hits, total in zip(places, accepted.T, tried.T, strict=True):
        rows.append((place, total.sum(), *interval(hits, total, share=True)))
    return pd.DataFrame(rows, columns=["position", "at_risk", "rate", "low", "high"])


def study(
    recordings: Sequence[Recording], three: CascadeSetting, two: CascadeSetting, costs: Prices
) -> pd.DataFrame:
    """Lenience of three, the paper's K00, a surface over two's first row, and what is left of three
    without each of its ideas.
    """
    parts = {
        "lenience": {f"{one:g}": replace(three, lenience=one) for one in LENIENCES},
        # with the tail of copies that the paper always adds
        "K00": {str(k00): CascadeSetting(TWO, ((k00, 10), (0, 10))) for k00 in range(1, 9)},
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
    ]
    tables.append(pd.DataFrame(rows, columns=["study", "name", "swi", "low", "high"]))
    return pd.concat(tables, ignore_index=True)


def check_replays(
    ladder: Ladder, prompts: Sequence[Prompt], texts: Sequence[TargetText]
) -> pd.DataFrame:
    """`CHECKED` settings, replayed and really run: whether every round is equal, and passes."""
    rows = []
    limit = {"max_new_tokens": CHECKED_TOKENS}
    for (sampling, sampler), prompt in product(SAMPLERS.items(), prompts):
        [recording] = record([prompt], ladder, sampler, texts=texts, progress=False, **limit)
        given = ladder.encode(prompt)
        chance = Chance(seeds([prompt], 0)[0], sampler)
        text = RecordedTarget.of(ladder.target, given, recording.tokens, CHECKED_TOKENS)
        for setting in CHECKED:
            run = replay_draft(text, setting.draft(ladder), chance, stop_tokens=ladder.stop_tokens)
            rounds = run.rounds
            played = replay_cascade(recording, setting)
            row = {"sampling": sampling, "domain": prompt.domain, **setting.labels}
            row["rounds"] = len(rounds)
            row["equal"] = played.emitted == tuple(len(one.emitted) for one in rounds)
            for name, replayed in [*played.passes.items()][1:]:  # the target's are the rounds
                # a model that was never asked is in no record
                real = sum(one.usage[name].passes for one in rounds if name in one.usage)
                row |= {f"{name}_passes": real, f"replayed_{name}_passes": replayed}
            rows.append(row)
    return pd.DataFrame(rows)


def replay_errors(check: pd.DataFrame, prices: Prices) -> tuple[pd.DataFrame, float]:
    """How far replays are from runs, in rows of `check_replays`: per drafting model its passes by
    replay ÷ those of the run − 1, over all settings, and the least and the most of a setting; and
    what SWI charges for all replays ÷ for all runs − 1.

    prices    of a pass of each model, in those of the target
    """
    settings = check.groupby(["drafters", "matrix"])
    models = [name for name in prices if f"{name}_passes" in check]
    errors = {}
    paid = check["rounds"].sum()
    charged = paid
    for name in models:
        run, replayed = (settings[f"{kind}{name}_passes"].sum() for kind in ("", "replayed_"))
        by_setting = replayed[run > 0] / run[run > 0] - 1
        errors[name] = [replayed.sum() / run.sum() - 1, by_setting.min(), by_setting.max()]
        paid += prices[name] * run.sum()
        charged += prices[name] * replayed.sum()
    columns = ["over all", "least of a matrix", "most of a matrix"]
    return pd.DataFrame.from_dict(errors, orient="index", columns=columns), charged / paid - 1
