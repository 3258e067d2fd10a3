"""Any setting on recorded texts, under any prices, beside what it must beat: what a replay counted
is remembered, and prices come afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from specdec_lib.measure.intervals import bootstrap, paired_bootstrap
from specdec_lib.measure.replay.playing import Played, replay
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording
from specdec_lib.measure.replay.studies import TARGET, Costs
from specdec_lib.measure.replay.tuning import LENGTHS, LENIENCES, Tuned, tune

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class Replays:
    """Recorded texts that can be asked for any setting under any prices, again and again, in
    milliseconds.

    texts     recordings, by what they are, such as "math, greedy"
    rivals    settings that every other is held against, by name
    known     what was replayed so far; emptying it never changes a result

    Raises ValueError if there are no texts.
    """

    texts: Mapping[str, Sequence[Recording]]
    rivals: Mapping[str, CascadeSetting] = field(default_factory=dict)
    known: dict[tuple[str, CascadeSetting], tuple[Played, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.texts or not all(self.texts.values()):
            raise ValueError(
                "replays need recorded texts under each name, got none for"
                f" {', '.join(self.texts) or 'any'}"
            )

    def beside(
        self, setting: CascadeSetting, prices: Mapping[str, float], texts: str
    ) -> "DataFrame":
        """A row for the setting, one for the best of its drafters alone under these prices, and one
        per rival.

        prices    of a pass over that of a target pass, per model; Max-Gram is free
        texts     which ones

        The columns are: setting (its name), texts; swi, low, high; tokens_per_round;
        acceptance_rate (accepted ÷ tried); per model that is priced its `_passes` and its `_price`
        per round; and ratio, ratio_low, ratio_high: how many times the row's SWI the first row's
        is.
        Raises ValueError as `replay` does, for other texts, or if a model that runs has no price.
        """
        import pandas as pd

        ours = self._costs(setting, prices, texts)
        drafter, alone = self.alone(setting.drafters, prices, texts)
        rows = []
        for name, one in {"this setting": setting, drafter: alone, **self.rivals}.items():
            theirs = self._costs(one, prices, texts)
            swi, low, high = bootstrap(theirs.worth, theirs.paid)
            ratio, ratio_low, ratio_high = paired_bootstrap(
                ours.worth, ours.paid, theirs.worth, theirs.paid
            )
            ratios = {"ratio": ratio, "ratio_low": ratio_low, "ratio_high": ratio_high}
            rows.append(
                {"setting": name, "swi": swi, "low": low, "high": high}
                | self._round(one, prices, texts)
                | ratios
            )
        return pd.DataFrame(rows)

    def alone(
        self, drafters: Sequence[str], prices: Mapping[str, float], texts: str
    ) -> tuple[str, CascadeSetting]:
        """The drafter that is best by itself under these prices, at its best length, and its name.

        Raises ValueError as `beside` does.
        """
        tried = [
            CascadeSetting((name,), ((length,),))
            for name, length in product(drafters, LENGTHS)
            if length
        ]
        best = max(tried, key=lambda one: self.swi(one, prices, texts))
        return f"{best.drafters[0]} alone, {best.matrix[0][0]}", best

    def swi(self, setting: CascadeSetting, prices: Mapping[str, float], texts: str) -> float:
        """`swi_of`, remembered."""
        costs = self._costs(setting, prices, texts)
        return sum(costs.worth) / sum(costs.paid)

    def tuned(
        self,
        drafters: Sequence[str],
        prices: Mapping[str, float],
        texts: str,
        *,
        lengths: Sequence[int] = LENGTHS,
        leniences: Sequence[float] = LENIENCES,
        starts: Sequence[CascadeSetting] = (),
        tell: Callable[[CascadeSetting, float], None] | None = None,
    ) -> Tuned:
        """`tune` on some of the texts.

        tell    hears of each setting that is tried, and of its SWI; what it raises ends the search
        """

        def worth(setting: CascadeSetting) -> float:
            found = self.swi(setting, prices, texts)
            if tell:
                tell(setting, found)
            return found

        choices = {"lengths": lengths, "leniences": leniences, "starts": starts}
        return tune(
            self._recordings(texts), drafters, prices, **choices, progress=False, worth=worth
        )

    def _recordings(self, texts: str) -> Sequence[Recording]:
        if texts not in self.texts:
            raise ValueError(f"the recorded texts are {', '.join(self.texts)}, got {texts!r}")
        return self.texts[texts]

    def _played(self, setting: CascadeSetting, texts: str) -> tuple[Played, ...]:
        if (texts, setting) not in self.known:
            self.known[texts, setting] = tuple(
                replay(recording, setting) for recording in self._recordings(texts)
            )
        return self.known[texts, setting]

    def _costs(self, setting: CascadeSetting, prices: Mapping[str, float], texts: str) -> Costs:
        """What each text gave and took."""
        played = self._played(setting, texts)
        if missing := [name for name in (TARGET, *played[0].passes) if name not in prices]:
            raise ValueError(
                f"every model that ran needs a price: {', '.join(missing)} has none; there are"
                f" {', '.join(prices) or 'none'}"
            )
        worth = [sum(one.emitted) * prices[TARGET] for one in played]
        paid = [
            len(one.emitted) * prices[TARGET]
            + sum(count * prices[name] for name, count in one.passes.items())
            for one in played
        ]
        return Costs(worth, paid)

    def _round(
        self, setting: CascadeSetting, prices: Mapping[str, float], texts: str
    ) -> dict[str, float]:
        """What a round holds in the mean."""
        played = self._played(setting, texts)
        rounds, tried = sum(len(one.emitted) for one in played), sum(one.tried for one in played)
        rate = sum(one.accepted for one in played) / tried if tried else float("nan")
        found = {
            "texts": len(played),
            "tokens_per_round": sum(sum(one.emitted) for one in played) / rounds,
            "acceptance_rate": rate,
        }
        for model, price in prices.items():
            passes = (
                1.0 if model == TARGET else sum(one.passes.get(model, 0) for one in played) / rounds
            )
            found |= {f"{model}_passes": passes, f"{model}_price": passes * price}
        return found


def within(setting: CascadeSetting, drafters: Sequence[str]) -> CascadeSetting:
    """The same cascade among more drafters, of whom the others are asked for nothing: they stand
    before it, and Max-Gram stays last.

    Raises ValueError if the setting has a drafter that is not among them.
    """
    if missing := [name for name in setting.drafters if name not in drafters]:
        raise ValueError(
            f"the drafters are {', '.join(drafters)}, the setting has {', '.join(missing)}"
        )
    idle = [name for name in drafters if name not in setting.drafters]
    order = [name for name in (*idle, *setting.drafters) if name != MAX_GRAM] + [MAX_GRAM] * (
        MAX_GRAM in drafters
    )
    rows, at = (
        {TARGET: 0} | {name: place + 1 for place, name in enumerate(order)},
        {name: place for place, name in enumerate(order)},
    )
    matrix = [[0] * len(order) for _ in order]
    for reviewer, row in zip((TARGET, *setting.drafters), setting.matrix, strict=False):
        for name, length in zip(setting.drafters, row, strict=True):
            matrix[rows[reviewer]][at[name]] = length
    return CascadeSetting(
        tuple(order), tuple(map(tuple, matrix)), setting.lenience, setting.exempt_max_gram
    )
