"""The K matrix: a whole cascade as one upper triangular table of counts.

Row 0 holds how many tokens each drafter contributes to what the target verifies, row r to what
drafter r − 1 reviews; column c belongs to drafter c, strongest first. If row c + 1 is all zeros,
drafter c reviews nothing and generates token by token. The paper counts along a row what is there
so far ("cumulative"), its code what is added ("increments"): 5 tokens of the first drafter and 14
of the second are (5, 19) and (5, 14).
Source: Chen et al. 2024 (cascade speculative drafting), Algorithm 1 and table 5, where a tail of 10
copied tokens is always understood.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import MatchTable
from specdec_lib.drafts.cascade.relay import Relay
from specdec_lib.drafts.cascade.reviewed import Reviewed, check_review
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft

CONVENTIONS = ("increments", "cumulative")

Matrix = tuple[tuple[int, ...], ...]


@checked
def from_matrix(
    drafters: Sequence[LanguageModel | Draft],
    matrix: Sequence[Sequence[int]],
    *,
    convention: str = "increments",
    lenience: float = 1.0,
    exempt_max_gram: bool = True,
    siblings: str = "ranked",
    width: int = 1,
    match: MatchTable = MatchTable(),
) -> Relay:
    """The cascade that a K matrix describes, as a nesting of drafts. An entry says how far the path
    is to grow: where a review hands up more, the next drafters add less.

    drafters      strongest first; models, of which the last may be another draft: `MaxGram` takes
                  its length from the matrix, any other keeps its own
    convention    "increments" or "cumulative", see the module
    lenience, exempt_max_gram, siblings, match    of every review
    width         of the outermost reviews: the combs that the target verifies

    Raises ValueError as `converted` does, and if the matrix is not as large as there are drafters,
    its first row is 0, a drafter that is not the last is no model, or a comb has no review.
    """
    check_review(lenience, siblings, width)
    drafters, increments = tuple(drafters), converted(matrix, convention, "increments")
    _check_drafters(drafters, increments, width)
    review = partial(
        Reviewed, lenience=lenience, exempt_max_gram=exempt_max_gram, siblings=siblings, match=match
    )
    chain = partial(ChainDraft, siblings=siblings, match=match)
    return _Nesting(drafters, increments, review, chain).level(0, width)


def _check_drafters(drafters: tuple, matrix: Matrix, width: int) -> None:
    """Raises ValueError unless drafters, a checked matrix and a comb's width go together."""
    if len(drafters) != len(matrix):
        raise ValueError(
            f"a K matrix has a row and a column per drafter: {len(drafters)} drafters,"
            f" {len(matrix)} rows"
        )
    for drafter in drafters[:-1]:
        if not isinstance(drafter, LanguageModel):
            raise ValueError(
                "only a model can review, so only the last drafter may be another draft; got"
                f" {type(drafter).__name__} before it"
            )
    if not any(matrix[0]):
        raise ValueError(
            f"an empty cascade proposes nothing: the first row of the K matrix is {matrix[0]}"
        )
    if width > 1 and not any(matrix[0][:-1]):
        raise ValueError(
            f"a comb of width {width} is made by reviews, and the first row of the K matrix has"
            f" none: {matrix[0]}"
        )


@dataclass(frozen=True)
class _Nesting:
    """How a checked matrix becomes drafts."""

    drafters: tuple[LanguageModel | Draft, ...]
    matrix: Matrix
    review: Callable[..., Reviewed]
    chain: Callable[..., ChainDraft]

    def level(self, row: int, width: int = 1) -> Relay | NoDraft:
        """What the reviewer of this row reviews."""
        if row == len(self.matrix) or not any(self.matrix[row]):
            return NoDraft()
        lengths = {column: length for column, length in enumerate(self.matrix[row]) if length}
        parts = tuple(self.part(column, length, width) for column, length in lengths.items())
        return Relay(parts, tuple(lengths.values()))

    def part(self, column: int, length: int, width: int) -> Draft:
        """What one drafter contributes."""
        drafter = self.drafters[column]
        if column < len(self.drafters) - 1:
            return self.review(drafter, self.level(column + 1), width=width)
        if isinstance(drafter, LanguageModel):
            return self.chain(drafter, length)
        return replace(drafter, length=length) if isinstance(drafter, MaxGram) else drafter


@checked
def converted(matrix: Sequence[Sequence[int]], convention: str, to: str) -> Matrix:
    """The K matrix, given in `convention`, in the convention `to`.

    Raises ValueError unless it is square, upper triangular, of whole numbers of 0 or more and, if
    cumulative, not falling along a row.
    """
    for name in (convention, to):
        if name not in CONVENTIONS:
            raise ValueError(
                f"the conventions of a K matrix are {' and '.join(CONVENTIONS)}, got {name!r}"
            )
    rows = [tuple(row) for row in matrix]
    if not rows:
        raise ValueError("an empty cascade proposes nothing: the K matrix has no row")
    for number, row in enumerate(rows):
        if len(row) != len(rows):
            raise ValueError(
                f"a K matrix is square: {len(rows)} rows, row {number} has {len(row)} entries"
            )
        if min(row) < 0:
            raise ValueError(f"the entries of a K matrix are 0 or more, row {number} is {row}")
        if any(row[:number]):
            raise ValueError(
                f"a K matrix is upper triangular: the first {number} entries of row {number} are 0,"
                f" got {row}"
            )
        if convention == "cumulative" and any(
            later < earlier for earlier, later in pairwise(row[number:])
        ):
            raise ValueError(
                f"a cumulative row never falls from the diagonal on, row {number} is {row}"
            )
    return tuple(_row(tuple(map(int, row)), convention, to) for row in rows)


def _row(row: tuple[int, ...], convention: str, to: str) -> tuple[int, ...]:
    if convention == to:
        return row
    if to == "cumulative":
        return tuple(accumulate(row))
    return tuple(later - earlier for earlier, later in pairwise((0, *row)))
