"""What cascades cost along recorded texts, and the search for the one with the largest SWI.

The papers give no tuning algorithm. A replay takes milliseconds, so every change of one entry is
tried on real choices; a maximum that is found need not be the global one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

from tqdm.auto import tqdm

from specdec_lib.core.kinds import checked
from specdec_lib.measure.replay.cascade_rounds import replay_cascade
from specdec_lib.measure.replay.recording import MAX_GRAM, TARGET, CascadeSetting, Recording

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Tuned:
    """The best setting, its SWI on the recordings it was chosen on, and how many were tried."""

    setting: CascadeSetting
    swi: float
    tried: int


def costs_of(
    recordings: Sequence[Recording], setting: CascadeSetting, prices: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """Per text, its tokens at the target's price, and the price of all passes; Max-Gram is free.

    Raises ValueError if there is no text, or a model that runs has no price.
    """
    if not recordings:
        raise ValueError("an SWI needs at least one recording, got none")
    rounds = [replay_cascade(recording, setting) for recording in recordings]
    if missing := [name for name in rounds[0].every_pass if name not in prices]:
        known = ", ".join(prices) or "none"
        needed = f"a model that ran needs a price: {missing[0]} has none"
        raise ValueError(f"{needed}; there are {known}")
    if not (prices[TARGET] > 0 and all(prices[name] >= 0 for name in rounds[0].every_pass)):
        raise ValueError(f"the target's price is above 0, others not below; got {dict(prices)}")
    return (
        [sum(one.emitted) * prices[TARGET] for one in rounds],
        [sum(prices[name] * count for name, count in one.every_pass.items()) for one in rounds],
    )


def replayed_swi(
    recordings: Sequence[Recording], setting: CascadeSetting, prices: Mapping[str, float]
) -> float:
    """Standardised walltime improvement over all texts together; raises as `costs_of` does."""
    tokens, paid = costs_of(recordings, setting, prices)
    return sum(tokens) / sum(paid)


@checked
def tune(
    recordings: Sequence[Recording],
    drafters: Sequence[str],
    prices: Mapping[str, float],
    *,
    lengths: Sequence[int] = LENGTHS,
    leniences: Sequence[float] = LENIENCES,
    starts: Iterable[CascadeSetting] = (),
    progress: bool = True,
    worth: Callable[[CascadeSetting], float] | None = None,
) -> Tuned:
    """The setting of these drafters with the largest SWI that no change of one entry, nor of
    lenience and its exemption, improves.

    lengths      what an entry of the K matrix may be
    leniences    of reviews, tried where a model reviews
    starts       settings to climb from, besides one of our own; of these very drafters
    worth        a setting's SWI, called once per setting; None is that of its replay
    """
    starts = (_start(tuple(drafters)), *starts)
    for start in starts:
        if start.drafters != tuple(drafters):
            known, own = (", ".join(one) for one in (drafters, start.drafters))
            raise ValueError(f"the drafters tuned are {known}, a start has {own}")
    worth = worth or (lambda setting: replayed_swi(recordings, setting, prices))
    known: dict[CascadeSetting, float] = {}
    title = f"tuning {' + '.join(drafters)}"
    with tqdm(desc=title, unit="setting", disable=not progress, mininterval=1) as bar:

        def remembered(setting: CascadeSetting) -> float:
            if setting not in known:
                known[setting] = worth(setting)
                bar.update()
            return known[setting]

        for better in starts:
            here = None
            while better != here:  # the first of equals is `here` itself
                here = better
                better = max(_neighbours(here, lengths, leniences), key=remembered)
    best = max(known, key=known.__getitem__)
    return Tuned(best, known[best], len(known))


def _start(drafters: tuple[str, ...]) -> CascadeSetting:
    """Two tokens of each model and a tail of ten copies, at every level."""
    lengths = [10 if name == MAX_GRAM else 2 for name in drafters]
    rows = (tuple([0] * row + lengths[row:]) for row in range(len(lengths)))
    return CascadeSetting(drafters, tuple(rows))


def _neighbours(
    setting: CascadeSetting, lengths: Sequence[int], leniences: Sequence[float]
) -> Iterator[CascadeSetting]:
    """The setting, and those with one other entry, or other lenience; each drafter keeps a part."""
    yield setting
    size = len(setting.drafters)
    for (row, column), length in product(combinations_with_replacement(range(size), 2), lengths):
        changed = [list(entries) for entries in setting.matrix]
        changed[row][column] = length
        if length != setting.matrix[row][column] and _drafting(changed) == set(range(size)):
            yield replace(setting, matrix=tuple(map(tuple, changed)))
    if size > 1:
        for lenience, exempt in product(leniences, (True, False)):
            other = (lenience, exempt) != (setting.lenience, setting.exempt_max_gram)
            if other and (exempt or lenience > 1):
                yield replace(setting, lenience=lenience, exempt_max_gram=exempt)


def _drafting(matrix: Sequence[Sequence[int]]) -> set[int]:
    """The indices of the drafters that are reachable from the target's row of the K matrix."""
    reached = {-1}  # the target, whose row is 0
    for drafter, row in enumerate(matrix, -1):  # a row proposes from its own column on
        if drafter in reached:
            reached |= {column for column, length in enumerate(row) if length}
    return reached - {-1}
