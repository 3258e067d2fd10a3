"""Cascades by the clock, where nothing else runs. Finished prompts are kept, so that an interrupted
run goes on.

The settings are the cascade paper's own (its tables 3 and 4), and what is left of a tuned cascade
without each of its ideas, or with another entry or lenience, retuned by replay; on the fast runtime
with drafts in the int8 edition.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.files import cache_folder
from specdec_lib.measure.cascade.record import MAX_GRAM, CascadeSetting, Recording, record
from specdec_lib.measure.cascade.tune import Prices, Tuned, tune
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.machine import clocked_here, machine_name
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import ratios
from specdec_lib.measure.settings.cascade import paper_settings
from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
from specdec_lib.measure.settings.setting import GREEDY, Setting
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.measure.trial import trial_table
from specdec_lib.workload import Ladder, Prompt, load_ladder

TOKENS = 128  # new ones per prompt, at most
DEVELOPMENT = 12  # prompts of each domain that variants are tuned on
COLUMNS = """draft prompt tokens rounds target_passes middle_passes draft_passes seconds repetition
    domain drafters matrix lenience exempt cores date threads machine state""".split()
ALONE = (("middle",), ("draft",), (MAX_GRAM,))
CASCADES = (("middle", MAX_GRAM), ("draft", MAX_GRAM), ("middle", "draft", MAX_GRAM))
WAYS = {"SWI, counted": "cost", "speed, measured": "seconds"}  # and what each divides tokens by
LEFT_OUT: dict[str, Callable[[CascadeSetting], bool]] = {
    "no horizontal": lambda one: all(sum(map(bool, row)) <= 1 for row in one.matrix),
    "no vertical": lambda one: not any(map(any, one.matrix[1:])),
    "no Max-Gram": lambda one: MAX_GRAM not in one.drafters,
    "no lenience": lambda one: one.lenience == 1,
}


def measure_walltime(
    given: Mapping[str, tuple[Sequence[Prompt], Sequence[Prompt]]], prices: Prices, quiet: Quiet
) -> pd.DataFrame:
    """`time_cascades` of every domain: the paper's settings, and variants tuned by replay.

    given    by domain its development and its held-out prompts
    """
    quiet.check()
    ladder = load_ladder(device="cpu", runtime="fast")
    racing = with_int8_drafts(ladder)
    parts = []
    for domain, (development, held_out) in tqdm(given.items(), desc="domains"):
        texts = texts_after(development, [GREEDY], ladder)
        recorded = record(development, ladder, GREEDY, max_new_tokens=TOKENS, texts=texts)
        tuned = variants(recorded, prices)
        parts.append(time_cascades(racing, domain, held_out, tuned, quiet))
    return pd.concat(parts)


def tune_stacks(recordings: Sequence[Recording], prices: Prices) -> dict[tuple[str, ...], Tuned]:
    """The best setting of each drafter alone and of each cascade on these texts; that of three is
    also looked for around those of two.  Raises ValueError as `tune` does.
    """
    search = partial(tune, recordings, prices=prices, progress=False)
    found = {drafters: search(drafters) for drafters in (*ALONE, *CASCADES[:-1])}
    starts = (_among_three(found[drafters].setting) for drafters in CASCADES[:-1])
    return found | {CASCADES[-1]: search(CASCADES[-1], starts=starts)}


def _among_three(setting: CascadeSetting) -> CascadeSetting:
    """A cascade of one model as one of both: the other contributes one token where it fits."""
    (own, tail), (_, below) = setting.matrix
    matrix = ((1, own, tail), (0, 0, below), (0, 0, below))
    if setting.drafters[0] == "middle":
        matrix = ((own, 0, tail), (0, 1, below), (0, 0, below))
    return replace(setting, drafters=CASCADES[-1], matrix=matrix)


def ablations(setting: CascadeSetting) -> dict[str, CascadeSetting]:
    """A cascade above Max-Gram without each of its ideas: each reviewer gets tokens of the first
    drafter in its row alone; every model guesses token by token; the weakest model takes the place
    of Max-Gram; reviews are not lenient.
    """
    matrix = setting.matrix
    alone = []
    for row in setting.matrix:
        alone.append(tuple(0 if any(row[:at]) else length for at, length in enumerate(row)))
    idle = (matrix[0], *((0,) * len(row) for row in matrix[1:]))
    fewer = tuple(row[:-1] for row in matrix[:-1])
    return {
        "no horizontal": replace(setting, matrix=tuple(alone)),
        "no vertical": replace(setting, matrix=idle),
        "no Max-Gram": replace(setting, drafters=setting.drafters[:-1], matrix=fewer),
        "no lenience": replace(setting, lenience=1.0),
    }


def variants(recordings: Sequence[Recording], prices: Prices) -> dict[str, CascadeSetting]:
    """By "study: variant" the best setting on these recordings of each kind: the ablations of three
    drafters and Max-Gram alone, their lenience, and K00 of the draft above Max-Gram.
    """
    best = tune_stacks(recordings, prices)
    three = best[CASCADES[-1]].setting
    alone = best[MAX_GRAM,].setting
    kinds = {f"ablation: {name}": (ablations(three)[name], LEFT_OUT[name]) for name in LEFT_OUT}
    for value in (1.0, 2.0, 5.0, 10.0):
        start = replace(three, lenience=value)
        kinds[f"lenience: {value:g}"] = start, lambda one, value=value: one.lenience == value
    for value in (1, 2, 3, 4):
        start = CascadeSetting(CASCADES[1], ((value, 10), (0, 10)))
        kinds[f"K00: {value}"] = start, lambda one, value=value: one.matrix[0][0] == value
    found = {"ablation: full": three, "ablation: Max-Gram alone": alone}
    for name, (start, allowed) in kinds.items():
        options = {"starts": [start], "allowed": allowed, "progress": False}
        found[name] = tune(recordings, start.drafters, prices, **options).setting
    return found


def time_cascades(
    ladder: Ladder,
    domain: str,
    prompts: Sequence[Prompt],
    settings: Mapping[str, CascadeSetting],
    quiet: Quiet,
) -> pd.DataFrame:
    """A row per prompt of a domain and method: tokens, passes and seconds; equal settings are timed
    once, and finished prompts are kept. What others disturb is timed again.
    """
    first = {one: name for name, one in reversed([*settings.items()])}
    tuned = [
        Setting(name, one.draft(ladder), GREEDY, method="cascade") for one, name in first.items()
    ]
    asked = fingerprint(machine_name(), list(settings.items()), TOKENS, ladder.models)
    folder = cache_folder() / "walltime" / asked
    bar = tqdm(prompts, desc=domain, mininterval=1)
    racing = our_contenders(ladder.target, [*paper_settings(ladder), *tuned])
    limits = {"tokens": TOKENS, "folder": folder, "quiet": quiet}
    timings = chain.from_iterable(race_prompts(racing, ladder, bar, **limits))
    table = trial_table(timings).rename(columns={"setting": "draft"}).assign(domain=domain)
    own = [
        table[table.draft == first[one]].assign(draft=name, **one.labels)
        for name, one in settings.items()
    ]
    theirs = table[~table.draft.isin(settings)]
    both = pd.concat([theirs, *own], ignore_index=True).assign(**clocked_here())
    return both.reindex(columns=COLUMNS)


def by_swi_and_clock(
    timings: pd.DataFrame, prices: Prices, *, prefix: str, baseline: str
) -> pd.DataFrame:
    """Each method ÷ `baseline` on the same prompts, by counted passes at these prices and by the
    clock: `draft`, `value`, `low`, `high`, `prompts`, `domain`, `by` (one of `WAYS`), `variant`.

    prefix    which methods are compared: those whose names begin with it; it is removed from a
              name to get `variant`
    """
    timings = timings[timings.draft.str.startswith(prefix) | (timings.draft == baseline)]
    passes = timings.reindex(columns=[f"{name}_passes" for name in prices]).fillna(0)
    table = timings.assign(cost=passes.mul([*prices.values()]).sum(axis=1), sampling="greedy")
    pair = {"baseline": baseline, "by": ("draft", "sampling")}
    found = [
        ratios(own, "tokens", column, **pair).assign(domain=domain, by=way)
        for way, column in WAYS.items()
        for domain, own in table.groupby("domain", sort=False)
    ]
    rows = pd.concat(found, ignore_index=True).drop(columns="sampling")
    rows["variant"] = rows.draft.str.removeprefix(prefix)
    return rows[rows.draft.str.startswith(prefix)]
