"""What cascades cost along recorded texts, and the search for the one with the largest SWI.

The papers give no tuning algorithm. A replay takes milliseconds, so every change of one entry is
tried on real choices; a maximum that is found need not be the global one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

from tqdm.auto import tqdm

from specdec_lib.core.kinds import checked
from specdec_lib.measure.replay.cascade_rounds import CascadeRounds, replay_cascade
from specdec_lib.measure.replay.recording import MAX_GRAM, TARGET, CascadeSetting, Recording
from specdec_lib.theory import counted_speed_up

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Tuned:
    """The best setting, its SWI on the recordings it was chosen on, and how many were tried."""

    setting: CascadeSetting
    swi: float
    tried: int


def costs_of(
    rounds: Sequence[CascadeRounds], prices: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """Per text, its tokens at the target's price, and the price of all passes; Max-Gram is free.

    Raises ValueError if a model that runs has no price.
    """
    if missing := [name for name in rounds[0].every_pass if name not in prices]:
        known = ", ".join(prices) or "none"
        raise ValueError(
            f"a model that ran needs a price: {missing[0]} has none; there are {known}"
        )
    return (
        [sum(one.emitted) * prices[TARGET] for one in rounds],
        [sum(prices[name] * count for name, count in one.every_pass.items()) for one in rounds],
    )


def swi_of(rounds: Sequence[CascadeRounds], prices: Mapping[str, float]) -> float:
    """Standardised walltime improvement over all texts together.

    Raises ValueError if there are no texts, or a model that runs has no price.
    """
    if not rounds:
        raise ValueError("an SWI needs at least one recording, got none")
    whole = CascadeRounds.together(rounds)
    return counted_speed_up(sum(whole.emitted), whole.every_pass, prices, target=TARGET)


def replayed_swi(
    recordings: Sequence[Recording], setting: CascadeSetting, prices: Mapping[str, float]
) -> float:
    """`swi_of` the setting's rounds on the recordings."""
    return swi_of([replay_cascade(one, setting) for one in recordings], prices)


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
    starts       settings to climb from, besides one of our own
    worth        a setting's SWI, called once per setting; None is that of its replay

    Raises ValueError if a start has other drafters, and as `swi_of` and `replay_cascade` do.
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
    matrix = tuple(
        tuple(length if column >= row else 0 for column, length in enumerate(lengths))
        for row in range(len(lengths))
    )
    return CascadeSetting(drafters, matrix)


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
    found, rows = set(), [0]
    while rows:
        row = matrix[rows.pop() :][:1]
        new = {column for entries in row for column, length in enumerate(entries) if length} - found
        found |= new
        rows += [column + 1 for column in new]
    return found
