"""Settings of cascades along recorded texts, at any prices, and a search for the largest SWI.

The papers give no tuning algorithm. A replay takes milliseconds, so every change of one entry is
tried on real choices; a maximum that is found need not be the global one.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.kinds import checked
from specdec_lib.measure.cascade.record import MAX_GRAM, TARGET, CascadeSetting, Recording
from specdec_lib.measure.cascade.replay import replay_cascade
from specdec_lib.measure.ratios import Interval, interval, named_interval

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)
SWI = ("swi", "low", "high")
Prices = Mapping[str, float]  # of a pass over that of a target pass, per model; Max-Gram is free


def costs_of(
    recordings: Sequence[Recording], setting: CascadeSetting, prices: Prices
) -> tuple[list[float], list[float]]:
    """Per text, its tokens at the target's price, and the price of all passes.

    Raises ValueError if there is no text, or a model that runs has no price of 0 or more, or the
    target none above 0.
    """
    if not recordings:
        raise ValueError("an SWI needs at least one recording, got none")
    rounds = [replay_cascade(recording, setting) for recording in recordings]
    if missing := [name for name in rounds[0].passes if not prices.get(name, -1) >= 0]:
        raise ValueError(
            f"a model that runs needs a price of 0 or more: {missing[0]} has none in {dict(prices)}"
        )
    if not prices[TARGET] > 0:
        raise ValueError(f"the target's price is above 0, got {prices[TARGET]}")
    return (
        [sum(one.emitted) * prices[TARGET] for one in rounds],
        [sum(prices[name] * count for name, count in one.passes.items()) for one in rounds],
    )


def replayed_swi(recordings: Sequence[Recording], setting: CascadeSetting, prices: Prices) -> float:
    """Standardised walltime improvement over all texts together; raises as `costs_of` does."""
    tokens, paid = costs_of(recordings, setting, prices)
    return sum(tokens) / sum(paid)


def swi_ratio(
    recordings: Sequence[Recording], setting: CascadeSetting, other: CascadeSetting, prices: Prices
) -> Interval:
    """How many times one setting's SWI is the other's on the same texts, and the interval."""
    ours, theirs = (costs_of(recordings, one, prices) for one in (setting, other))
    return interval(*ours, *theirs)


def swi_table(
    recordings: Sequence[Recording], settings: Mapping[str, CascadeSetting], prices: Prices
) -> pd.DataFrame:
    """A row per named setting: `name`, its fields, texts, tokens, rounds, passes per model, `swi`,
    `low`, `high`.
    """
    rows = []
    for name, setting in settings.items():
        interval_of = dict(zip(SWI, interval(*costs_of(recordings, setting, prices)), strict=True))
        counts = _counts(recordings, setting)
        rows.append({"name": name, **setting.labels, **counts, **interval_of})
    return pd.DataFrame(rows).drop(columns=["tried", "accepted"])


def _counts(recordings: Sequence[Recording], setting: CascadeSetting) -> dict[str, int]:
    """The counts of all texts together, as columns."""
    played = [replay_cascade(one, setting) for one in recordings]
    return {
        "texts": len(played),
        "tokens": sum(sum(one.emitted) for one in played),
        "rounds": sum(one.passes[TARGET] for one in played),
        **{f"{name}_passes": sum(one.passes[name] for one in played) for name in played[0].passes},
        "tried": sum(one.tried for one in played),
        "accepted": sum(one.accepted for one in played),
    }


class Tuned(NamedTuple):
    """The best setting, its SWI on the recordings it was chosen on, and how many were tried."""

    setting: CascadeSetting
    swi: float
    tried: int


@checked
def tune(
    recordings: Sequence[Recording],
    drafters: Sequence[str],
    prices: Prices,
    *,
    lengths: Sequence[int] = LENGTHS,
    leniences: Sequence[float] = LENIENCES,
    starts: Iterable[CascadeSetting] = (),
    allowed: Callable[[CascadeSetting], bool] = lambda setting: True,
    tell: Callable[[CascadeSetting, float], None] = lambda setting, swi: None,
    progress: bool = True,
) -> Tuned:
    """The setting of these drafters with the largest SWI that no change of one entry, nor of
    lenience and its exemption, improves.

    lengths      what an entry of the K matrix may be
    leniences    of reviews, tried where a model reviews
    starts       settings to climb from, besides one of our own; of these very drafters
    allowed      whether a setting may be chosen
    tell         called with each setting that is tried and its SWI; what it raises ends the search
    """
    known: dict[CascadeSetting, float] = {}
    with tqdm(desc=f"tuning {' + '.join(drafters)}", disable=not progress, mininterval=1) as bar:

        def swi(setting: CascadeSetting) -> float:
            if setting not in known:
                found = replayed_swi(recordings, setting, prices) if allowed(setting) else 0.0
                tell(setting, found)
                known[setting] = found
                bar.update()
            return known[setting]

        for better in _starts(tuple(drafters), starts):
            here = None
            while better != here:  # the first of equals is `here` itself
                here = better
                better = max(_neighbours(here, lengths, leniences), key=swi)
    best = max(known, key=known.__getitem__)
    return Tuned(best, known[best], len(known))


def _starts(
    drafters: tuple[str, ...], others: Iterable[CascadeSetting]
) -> Iterator[CascadeSetting]:
    """Two tokens of each model and a tail of ten copies, at every level; then the others."""
    lengths = [10 if name == MAX_GRAM else 2 for name in drafters]
    rows = (tuple([0] * row + lengths[row:]) for row in range(len(lengths)))
    yield CascadeSetting(drafters, tuple(rows))
    for other in others:
        if other.drafters != drafters:
            names, own = (", ".join(one) for one in (drafters, other.drafters))
            raise ValueError(f"the drafters tuned are {names}, a start has {own}")
        yield other


def _neighbours(
    setting: CascadeSetting, lengths: Sequence[int], leniences: Sequence[float]
) -> Iterator[CascadeSetting]:
    """The setting, and those with one other entry, or other lenience; each drafter keeps a part."""
    yield setting
    size = len(setting.drafters)
    for (row, column), length in product(combinations_with_replacement(range(size), 2), lengths):
        changed = [list(entries) for entries in setting.matrix]
        changed[row][column] = length
        if all(map(any, zip(*changed, strict=True))):
            yield replace(setting, matrix=tuple(map(tuple, changed)))
    if size > 1:
        for lenience, exempt in product(leniences, (True, False)):
            if exempt or lenience > 1:
                yield replace(setting, lenience=lenience, exempt_max_gram=exempt)


@dataclass(frozen=True, eq=False)
class Replays:
    """Recorded texts by name, and reference settings to compare with.

    texts     recordings of the same kind under each name, such as "greedy chat"
    rivals    settings by name, each of which has a row beside the one that is looked at
    """

    texts: Mapping[str, Sequence[Recording]]
    rivals: Mapping[str, CascadeSetting]

    def __post_init__(self) -> None:
        if not self.texts or not all(self.texts.values()):
            names = ", ".join(self.texts) or "any"
            raise ValueError(f"replays need recorded texts under each name, got none for {names}")

    def beside(self, setting: CascadeSetting, prices: Prices, texts: str) -> pd.DataFrame:
        """A row for the setting, the best of its drafters alone, and each rival, on the texts of
        that name: setting (its name); swi, low, high; texts; tokens_per_round; acceptance_rate; per
        priced model its `_passes` and `_price` per round; ratio, ratio_low, ratio_high (how many
        times the row's SWI the first row's is).  Raises ValueError for other texts, and as
        `costs_of` does.
        """
        recordings = self._named(texts)
        rows = []
        lengths = product(setting.drafters, LENGTHS[1:])
        alone = [CascadeSetting((name,), ((length,),)) for name, length in lengths]
        best = max(alone, key=lambda one: replayed_swi(recordings, one, prices))
        shown = {"this setting": setting, f"{best.drafters[0]} alone, {best.matrix[0][0]}": best}
        for name, one in {**shown, **self.rivals}.items():
            found = _counts(recordings, one)
            swi = interval(*costs_of(recordings, one, prices))
            row = {"setting": name} | dict(zip(SWI, swi, strict=True)) | {"texts": found["texts"]}
            row["tokens_per_round"] = found["tokens"] / found["rounds"]
            row["acceptance_rate"] = found["accepted"] / (found["tried"] or math.nan)
            for model, price in prices.items():
                passes = found.get(f"{model}_passes", 0) / found["rounds"]
                row |= {f"{model}_passes": passes, f"{model}_price": passes * price}
            ratio = swi_ratio(recordings, setting, one, prices)
            rows.append(row | named_interval("ratio", ratio))
        return pd.DataFrame(rows)

    def tune(
        self,
        drafters: Sequence[str],
        prices: Prices,
        texts: str,
        *,
        starts: Sequence[CascadeSetting],
        tell: Callable[[CascadeSetting, float], None],
        lengths: Sequence[int] = LENGTHS,
    ) -> Tuned:
        """`tune` on the texts of that name."""
        options = {"lengths": lengths, "starts": starts, "tell": tell, "progress": False}
        return tune(self._named(texts), drafters, prices, **options)

    def _named(self, texts: str) -> Sequence[Recording]:
        if texts not in self.texts:
            raise ValueError(f"the recorded texts are {', '.join(self.texts)}, got {texts!r}")
        return self.texts[texts]


def widen(setting: CascadeSetting, drafters: Sequence[str]) -> CascadeSetting:
    """The same cascade among more drafters, which propose nothing and stand before it; Max-Gram
    stays last.
    """
    idle = [name for name in drafters if name not in setting.drafters]
    order = sorted([*idle, *setting.drafters], key=lambda name: name == MAX_GRAM)
    entry = {
        (reviewer, name): length
        for reviewer, row in zip((TARGET, *setting.drafters), setting.matrix, strict=False)
        for name, length in zip(setting.drafters, row, strict=True)
    }
    rows = (tuple(entry.get((one, name), 0) for name in order) for one in (TARGET, *order[:-1]))
    return replace(setting, drafters=tuple(order), matrix=tuple(rows))
