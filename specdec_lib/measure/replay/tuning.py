"""Which K matrix and lenience: the largest SWI over recorded texts, found by climbing.

The papers give no tuning algorithm. A replay takes milliseconds, so every change of one entry can
be tried on real choices, without a model of acceptance in between. A maximum that is found need not
be the global one; the starts are what is known to be good.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product

from specdec_lib.measure.replay.playing import replay
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording
from specdec_lib.theory import swi

LENGTHS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
LENIENCES = (1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Tuned:
    """The best setting found, its SWI on the recordings it was chosen on, and how many settings
    were tried.
    """

    setting: CascadeSetting
    swi: float
    tried: int


def swi_of(
    recordings: Sequence[Recording], setting: CascadeSetting, prices: Mapping[str, float]
) -> float:
    """Standardised walltime improvement over all recordings together: tokens · target's price ÷ the
    price of all passes.

    prices    per model; Max-Gram is free

    Raises ValueError if there is no recording, or a model that runs has no price.
    """
    if not recordings:
        raise ValueError("an SWI needs at least one recording, got none")
    tokens, passes = 0, {"target": 0}
    for recording in recordings:
        played = replay(recording, setting)
        tokens += sum(played.emitted)
        passes["target"] += len(played.emitted)
        for name, count in played.passes.items():
            passes[name] = passes.get(name, 0) + count
    return swi(tokens, passes, prices, target="target")


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
    worth        a setting's SWI, asked once per setting; without it that of `swi_of`

    Raises ValueError if a start has other drafters, and as `swi_of` and `replay` do.
    """
    from tqdm.auto import tqdm

    starts = (_start(tuple(drafters)), *starts)
    for start in starts:
        if start.drafters != tuple(drafters):
            raise ValueError(
                f"the drafters tuned are {', '.join(drafters)}, a start has"
                f" {', '.join(start.drafters)}"
            )

    known: dict[CascadeSetting, float] = {}
    with tqdm(
        desc=f"tuning {' + '.join(drafters)}", unit="setting", disable=not progress, mininterval=1
    ) as bar:

        def remembered(setting: CascadeSetting) -> float:
            if setting not in known:
                known[setting] = worth(setting) if worth else swi_of(recordings, setting, prices)
                bar.update()
            return known[setting]

        for start in starts:
            here = start
            while (
                better := max(_neighbours(here, lengths, leniences), key=remembered)
            ) and remembered(better) > remembered(here):
                here = better
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
    """The setting, and every one in which one entry of the matrix has another length, or lenience
    and its exemption are others.

    Each drafter keeps a part: a cascade of three is one of three.
    """
    yield setting
    size = len(setting.drafters)
    for (row, column), length in product(combinations_with_replacement(range(size), 2), lengths):
        changed = [list(entries) for entries in setting.matrix]
        changed[row][column] = length
        if length != setting.matrix[row][column] and _asked(changed) == set(range(size)):
            yield replace(setting, matrix=tuple(map(tuple, changed)))
    if size > 1:
        for lenience, exempt in product(leniences, (True, False)):
            if (lenience, exempt) != (setting.lenience, setting.exempt_max_gram) and (
                exempt or lenience > 1
            ):
                yield replace(setting, lenience=lenience, exempt_max_gram=exempt)


def _asked(matrix: Sequence[Sequence[int]]) -> set[int]:
    """The drafters that somebody asks who is asked."""
    asked, rows = set(), [0]
    while rows:
        row = rows.pop()
        found = (
            {column for column, length in enumerate(matrix[row]) if length} - asked
            if row < len(matrix)
            else set()
        )
        asked |= found
        rows += [column + 1 for column in found]
    return asked
