"""Reviews, relays and the K matrix: what is asked of whom, in which order, what is handed up, and which matrices are refused."""

from dataclasses import dataclass, field

import pytest
import torch
from fakes import PROMPT, fixed_model, table_model

from specdec_lib.cascade import Relay, Reviewed, converted, from_matrix, guessed_by, to_matrix
from specdec_lib.chance import Chance, Sampler
from specdec_lib.context import Context
from specdec_lib.decode import decode, models_in
from specdec_lib.draft import ChainDraft, NoDraft, TreeDraft
from specdec_lib.lm import TableModel
from specdec_lib.ngram import MaxGram
from specdec_lib.tree import MatchTable, TokenTree

GREEDY, T1 = Chance(0, Sampler(0)), Chance(0, Sampler(1.0))
HERE = Context.of(PROMPT)
PAPER = ((5, 14, 10), (0, 1, 10), (0, 0, 10))  # the paper's best setting of MMLU


def likely(token: int, probability: float, name: str, vocabulary: int = 4) -> TableModel:
    """A model that gives one token this probability everywhere, and the others what is left."""
    rest = (1 - probability) / (vocabulary - 1)
    return fixed_model([probability if one == token else rest for one in range(vocabulary)], name)


@dataclass
class Says:
    """A draft that says these tokens, and keeps what it was asked about."""

    tokens: tuple[int, ...]
    name: str = "says"
    factor: float = 0.5
    asked: list[tuple[int, ...]] = field(default_factory=list)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        self.asked.append(context.tokens)
        scores = [self.factor**depth for depth in range(1, len(self.tokens) + 1)]
        return TokenTree.rooted(context).grown(self.tokens, range(len(self.tokens)), source=self.name, scores=scores)


def test_a_reviewer_hands_up_what_it_keeps_and_one_token_of_its_own():
    reviewer = likely(1, 0.7, "big")
    tree = Reviewed(reviewer, Says((1, 1, 2, 1))).propose(HERE, GREEDY)
    assert tree.path_tokens(len(tree) - 1) == (1, 1, 1)
    assert tree.sources == ("context", "says via big", "says via big", "big")
    assert tree.scores == pytest.approx((1, 0.7, 0.49, 0.343))
    assert [guessed_by(source) for source in tree.sources[2:]] == ["says", "big"]


def test_a_reviewer_of_nothing_writes_token_by_token():
    tree = Reviewed(likely(2, 0.7, "big"), NoDraft()).propose(HERE, GREEDY)
    assert tree.tokens[1:] == (2,) and tree.sources[1:] == ("big",)


@pytest.mark.parametrize("lenient, kept", [(1.0, False), (2.0, False), (2.5, True), (5.0, True)])
def test_at_temperature_0_a_token_is_kept_up_to_lenience_times_the_reviewers_probability(lenient, kept):
    """The draft thinks .5 of token 3, the reviewer .2: kept from lenience 2.5 on."""
    reviewer = fixed_model((0.1, 0.6, 0.1, 0.2), "big")
    tree = Reviewed(reviewer, Says((3,), factor=0.5), lenience=lenient + 1e-9 * (lenient > 1)).propose(HERE, GREEDY)
    assert tree.tokens[1] == (3 if kept else 1)
    assert tree.scores[1] == pytest.approx(0.2 if kept else 0.6)


def test_with_noise_a_token_is_kept_that_comes_within_log_lenience_of_the_choice():
    reviewer = fixed_model((0.1, 0.4, 0.3, 0.2), "big")
    logits = reviewer.laws(())
    for seed in range(30):
        chance = Chance(seed, Sampler(1.0))
        gaps = chance.gaps(logits, len(HERE), range(4))
        assert min(gaps) == 0 and gaps.index(0) == chance.choose(logits, len(HERE))
        assert sorted(gaps) == pytest.approx(chance.rank(logits, len(HERE), 4)[1])
        for token, gap in enumerate(gaps):
            for lenient in (1.0, 2.0, 5.0):
                found = Reviewed(reviewer, Says((token,)), lenience=lenient).propose(HERE, chance).tokens[1]
                assert (found == token) == (gap <= torch.tensor(lenient, dtype=torch.float64).log())


def test_gaps_below_the_choice_are_those_of_the_warped_law():
    logits = torch.tensor([0.0, 2.0, 1.0, -1.0])
    assert GREEDY.gaps(logits, 3, [1, 2, 0]) == [0.0, 1.0, 2.0]
    assert Chance(0, Sampler(1.0, top_k=2)).gaps(logits, 3, [0, 3]) == [float("inf")] * 2


def test_copies_offer_1_and_may_be_exempt_from_lenience():
    reviewer = fixed_model((0.05, 0.55, 0.1, 0.3), "big")
    context = Context.of((1, 3, 3, 2, 1, 3))  # Max-Gram copies 3, which the reviewer gives .3: lenience 5 keeps it, 3 does not
    copies = MaxGram(None, 1)
    found = {
        (lenient, exempt): Reviewed(reviewer, copies, lenience=lenient, exempt_max_gram=exempt).propose(context, GREEDY).tokens[1]
        for lenient in (3.0, 5.0)
        for exempt in (True, False)
    }
    assert found == {(3.0, True): 1, (3.0, False): 1, (5.0, True): 1, (5.0, False): 3}


def test_a_reviewed_copy_is_no_longer_a_copy():
    """What a reviewer kept offers the reviewer's probability above, and is no longer exempt."""
    context = Context.of((1, 3, 3, 2, 1, 3))
    small, big = likely(3, 0.4, "small"), fixed_model((0.05, 0.6, 0.1, 0.25), "big")
    for lenient, token in ((1.5, 1), (1.7, 3)):  # .4 ≤ l · .25 from 1.6 on
        tree = Reviewed(big, Reviewed(small, MaxGram(None, 1)), lenience=lenient).propose(context, GREEDY)
        assert tree.tokens[1] == token
    assert tree.sources[1] == "prompt via small via big"


def test_a_reviewed_tree_follows_the_reviewers_choice_then_the_best_scored_child_let_through():
    reviewer = fixed_model((0.1, 0.5, 0.25, 0.15), "big")
    draft = TreeDraft(fixed_model((0.1, 0.1, 0.45, 0.35), "draft"), widths=(2,))  # tokens 2 and 3, never 1
    assert Reviewed(reviewer, draft).propose(HERE, GREEDY).tokens[1] == 1
    assert Reviewed(reviewer, draft, lenience=3.0).propose(HERE, GREEDY).tokens[1] == 2  # both pass, 2 scores best


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


def test_a_measured_match_table_scores_what_is_handed_up_under_noise():
    reviewer, match = fixed_model((0.1, 0.4, 0.3, 0.2), "big"), MatchTable((0.6, 0.2, 0.1))
    tree = Reviewed(reviewer, NoDraft(), width=3, match=match).propose(HERE, T1)
    assert tree.scores[1:] == (0.6, 0.2, 0.1)


def test_a_relay_asks_the_strongest_first_and_counts_what_overshoots():
    first, second, third = Says((1, 1), "first"), Says((2, 2, 2, 2), "second"), Says((3,), "third")
    tree = Relay((first, second, third), (3, 2, 2)).propose(HERE, GREEDY)
    assert tree.path_tokens(len(tree) - 1) == (1, 1, 1, 1, 2, 2, 2, 2)  # 4 where 3 are wanted; 8 where 5 are, so the third is skipped
    assert [len(context) for context in first.asked] == [2, 4] and len(second.asked) == 1 and not third.asked
    assert second.asked[0] == (*PROMPT, 1, 1, 1, 1)


def test_a_relay_hands_over_where_a_draft_has_nothing_to_say():
    tree = Relay((Says(()), Says((2,))), (3, 1)).propose(HERE, GREEDY)
    assert tree.tokens[1:] == (2, 2, 2, 2)


def test_a_relay_goes_on_at_the_best_scored_leaf():
    branching = TreeDraft(fixed_model((0.1, 0.45, 0.35, 0.1), "draft"), widths=(2, 1))
    tail = Says((3,), "tail")
    tree = Relay((branching, tail), (1, 2)).propose(HERE, GREEDY)
    assert tail.asked[0] == (*PROMPT, 1, 1)
    assert sum(source == "tail" for source in tree.sources) == 1 and len(tree) == 6


def test_a_full_context_ends_the_cascade_quietly():
    small = table_model(4, 1, name="small", max_positions=4)
    for length in range(1, 6):
        context = Context.of([1] * length)
        tree = Relay((Reviewed(small, MaxGram(None, 3)), MaxGram(None, 2)), (2, 1)).propose(context, T1)
        reviewed = [node for node in range(len(tree)) if "small" in tree.sources[node]]
        assert all(tree.position(node) <= 4 for node in reviewed)
        assert bool(reviewed) == (length <= 4)


def drafters(count: int = 2):
    return (*(table_model(4, number, name=f"d{number}") for number in range(count)), MaxGram(None, 3))


@pytest.mark.parametrize("matrix", [PAPER, ((5, 0, 10), (0, 1, 3), (0, 0, 2)), ((1, 0, 3), (0, 0, 0), (0, 0, 0)), ((0, 2, 0), (0, 0, 0), (0, 0, 4))])
def test_a_matrix_is_read_back_as_it_was_written(matrix):
    parts = drafters()
    asked = {column for column in range(3) if matrix[0][column]} | {2}
    if asked >= {0}:
        asked |= {column for column in range(3) if matrix[1][column]}
    wanted = tuple(row if number == 0 or number - 1 in asked else (0, 0, 0) for number, row in enumerate(matrix))
    for convention in ("increments", "cumulative"):
        written = converted(wanted, "increments", convention)
        assert to_matrix(from_matrix(parts, written, convention=convention), parts, convention=convention) == written


def test_the_two_conventions_are_those_of_the_paper_and_of_its_code():
    assert converted(PAPER, "increments", "cumulative") == ((5, 19, 29), (0, 1, 11), (0, 0, 10))
    assert converted(((5, 19, 29), (0, 1, 11), (0, 0, 10)), "cumulative", "increments") == PAPER


def test_a_matrix_nests_reviews_in_relays():
    big, small, copies = drafters()
    cascade = from_matrix((big, small, copies), PAPER, lenience=3.0)
    first, second, tail = cascade.parts
    assert cascade.lengths == (5, 14, 10)
    assert first.reviewer is big and first.lenience == 3.0 and first.draft.lengths == (1, 10)
    assert second.reviewer is small and second.draft.lengths == (10,) and first.draft.parts[0].reviewer is small
    assert tail.length == 10 and tail.bigrams is copies.bigrams
    assert set(models_in(cascade)) == {"d0", "d1"}


def test_a_matrix_of_models_alone_ends_in_a_chain_and_zeros_review_nothing():
    big, small = drafters()[:2]
    cascade = from_matrix((big, small), ((2, 3), (0, 0)))
    assert cascade.parts == (Reviewed(big, NoDraft()), ChainDraft(small, 3))
    assert to_matrix(cascade, (big, small)) == ((2, 3), (0, 0))
    assert from_matrix((small,), ((4,),)).propose(HERE, T1) == ChainDraft(small, 4).propose(HERE, T1)


def test_a_cascade_of_three_levels_writes_the_targets_own_tokens_in_fewer_rounds():
    target, parts = table_model(4, 0, name="target"), drafters()
    for sampler in (Sampler(0), Sampler(1.0)):
        plain = decode(target, NoDraft(), PROMPT, Chance(1, sampler), max_new_tokens=20)
        found = decode(target, from_matrix(parts, PAPER, lenience=2.0), PROMPT, Chance(1, sampler), max_new_tokens=20)
        assert found.tokens == plain.tokens and len(found.rounds) < 20


BAD = [
    (((5, 1), (0, 1)), {}, "3 drafters, 2 rows"),
    (((5, 1, 1), (0, 1), (0, 0, 1)), {}, "square: 3 rows, row 1 has 2 entries"),
    (((5, 1, 1), (1, 1, 1), (0, 0, 1)), {}, r"upper triangular: the first 1 entries of row 1 are 0, got \(1, 1, 1\)"),
    (((5, -1, 1), (0, 1, 1), (0, 0, 1)), {}, r"whole numbers of 0 or more, row 0 is \(5, -1, 1\)"),
    (((5, 1.5, 1), (0, 1, 1), (0, 0, 1)), {}, "whole numbers of 0 or more"),
    (((5, 3, 10), (0, 1, 2), (0, 0, 1)), {"convention": "cumulative"}, r"never falls from the diagonal on, row 0 is \(5, 3, 10\)"),
    (((0, 0, 0), (0, 1, 1), (0, 0, 1)), {}, "an empty cascade proposes nothing: the first row"),
    ((), {}, "an empty cascade proposes nothing: the K matrix has no row"),
    (PAPER, {"lenience": 0.5}, "lenience is a finite number of at least 1"),
    (PAPER, {"lenience": float("nan")}, "lenience is a finite number of at least 1"),
    (PAPER, {"convention": "paper"}, "increments and cumulative, got 'paper'"),
    (PAPER, {"siblings": "distinct"}, "got 'distinct'"),
    (PAPER, {"width": 0}, "at least 1 child per position, got width=0"),
]


@pytest.mark.parametrize("matrix, options, complaint", BAD)
def test_bad_matrices_and_values_are_refused(matrix, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        from_matrix(drafters(), matrix, **options)


def test_drafters_of_other_vocabularies_and_wrong_parts_are_refused():
    big, small, copies = table_model(4, 0, name="big"), table_model(5, 1, name="small"), MaxGram(None, 3)
    with pytest.raises(ValueError, match=r"share one vocabulary, got .*big with 4 tokens"):
        from_matrix((big, small, copies), PAPER)
    with pytest.raises(ValueError, match="share one vocabulary"):
        Relay((ChainDraft(big), ChainDraft(small)), (1, 1))
    with pytest.raises(ValueError, match="only the last drafter may be another draft; got MaxGram before it"):
        from_matrix((big, copies, big), PAPER)


def test_an_empty_or_uneven_relay_is_refused():
    for parts, lengths, complaint in (
        ((), (), "at least one draft"),
        ((NoDraft(),), (1, 2), r"as many lengths, each 0 or more, got \(1, 2\)"),
        ((NoDraft(),), (-1,), r"each 0 or more, got \(-1,\)"),
        ((NoDraft(),), (0,), "all lengths are 0"),
    ):
        with pytest.raises(ValueError, match=complaint):
            Relay(parts, lengths)


def test_what_no_matrix_says_is_not_read_as_one():
    big, small, copies = drafters()
    for cascade, complaint in (
        (Relay((Reviewed(big, copies),), (2,)), "reviews a MaxGram, not a relay"),
        (Relay((Reviewed(small, NoDraft()), Reviewed(big, NoDraft())), (1, 1)), "after a weaker one"),
        (Relay((ChainDraft(table_model(4, 7, name="other")),), (2,)), "none of the 3 drafters: other"),
        (Relay((Reviewed(big, Relay((Reviewed(small, NoDraft()),), (1,))), Reviewed(small, Relay((copies,), (1,)))), (1, 1)), "in one place and"),
    ):
        with pytest.raises(ValueError, match=complaint):
            to_matrix(cascade, (big, small, copies))
