"""Cascades: what is asked of whom and handed up, and what a K matrix nests in either convention."""

import itertools
import math

import pytest
from fakes import HERE, PROMPT, Says, assert_refused, fixed_model, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.drafts.cascade import Relay, Reviewed, converted, from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import TableModel

GREEDY, T1 = Chance(0, Sampler(0)), Chance(0, Sampler(1.0))


def likely(token: int, probability: float, name: str, vocabulary: int = 4) -> TableModel:
    """A model that gives one token this probability everywhere, and the others what is left."""
    rest = (1 - probability) / (vocabulary - 1)
    return fixed_model([probability if one == token else rest for one in range(vocabulary)], name)


def test_a_reviewer_hands_up_what_it_keeps_and_one_token_of_its_own():
    reviewer = likely(1, 0.7, "big")
    tree = Reviewed(reviewer, Says((1, 1, 2, 1))).propose(HERE, GREEDY)
    assert tree.path_tokens(len(tree) - 1) == (1, 1, 1)
    assert tree.sources == ("context", "says via big", "says via big", "big")
    assert tree.scores == pytest.approx((1, 0.7, 0.49, 0.343))


KEPT = {(0.5, 1.0): False, (0.5, 2.0): False, (0.5, 2.5 + 1e-9): True, (0.5, 5.0): True}
KEPT |= {(0.1, 1.0): False, (0.1, 1.0 + 1e-6): True}  # of offered probability and lenience


def test_at_temperature_0_a_token_is_kept_up_to_lenience_times_the_reviewers():
    """The reviewer gives token 3 a probability of .2; lenience 1 keeps its own choice only, also
    where the draft offers less than that.
    """
    reviewer = fixed_model((0.1, 0.6, 0.1, 0.2), "big")
    for (offered, lenient), kept in KEPT.items():
        draft = Says((3,), factor=offered)
        tree = Reviewed(reviewer, draft, lenience=lenient).propose(HERE, GREEDY)
        assert tree.tokens[1] == (3 if kept else 1)
        assert tree.scores[1] == pytest.approx(0.2 if kept else 0.6)


def test_with_noise_a_token_is_kept_that_comes_within_log_lenience_of_the_choice():
    reviewer = fixed_model((0.1, 0.4, 0.3, 0.2), "big")
    for seed in range(30):
        chance = Chance(seed, Sampler(1.0))
        gaps = chance.gaps(reviewer.logits(()), len(HERE), range(4))
        assert sorted(gaps) == pytest.approx(chance.rank(reviewer.logits(()), len(HERE), 4)[1])
        for token, lenient in itertools.product(range(4), (1.0, 2.0, 5.0)):
            reviewed = Reviewed(reviewer, Says((token,)), lenience=lenient)
            kept = reviewed.propose(HERE, chance).tokens[1] == token
            assert kept == (gaps[token] <= math.log(lenient))


COPIES_3 = Context.of((1, 3, 3, 2, 1, 3))  # Max-Gram copies 3
COPY = MaxGram(None, 1)  # one index, asked about the same text again and again


def test_lenience_may_exempt_copies_but_no_reviewed_ones():
    """The reviewer gives the copy .3: lenience 5 keeps it, 3 does not; what another reviewer kept
    offers its .4 above.
    """
    reviewer, small = fixed_model((0.05, 0.55, 0.1, 0.3), "big"), likely(3, 0.4, "small")
    for lenient, exempt in itertools.product((3.0, 5.0), (True, False)):
        reviewed = Reviewed(reviewer, COPY, lenience=lenient, exempt_max_gram=exempt)
        kept = lenient == 5 and not exempt
        assert reviewed.propose(COPIES_3, GREEDY).tokens[1] == (3 if kept else 1)
    for lenient, source in ((1.3, "big"), (1.4, "prompt via small via big")):
        reviewed = Reviewed(reviewer, Reviewed(small, COPY), lenience=lenient)
        assert reviewed.propose(COPIES_3, GREEDY).sources[1] == source


def test_a_reviewed_tree_follows_the_reviewer_then_the_best_allowed_child():
    """The draft proposes tokens 2 and 3, never 1; lenience 3 lets both pass, and 2 scores best."""
    reviewer = fixed_model((0.1, 0.5, 0.25, 0.15), "big")
    draft = TreeDraft(fixed_model((0.1, 0.1, 0.45, 0.35), "draft"), widths=(2,))
    for lenient, token in ((1.0, 1), (3.0, 2)):
        tree = Reviewed(reviewer, draft, lenience=lenient).propose(HERE, GREEDY)
        assert tree.tokens[1] == token


def test_a_comb_has_leaves_beside_the_token_that_goes_on():
    reviewer = fixed_model((0.1, 0.4, 0.3, 0.2), "big")
    for chance in (GREEDY, T1):
        tree = Reviewed(reviewer, Says((1, 1)), width=3, lenience=50.0).propose(HERE, chance)
        spine = 0
        for token in (1, 1):
            children = tree.children(spine)
            assert len(children) == 3 and tree.tokens[children[0]] == token
            assert len({tree.tokens[child] for child in children}) == 3
            assert all(not tree.children(child) for child in children[1:])
            spine = children[0]
        assert len(tree) == 10


def test_a_relay_asks_the_strongest_first_and_counts_what_overshoots():
    """4 guesses where 3 are wanted; 8 where 5 are, so the third draft is skipped."""
    first, second, third = Says((1, 1), "first"), Says((2, 2, 2, 2), "second"), Says((3,), "third")
    tree = Relay((first, second, third), (3, 2, 2)).propose(HERE, GREEDY)
    assert tree.path_tokens(len(tree) - 1) == (1, 1, 1, 1, 2, 2, 2, 2)
    assert [len(context) for context in first.asked] == [2, 4] and not third.asked
    assert second.asked == [(*PROMPT, 1, 1, 1, 1)]


def test_a_relay_goes_on_at_the_best_scored_leaf():
    branching = TreeDraft(fixed_model((0.1, 0.45, 0.35, 0.1), "draft"), widths=(2, 1))
    tail = Says((3,), "tail")
    tree = Relay((branching, tail), (1, 2)).propose(HERE, GREEDY)
    assert tail.asked == [(*PROMPT, 1, 1)] and len(tree) == 6


def test_a_full_context_ends_the_cascade_quietly():
    small = table_model(4, 1, name="small", max_positions=4)
    relay = Relay((Reviewed(small, MaxGram(None, 3)), MaxGram(None, 2)), (2, 1))
    for length in range(1, 6):
        tree = relay.propose(Context.of([1] * length), T1)
        reviewed = [
            tree.position(node) for node in range(len(tree)) if "small" in tree.sources[node]
        ]
        assert max(reviewed, default=0) <= 4 and bool(reviewed) == (length <= 4)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: Relay((), ()), r"0 drafts take as many lengths .*, got \(\)"),
        (lambda: Relay((NoDraft(),), (1, 2)), r"got \(1, 2\)"),
        (lambda: Relay((NoDraft(),), (0,)), r"got \(0,\)"),
    ],
)
def test_an_empty_or_uneven_relay_is_refused(call, said):
    assert_refused(call, said)


def test_lenience_under_a_ratio_rule_refuses_a_branching_tree():
    tree = TreeDraft(likely(1, 0.7, "small"), widths=(2,), siblings="iid")
    lenient = Reviewed(likely(1, 0.7, "big"), tree, lenience=2.0, siblings="iid")
    with pytest.raises(ValueError, match=r"chains only, got a branching tree of 2 .* and 2\.0"):
        lenient.propose(HERE, T1)


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
    if (matrix, convention) == (PAPER, "cumulative"):
        assert written == ((5, 19, 29), (0, 1, 11), (0, 0, 10))


def test_a_matrix_sets_its_reviews_and_may_end_in_a_chain_of_a_model():
    big, small, copies = drafters(4, 4)
    first, second, tail = from_matrix((big, small, copies), PAPER, lenience=3.0).parts
    assert first.reviewer is big and first.lenience == second.lenience == 3.0
    assert second.reviewer is first.draft.parts[0].reviewer is small and tail.length == 10
    cascade = from_matrix((big, small), ((2, 3), (0, 0)))
    assert cascade.parts == (Reviewed(big, NoDraft()), ChainDraft(small, 3))
    alone, chain = from_matrix((small,), ((4,),)), ChainDraft(small, 4)
    assert alone.propose(HERE, T1) == chain.propose(HERE, T1)


COPIES_ONLY, BELOW = ((0, 0, 5), (0, 0, 0), (0, 0, 0)), ((0, 1, 1), (0, 0, 1))
BAD = [
    (((5, 1), (0, 1)), {}, "3 drafters, 2 rows"),
    (((5, 1, 1), (0, 1), (0, 0, 1)), {}, r"square, .* row 1 is \(0, 1\)"),
    (((5, 1, 1), (1, 1, 1), (0, 0, 1)), {}, r"upper triangular, .* row 1 is \(1, 1, 1\)"),
    (((5, -1, 1), *BELOW), {}, r"entries of 0 or more, row 0 is \(5, -1, 1\)"),
    (((5, 3, 10), *BELOW), {"convention": "cumulative"}, r"never falls .*, got \(5, 3, 10\)"),
    (((0, 0, 0), *BELOW), {}, "an empty cascade proposes nothing"),
    (PAPER, {"lenience": float("nan")}, "lenience of from_matrix must be a number from 1"),
    (PAPER, {"convention": "paper"}, "'increments' or 'cumulative', got 'paper'"),
    (COPIES_ONLY, {"width": 8}, "a comb of width 8 needs a review"),
    ((4,), {}, "must be a sequence of sequences of whole numbers"),
]


FOUR, COPIES = drafters(4)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        *(
            (lambda given=given, more=more: from_matrix(drafters(4, 4), given, **more), said)
            for given, more, said in BAD
        ),
        (
            lambda: from_matrix((FOUR, COPIES, FOUR), PAPER),
            "the last drafter .* got MaxGram before it",
        ),
    ],
)
def test_bad_matrices_values_and_drafters_are_refused(call, said):
    assert_refused(call, said)
