"""Prices of machines by name: the stored ones, and those of this machine, timed in about ten
seconds and kept until the code that is timed changes.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.latency.passes import one_repeat
from specdec_lib.measure.machine import (
    HERE,
    clocked_here,
    machine_name,
    stored_clocked,
    stored_machines,
)
from specdec_lib.measure.price_list import price_table
from specdec_lib.measure.price_map import one_row_prices, tables_of
from specdec_lib.measure.quiet import SPARE, watch
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.row_cache import RowCache, records
from specdec_lib.measure.settings.ladder_drafts import racing_ladder, with_int8_drafts
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import PassTable
from specdec_lib.workload import Ladder

SECONDS = 10.0
ROWS = (1, 2, 4, 8, 12, 17)
CONTEXTS = (256,)
CHAINS = 5  # that tell what choosing a guess takes
LEAST_REPEATS = 3  # however long they take
MOST_REPEATS = 15


@dataclass(frozen=True)
class Machines:
    """The machines of which pass times are known for the models of one ladder: the stored ones, if
    it is the embedded ladder, and this one once it was timed.

    machine    whose prices a caller has, as in files' names: "" is the README's, "here" this one's
    ladder     whose models are timed here; None is the embedded one, loaded when it is timed
    edition    of the target: exact or int8; that of the ladder's where it has one
    """

    machine: str = ""
    ladder: Ladder | None = None
    edition: str = "exact"
    _read: dict[str, pd.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    _tables: dict[str, dict[str, PassTable]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.ladder is not None and isinstance(self.ladder.target, FastModel):
            object.__setattr__(self, "edition", self.ladder.target.edition)

    @property
    def given(self) -> str:
        """The machine whose prices a caller has, in full; of models of one's own always this."""
        if self.machine == HERE or not self.are_stored:
            return machine_name()
        return self.machine or RACED

    @property
    def are_stored(self) -> bool:
        """Whether the stored pass times are those of these models."""
        return self.ladder is None or is_embedded(self.ladder)

    @property
    def is_timed(self) -> bool:
        """Whether this machine was timed with this code and these models."""
        return not self._kept().empty

    def names(self) -> list[str]:
        """`HERE` if this machine was timed, and the stored ones."""
        timed = [HERE] if self.is_timed else []
        return [*timed, *(stored_machines("passes") if self.are_stored else [])]

    @property
    def start(self) -> str:
        """Whose prices to begin with: those that were asked for, else this machine's if it was
        timed, else the README's; "" where there are none.
        """
        names = self.names()
        if self.machine == HERE and HERE in names:
            return HERE
        if self.machine and self.given in names:
            return self.given
        return next((name for name in (HERE, RACED) if name in names), "")

    def passes(self, name: str) -> pd.DataFrame:
        """The pass times of a machine, with the columns of `specdec measure passes`.  Raises
        ValueError if there are none.
        """
        if name != HERE:
            if name not in self._read:
                self._read[name] = stored_clocked("passes", name)
            return self._read[name]
        kept = self._kept()
        if kept.empty:
            raise ValueError(f"this machine ({machine_name()}) was not timed with these models yet")
        return kept

    def tables(self, name: str) -> dict[str, PassTable]:
        """The pass times of a machine by model; raises as `passes` does."""
        if name not in self._tables:
            self._tables[name] = tables_of(self.passes(name), self.edition)
        return self._tables[name]

    def one_row_prices(self, name: str) -> dict[str, float]:
        """A pass over one row by model, in those of the target; raises as `passes` does."""
        return one_row_prices(self.passes(name), self.edition)

    def describe(self, name: str) -> str:
        """Whose prices these are, in words."""
        if name != HERE:
            return f"{name}, stored"
        row = self.passes(name).iloc[0]
        others = f", while others kept {row.others:.1f} cores busy" * bool(row.others > SPARE)
        return f"this machine ({row.machine}), timed on {row.date}{others}"

    def time_here(
        self, tell: Callable[[float], object] = lambda share: None, *, seconds: float = SECONDS
    ) -> pd.DataFrame:
        """Time this machine for about so many seconds, and keep what was found.

        tell    called with the share of it that is over, after each repeat
        """
        ladder = self._loaded()
        repeats = timed_repeats(ladder.models, tell, seconds=seconds)
        watched = watch(partial(pd.DataFrame, repeats))
        found = price_table(ladder, watched.found, repeats=CHAINS).assign(edition=self.edition)
        found = found.assign(cores=watched.cores, others=watched.others)
        found = found.assign(**clocked_here(), date=time.strftime("%Y-%m-%d"))
        self._cache().write(self._key(), records(found))
        self._read[HERE] = found
        self._tables.pop(HERE, None)
        return found

    def _kept(self) -> pd.DataFrame:
        """The pass times of this machine, empty if there are none."""
        if HERE not in self._read or self._read[HERE].empty:
            self._read[HERE] = pd.DataFrame(self._cache().read(self._key()))
        return self._read[HERE]

    def _loaded(self) -> Ladder:
        """The models as they are clocked: drafts in the int8 edition."""
        if self.ladder is None:
            return racing_ladder(self.edition)
        return with_int8_drafts(self.ladder)

    def _cache(self) -> RowCache:
        return RowCache(cache_folder() / "machine_prices" / machine_name())

    def _key(self) -> str:
        """What the times hang on beside the machine: the code, the range, and the models where they
        are not those that `specdec measure passes` times.
        """
        about = {**clocked_here(), "edition": self.edition, "rows": ROWS, "contexts": CONTEXTS}
        ladder = self.ladder
        if ladder is not None and not self._is_usual(ladder):
            about["models"] = [(model.name, model.runtime) for model in ladder.models]
            about["card"] = ladder.card
        return json.dumps(about, sort_keys=True, default=str)

    def _is_usual(self, ladder: Ladder) -> bool:
        target = ladder.target
        fast = isinstance(target, FastModel) and target.edition == self.edition
        return fast and is_embedded(ladder)


def is_embedded(ladder: Ladder) -> bool:
    """Whether its target and its drafts are those of which times are stored."""
    stored = json.loads((DATA / "ladder" / "card.json").read_text(encoding="utf-8"))
    return ladder.card == stored


def timed_repeats(
    models: Sequence[LanguageModel],
    tell: Callable[[float], object] = lambda share: None,
    *,
    seconds: float = SECONDS,
) -> Iterator[dict[str, object]]:
    """The rows of `one_repeat`, one repeat after the other, until the seconds are over; the first
    one is not counted, as the fast runtime may have to be compiled.

    tell    called with the share of the seconds, or of the most repeats, that are over
    """
    for _ in one_repeat(models, ROWS, CONTEXTS, -1):
        pass
    started = time.perf_counter()
    for repeat in range(MOST_REPEATS):
        yield from one_repeat(models, ROWS, CONTEXTS, repeat)
        spent = time.perf_counter() - started
        over = spent > seconds
        tell(1.0 if over else max(spent / seconds, (repeat + 1) / MOST_REPEATS))
        if over and repeat + 1 >= LEAST_REPEATS:
            return
