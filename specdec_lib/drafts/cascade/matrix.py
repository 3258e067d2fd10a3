"""The K matrix: a whole cascade as one upper triangular table of counts.

Row 0 holds how many tokens each drafter contributes to what the target verifies, row r to what
drafter r − 1 reviews; column c belongs to drafter c, strongest first. If row c + 1 is all zeros,
drafter c reviews nothing and generates token by token. The paper counts along a row what is there
so far ("cumulative"), its code what is added ("increments"): (5, 19) and (5, 14) are the same.
Source: Chen et al. 2024 (cascade speculative drafting), Algorithm 1 and table 5, which leaves out
the last column, always 10 tokens of Max-Gram.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Literal, get_args

from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.core.tree import Count, MatchTable
from specdec_lib.drafts.cascade.reviewed import Lenient, Relay, Reviewed
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft

Convention = Literal["increments", "cumulative"]
CONVENTIONS = get_args(Convention)

Matrix = tuple[tuple[int, ...], ...]


@checked
def from_matrix(
    drafters: Sequence[LanguageModel | Draft],
    matrix: Sequence[Sequence[int]],
    *,
    convention: Convention = "increments",
    lenience: Lenient = 1.0,
    exempt_max_gram: bool = True,
    siblings: Literal["ranked", "iid"] = "ranked",
    width: Count = 1,
    match: MatchTable = MatchTable(),
) -> Relay:
    """The cascade that a K matrix describes, as a nesting of drafts.

    drafters    strongest first; models, of which the last may be another draft: `MaxGram` takes
                its length from the matrix, any other keeps its own
    convention  of the matrix; the paper's tables are "cumulative"
    width       children per node of what the target verifies; it and other options: `Reviewed`

    Raises ValueError as `converted` does, and for a matrix that does not fit the drafters.
    """
    drafters = tuple(drafters)
    increments = converted(matrix, convention, "increments")
    _check_drafters(drafters, increments, width)

    def level(row: int, width: int = 1) -> Relay | NoDraft:
        """What the reviewer of this row reviews."""
        lengths = {column: length for column, length in enumerate(increments[row]) if length}
        parts = tuple(part(column, length, width) for column, length in lengths.items())
        return Relay(parts, tuple(lengths.values())) if parts else NoDraft()

    def part(column: int, length: int, width: int) -> Draft:
        drafter = drafters[column]
        if column < len(drafters) - 1 and isinstance(drafter, LanguageModel):
            return Reviewed(
                drafter,
                level(column + 1),
                lenience=lenience,
                exempt_max_gram=exempt_max_gram,
                siblings=siblings,
                width=width,
                match=match,
            )
        if isinstance(drafter, LanguageModel):
            return ChainDraft(drafter, length, siblings=siblings, match=match)
        return replace(drafter, length=length) if isinstance(drafter, MaxGram) else drafter

    whole = level(0, width)
    assert isinstance(whole, Relay)  # the first row has guesses
    return whole


def _check_drafters(drafters: tuple, matrix: Matrix, width: int) -> None:
    if len(drafters) != len(matrix):
        raise ValueError(
            "a K matrix has a row and a column per drafter:"
            f" {len(drafters)} drafters, {len(matrix)} rows"
        )
    for wrong in (one for one in drafters[:-1] if not isinstance(one, LanguageModel)):
        name = type(wrong).__name__
        raise ValueError(f"only the last drafter may be no model, got {name} before it")
    if not any(map(any, matrix[:1])):
        raise ValueError(f"an empty cascade proposes nothing: the K matrix is {matrix}")
    if width > 1 and not any(matrix[0][:-1]):
        raise ValueError(f"a comb of width {width} needs a review in the first row {matrix[0]}")


@checked
def converted(matrix: Sequence[Sequence[int]], convention: Convention, to: Convention) -> Matrix:
    """The K matrix in the convention `to`; raises ValueError unless it is square, upper triangular
    and ≥ 0, and cumulative rows never fall.
    """
    rows = tuple(tuple(map(int, row)) for row in matrix)
    for number, row in enumerate(rows):
        if len(row) != len(rows) or min(row) < 0 or any(row[:number]):
            raise ValueError(
                f"a K matrix of {len(rows)} rows: square, upper triangular, entries of 0 or more,"
                f" row {number} is {row}"
            )
        if convention == "cumulative" and list(row) != sorted(row):
            raise ValueError(f"a cumulative row never falls from the diagonal on, got {row}")
    if convention == to:
        return rows
    if to == "cumulative":
        return tuple(tuple(accumulate(row)) for row in rows)
    return tuple(tuple(later - earlier for earlier, later in pairwise((0, *row))) for row in rows)


def format_matrix(matrix: Sequence[Sequence[int]]) -> str:
    """A K matrix in one line, "5 14 10 / 0 1 10 / 0 0 10"."""
    return " / ".join(" ".join(map(str, row)) for row in matrix)
