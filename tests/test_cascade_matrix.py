"""The K matrix: read and written in both conventions, what it nests, and which ones are refused."""

import pytest
from fakes import HERE, refusals, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.drafts.cascade import Relay, Reviewed, converted, from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft

T1 = Chance(0, Sampler(1.0))
PAPER = ((5, 14, 10), (0, 1, 10), (0, 0, 10))  # the paper's best setting of MMLU


def drafters(*sizes: int):
    models = (table_model(size, number, name=f"d{number}") for number, size in enumerate(sizes))
    return (*models, MaxGram(None, 3))


def nested(level) -> list:
    """The lengths of a relay's turns, each with those of what its reviewer reviews."""
    parts = zip(level.parts, level.lengths, strict=True) if isinstance(level, Relay) else ()
    found = []
    for part, length in parts:
        found.append((length, nested(part.draft)) if isinstance(part, Reviewed) else length)
    return found


@pytest.mark.parametrize("convention", ["increments", "cumulative"])
@pytest.mark.parametrize(
    "matrix, wanted",
    [
        (PAPER, [(5, [(1, [10]), 10]), (14, [10]), 10]),
        (((5, 0, 10), (0, 1, 3), (0, 0, 2)), [(5, [(1, [2]), 3]), 10]),
        (((1, 0, 3), (0, 0, 0), (0, 0, 0)), [(1, []), 3]),
        (((0, 2, 0), (0, 0, 0), (0, 0, 4)), [(2, [4])]),
    ],
)
def test_a_matrix_nests_alike_in_both_conventions(matrix, wanted, convention):
    written = converted(matrix, "increments", convention)
    assert nested(from_matrix(drafters(4, 4), written, convention=convention)) == wanted


def test_the_two_conventions_are_those_of_the_paper_and_of_its_code():
    assert converted(PAPER, "increments", "cumulative") == ((5, 19, 29), (0, 1, 11), (0, 0, 10))


def test_a_matrix_sets_its_reviews_and_may_end_in_a_chain_of_a_model():
    big, small, copies = drafters(4, 4)
    first, second, tail = from_matrix((big, small, copies), PAPER, lenience=3.0).parts
    assert first.reviewer is big and first.lenience == second.lenience == 3.0
    assert second.reviewer is first.draft.parts[0].reviewer is small and tail.length == 10
    cascade = from_matrix((big, small), ((2, 3), (0, 0)))
    assert cascade.parts == (Reviewed(big, NoDraft()), ChainDraft(small, 3))
    alone, chain = from_matrix((small,), ((4,),)), ChainDraft(small, 4)
    assert alone.propose(HERE, T1) == chain.propose(HERE, T1)


LENIENCE = "lenience of from_matrix must be a number from 1"
TRIANGULAR = r"upper triangular, row 1 is \(1, 1, 1\)"
FALLING = r"never falls from the diagonal on, got \(5, 3, 10\)"
COPIES_ONLY = ((0, 0, 5), (0, 0, 0), (0, 0, 0))
BAD = [
    (((5, 1), (0, 1)), {}, "3 drafters, 2 rows"),
    (((5, 1, 1), (0, 1), (0, 0, 1)), {}, r"square: 3 rows, row 1 is \(0, 1\)"),
    (((5, 1, 1), (1, 1, 1), (0, 0, 1)), {}, TRIANGULAR),
    (((5, -1, 1), (0, 1, 1), (0, 0, 1)), {}, r"entries .* are 0 or more, row 0 is \(5, -1, 1\)"),
    (((5, 1.5, 1), (0, 1, 1), (0, 0, 1)), {}, "sequences of whole numbers, got"),
    (((5, 3, 10), (0, 1, 2), (0, 0, 1)), {"convention": "cumulative"}, FALLING),
    (((0, 0, 0), (0, 1, 1), (0, 0, 1)), {}, "an empty cascade proposes nothing: the first row"),
    ((), {}, "an empty cascade proposes nothing: the K matrix has no row"),
    (PAPER, {"lenience": float("nan")}, LENIENCE),
    (PAPER, {"convention": "paper"}, "'increments' or 'cumulative', got 'paper'"),
    (COPIES_ONLY, {"lenience": 0.5}, LENIENCE),
    (COPIES_ONLY, {"width": 8}, "a comb of width 8 needs a review"),
    ((4,), {}, "must be a sequence of sequences of whole numbers"),
]


FOUR, FIVE, COPIES = drafters(4, 5)
BIGRAM = table_model(4, 2, name="bigram")
OTHER = ChainDraft(table_model(5, 1, name=FOUR.name))
test_bad_matrices_values_and_drafters_are_refused = refusals(
    *(
        (lambda given=given, more=more: from_matrix(drafters(4, 4), given, **more), said)
        for given, more, said in BAD
    ),
    (lambda: from_matrix((FOUR, FIVE, COPIES), PAPER), "one vocabulary, got .*d0 with 4 tokens"),
    (lambda: Relay((ChainDraft(FOUR), OTHER), (1, 1)), "share one vocabulary"),
    (lambda: Reviewed(FOUR, ChainDraft(BIGRAM)), "call the model 'bigram' otherwise"),
    (lambda: from_matrix((FOUR, COPIES, FOUR), PAPER), "the last drafter .* got MaxGram before it"),
)
