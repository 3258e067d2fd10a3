"""Contexts and trees: what is derived from tokens and parents, and what is refused."""

import math
from dataclasses import replace

import pytest
import torch
from fakes import assert_refused

from specdec_lib.core.context import Context
from specdec_lib.core.tree import ROOT, MatchTable, TokenTree, leading

#        0:root
#      1:a      2:b
#    3:c 4:a      5:c
SCORED = {"source": "draft", "scores": [0.6, 0.3, 0.4, 0.1, 0.2]}
TREE = TokenTree(9, (8,)).grown([1, 2, 3, 1, 3], [0, 0, 1, 1, 2], **SCORED)


def test_places_are_derived_from_parents():
    assert TokenTree.rooted(Context.of([4, 7])) == TokenTree(1, (7,))
    assert TREE.depths == (0, 1, 1, 2, 2, 2)
    assert [TREE.position(node) for node in range(6)] == [9, 10, 10, 11, 11, 11]
    assert TREE.children(1) == (3, 4) and TREE.child(1, 1) == 4 and TREE.child(2, 1) is None
    assert TREE.path(5) == (2, 5) and TREE.path_tokens(5) == (2, 3) and TREE.path(ROOT) == ()
    assert [TREE.slots(node) for node in range(6)] == [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]


def test_a_node_sees_itself_and_its_ancestors_alone():
    sees = TREE.ancestry()
    for node in range(6):
        assert set(sees[node].nonzero().flatten().tolist()) == {ROOT, *TREE.path(node)} | {node}


def test_truncating_keeps_the_best_scored_guesses_and_cutting_the_shallow_ones():
    best = TREE.truncated(3)
    assert best.tokens == (8, 1, 2, 3) and best.parents == (-1, 0, 0, 1)
    assert TREE.cut(1).tokens == (8, 1, 2) and TREE.cut(0).guesses == 0 and TREE.cut(5) is TREE


def test_merging_joins_equal_siblings_and_their_subtrees():
    """The higher score is taken, though a child scores above the first twin."""
    scored = {"source": [*"ababb"], "scores": [0.5, 0.9, 0.2, 0.8, 0.1]}
    twins = TokenTree(0, (9,)).grown([1, 1, 2, 2, 3], [0, 0, 1, 2, 2], **scored)
    merged = twins.merged()
    assert (merged.tokens, merged.parents) == ((9, 1, 2, 3), (-1, 0, 1, 1))
    assert merged.scores == (1.0, 0.9, 0.8, 0.1)
    assert merged.sources == ("context", "a", "a", "b")


def test_a_tree_with_rows_is_neither_truncated_nor_merged():
    given = {"source": "draft", "scores": [0.5, 0.5], "rows": [torch.ones(2) / 2] * 2}
    drawn = TokenTree(0, (9,)).grown([1, 1], [0, 0], **given)
    for change in (lambda tree: tree.truncated(1), TokenTree.merged):
        with pytest.raises(ValueError, match="biased"):
            change(drawn)
        assert change(replace(drawn, rows=(None,) * 3)).guesses == 1


def one(token=1, parent=0, score=0.5, scores=1) -> TokenTree:
    return TokenTree(0, (9,)).grown([token], [parent], source="x", scores=[score] * scores)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: one(parent=1), "precede its child: node 1 has parent 1"),
        (lambda: TokenTree(0, (1,), (0,)), "node 0 is the root"),
        (lambda: one(token=-2), "from 0 on"),
        (lambda: one(score=1.5), "a score lies between"),
        (lambda: one(scores=2), "one token, parent, source, score and row per node"),
        (lambda: TokenTree(-1, (1,)), "counts from 0"),
        (lambda: Context((), 0), "prompt is empty"),
        (lambda: Context((1,), 2), "1…1, got 2"),
        (lambda: Context((-1,), 1), "from 0 on"),
    ],
)
def test_what_is_no_tree_or_context_is_refused(call, said):
    assert_refused(call, said)


BY_GAP = MatchTable((0.6, 0.2), "by gap", (0.5, 2.0), ((0.4, 0.3), (0.6, 0.2), (0.9, 0.04)))


def test_a_match_rate_is_that_of_the_gaps_bin_and_halves_beyond_the_last_rank():
    rates = {(0, None): 0.6, (3, None): 0.05, (1, 0.5): 0.2, (0, math.inf): 0.9, (3, 0.1): 0.075}
    assert {asked: BY_GAP.rate(*asked) for asked in rates} == pytest.approx(rates)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: MatchTable((), "x"), r"never rise, got \(\)"),
        (lambda: MatchTable((0.2, 0.4), "x"), "never rise"),
        (lambda: MatchTable((0.5,), "x", (1.0,), ((0.5,),)), "one bin more than edges"),
        (lambda: MatchTable((0.5,), "x", (1.0, 1.0), ((0.5,),) * 3), "rising edges"),
        (lambda: MatchTable((0.5,), "x", (1.0,), ((0.5,), (0.1, 0.1))), "each of 1 rates"),
        (lambda: MatchTable((0.5,), "x", (1.0,), ((0.5,), (1.5,))), "binned of .* from 0 to 1"),
    ],
)
def test_what_is_no_match_table_is_refused(call, said):
    assert_refused(call, said)


def test_the_firsts_gap_is_its_lead():
    assert leading([7, 8, 9], [0.0, 0.4, 0.9], 3) == ([7, 8, 9], [0.4, 0.4, 0.9])
    assert leading([7, 8], [0.0, 0.4], 1) == ([7], [0.4])
    assert leading([7], [0.0], 4) == ([7], [math.inf])


def test_a_longer_context_is_what_it_would_be_if_made_at_once():
    longer = Context((1, 2), 1, source=(3,)).extended([4]).extended((5, 6))
    whole = Context((1, 2, 4, 5, 6), 1, source=(3,))
    assert longer == whole and hash(longer) == hash(whole)
    assert "begun" not in repr(longer) and longer.begun == (1, 2, 4)
    assert (longer.prompt, longer.generated, len(longer)) == ((1,), (2, 4, 5, 6), 5)
