"""Settings of cascades beside each other along recorded texts, at any prices."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.replay.cascade_rounds import CascadeRounds, replay_cascade
from specdec_lib.measure.replay.recording import MAX_GRAM, TARGET, CascadeSetting, Recording
from specdec_lib.measure.replay.tuning import (
    LENGTHS,
    LENIENCES,
    Tuned,
    costs_of,
    replayed_swi,
    tune,
)


@dataclass(frozen=True, eq=False)
class Replays:
    """Recorded texts, by what they are, on which settings stand beside each other and named
    rivals.
    """

    texts: Mapping[str, Sequence[Recording]]
    rivals: Mapping[str, CascadeSetting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.texts or not all(self.texts.values()):
            names = ", ".join(self.texts) or "any"
            raise ValueError(f"replays need recorded texts under each name, got none for {names}")

    def beside(
        self, setting: CascadeSetting, prices: Mapping[str, float], texts: str
    ) -> pd.DataFrame:
        """A row for the setting, one for the best of its drafters alone, and one per rival.

        prices    of a pass over that of a target pass, per model; Max-Gram is free
        texts     the name of the texts to replay on

        The columns are: setting (its name), texts; swi, low, high; tokens_per_round;
        acceptance_rate; per priced model its `_passes` and `_price` per round; and ratio,
        ratio_low, ratio_high: how many times the row's SWI the first row's is.  Raises ValueError
        for other texts, and as `costs_of` does.
        """
        recordings, rows = self._texts(texts), []
        ours = costs_of(recordings, setting, prices)
        drafter, alone = self.best_alone(setting.drafters, prices, texts)
        for name, one in {"this setting": setting, drafter: alone, **self.rivals}.items():
            theirs = costs_of(recordings, one, prices)
            whole = CascadeRounds.together([replay_cascade(text, one) for text in recordings])
            (swi, low, high), rounds = bootstrap(*theirs), len(whole.emitted)
            row = {"setting": name, "swi": swi, "low": low, "high": high, "texts": len(recordings)}
            row["tokens_per_round"] = sum(whole.emitted) / rounds
            row["acceptance_rate"] = whole.accepted / whole.tried if whole.tried else math.nan
            for model, price in prices.items():
                passes = whole.every_pass.get(model, 0) / rounds
                row |= {f"{model}_passes": passes, f"{model}_price": passes * price}
            rows.append(row | named_interval("ratio", bootstrap(*ours, *theirs)))
        return pd.DataFrame(rows)

    def best_alone(
        self, drafters: Sequence[str], prices: Mapping[str, float], texts: str
    ) -> tuple[str, CascadeSetting]:
        """The drafter with the largest SWI alone, at its best length; raises as `beside` does."""
        tried = [CascadeSetting((name,), ((size,),)) for name in drafters for size in LENGTHS[1:]]
        best = max(tried, key=lambda one: self.swi(one, prices, texts))
        return f"{best.drafters[0]} alone, {best.matrix[0][0]}", best

    def swi(self, setting: CascadeSetting, prices: Mapping[str, float], texts: str) -> float:
        """`replayed_swi` on some of the texts."""
        return replayed_swi(self._texts(texts), setting, prices)

    def tune(
        self,
        drafters: Sequence[str],
        prices: Mapping[str, float],
        texts: str,
        *,
        lengths: Sequence[int] = LENGTHS,
        leniences: Sequence[float] = LENIENCES,
        starts: Sequence[CascadeSetting] = (),
        tell: Callable[[CascadeSetting, float], None] = lambda setting, swi: None,
    ) -> Tuned:
        """`tune` on some of the texts.

        tell    called with each setting that is tried and its SWI; what it raises ends the search
        """

        def worth(setting: CascadeSetting) -> float:
            found = self.swi(setting, prices, texts)
            tell(setting, found)
            return found

        choices = {"lengths": lengths, "leniences": leniences, "starts": starts}
        return tune((), drafters, prices, **choices, progress=False, worth=worth)

    def _texts(self, name: str) -> Sequence[Recording]:
        if name not in self.texts:
            raise ValueError(f"the recorded texts are {', '.join(self.texts)}, got {name!r}")
        return self.texts[name]


def swi_table(
    recordings: Sequence[Recording],
    settings: Mapping[str, CascadeSetting],
    prices: Mapping[str, float],
) -> pd.DataFrame:
    """A row per named setting: `name`, its fields, texts, tokens, rounds, passes per model, `swi`,
    `low`, `high`.
    """
    rows = []
    for name, setting in settings.items():
        swi, low, high = bootstrap(*costs_of(recordings, setting, prices))
        whole = CascadeRounds.together([replay_cascade(one, setting) for one in recordings])
        row = {"name": name, **setting.labels, "texts": len(recordings)}
        row |= {"tokens": sum(whole.emitted), "rounds": len(whole.emitted)}
        row |= {f"{model}_passes": count for model, count in whole.every_pass.items()}
        rows.append(row | {"swi": swi, "low": low, "high": high})
    return pd.DataFrame(rows)


def widen(setting: CascadeSetting, drafters: Sequence[str]) -> CascadeSetting:
    """The same cascade among more drafters, which propose nothing and stand before it; Max-Gram
    stays last.  Raises ValueError if the setting has a drafter that is not among them.
    """
    if missing := [name for name in setting.drafters if name not in drafters]:
        known = ", ".join(drafters)
        raise ValueError(f"the drafters are {known}, the setting has {', '.join(missing)}")
    idle = [name for name in drafters if name not in setting.drafters]
    order = [name for name in (*idle, *setting.drafters) if name != MAX_GRAM]
    order += [MAX_GRAM] * (MAX_GRAM in drafters)
    table = pd.DataFrame(0, index=[TARGET, *order][: len(order)], columns=order)
    own = pd.DataFrame(setting.matrix, [TARGET, *setting.drafters][:-1], setting.drafters)
    table.update(own)
    matrix = tuple(tuple(map(int, row)) for row in table.to_numpy())
    return replace(setting, drafters=tuple(order), matrix=matrix)
