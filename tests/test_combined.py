"""Drafts made of several: the first that guesses enough, all of them merged, the best one here."""

import pickle
from dataclasses import replace

import pytest
from cases import alternating, flat, models, planned
from fakes import HERE, PROMPT, T1, Says, assert_refused, fixed_model, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.planned import MATCHES, situation
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.recorded_target import RecordedTarget, replay_draft


def test_the_first_draft_that_guesses_enough_is_taken_and_no_later_one_is_asked():
    parts = none, two, three = Says((), "none"), Says((1, 1), "two"), Says((1, 1, 1), "three")
    assert FirstDraft(parts).propose(HERE, Chance(0)).sources[1:] == ("two", "two")
    assert (none.nested, two.nested, three.nested) == ([(("part", (0,)),)], [(("part", (1,)),)], [])
    assert FirstDraft(parts, least=3).propose(HERE, Chance(0)).guesses == 3
    assert FirstDraft(parts[:1]).propose(HERE, Chance(0)).guesses == 0
    with pytest.raises(ValueError, match="at least one part, got none"):
        FirstDraft(())


def test_a_merged_draft_without_parts_is_refused():
    """It would be plain decoding without a word; the draft that guesses nothing is `NoDraft`."""
    with pytest.raises(ValueError, match="a merged draft needs at least one part, got none"):
        MergedDraft(())
    assert MergedDraft((NoDraft(),)).propose(HERE, Chance(0)).guesses == 0


def test_a_merged_draft_holds_what_its_parts_guess_once():
    context = Context.of([1, 2, 0, 3, 1, 2, 0])
    tree, other = TreeDraft(table_model(5, 1), widths=(5, 2)), table_model(5, 2, name="other")
    parts = (MaxGram(None, 2), tree, ChainDraft(other, 3))
    made = [draft.propose(context, Chance(0, T1)) for draft in (MergedDraft(parts), *parts)]
    merged, *whole = ([tree.path_tokens(node) for node in range(len(tree))] for tree in made)
    assert len(set(merged)) == len(merged) < sum(map(len, whole)) - 2
    assert set(merged) == {path for paths in whole for path in paths}
    assert {"prompt", "table", "other"} <= set(made[0].sources)


def test_drawn_guesses_are_neither_passed_over_nor_merged():
    """It would be biased: whether they are few, or equal, may depend on what was drawn."""
    drawn = TreeDraft(table_model(5, 1), widths=(2,), siblings="distinct")
    for draft, complaint in (
        (FirstDraft((drawn, NoDraft()), least=3), "drawn cannot be passed over"),
        (MergedDraft((MaxGram(None, 2), drawn)), "a tree with rows cannot be merged"),
    ):
        with pytest.raises(ValueError, match=complaint):
            draft.propose(HERE, Chance(0, T1))


@pytest.mark.parametrize("size", range(11))
def test_the_situation_is_the_length_of_the_longest_ending_that_stood_before(size):
    ending = tuple(range(20, 20 + size))
    context = Context.of((*ending, 1, 2)).extended((3, *ending))
    assert situation(context) == sum(size >= least for least in MATCHES)
    inside = Context.of((1, 2)).extended((*ending, 4, *ending))  # in the generation itself
    assert situation(inside) == situation(context)
    other = Context.of((7, 8), source=(*ending, 5)).extended(ending)
    assert situation(other) == situation(context)  # in what the encoder reads


def test_the_part_that_is_worth_most_guesses():
    sure = fixed_model((0.0, 1.0, 0.0), "sure")
    parts = (NoDraft(), ChainDraft(sure, 1), ChainDraft(sure, 3))
    tokens = flat(1.0, 2.0, 3.0)
    cases = (
        (0.3, 4.0, 3),
        (0.3, 1.0, 1),
        (1.0, 1.0, 1),
        (3.0, 1.0, 0),
    )  # plain decoding: 1 ÷ alone
    for price, alone, guesses in cases:
        draft = planned(*parts, tokens=tokens, seconds=flat(alone, 1.5, 3.0), price=price)
        tree = draft.propose(Context.of((0, 1)), Chance(0, Sampler(0)))
        assert tree.guesses == guesses, (price, alone)


def test_the_price_of_time_follows_the_text():
    target = fixed_model((0.0, 0.0, 1.0), "target")
    slow, fast = (ChainDraft(fixed_model((0.0, 0.0, 1.0), name), 3) for name in "ab")
    fast = replace(fast, length=1)
    draft = planned(fast, slow, tokens=flat(2.0, 4.0), seconds=flat(1.0, 4.0), price=0.5)
    made = decode(target, draft, (0, 1), Chance(0, Sampler(0)), max_new_tokens=120)
    guesses = [one.proposed for one in made.rounds[:-1]]
    assert guesses[0] == 3, "at the plan's price the long chain is worth more"
    assert guesses[-20:] == [1] * 20, "at what a second brings here the short one"


def test_a_draft_that_fares_worse_than_expected_is_dropped_for_a_while():
    target = fixed_model((0.0, 0.0, 1.0), "target")
    wrong = fixed_model((0.0, 1.0, 0.0), "wrong")
    draft = planned(NoDraft(), ChainDraft(wrong, 2), tokens=flat(1.0, 2.6), seconds=flat(1.0, 2.0))
    chance = Chance(0, Sampler(0))
    made = decode(target, draft, (0, 1), chance, max_new_tokens=120)
    guesses = [one.proposed for one in made.rounds[:-2]]  # the last have no room
    assert guesses[:5] == [2] * 5
    later = guesses[40:]
    assert 0 < sum(map(bool, later)) < len(later) / 2  # it is tried again, and not often
    right = ChainDraft(fixed_model((0.0, 0.0, 1.0), "right"), 2)
    good = replace(draft, parts=(NoDraft(), right))
    again = decode(target, good, (0, 1), chance, max_new_tokens=60)
    assert all(one.proposed == 2 for one in again.rounds[:-1])


def test_a_generation_does_not_depend_on_what_was_decoded_before():
    model, options = models(5), {"max_new_tokens": 40}
    target, draft, fresh = model("target"), alternating(model), alternating(model)
    first = decode(target, draft, PROMPT, Chance(1), **options)
    decode(target, draft, PROMPT[::-1], Chance(2), **options)
    again, alone = (decode(target, one, PROMPT, Chance(1), **options) for one in (draft, fresh))
    shapes = [[one.tree for one in made.rounds] for made in (first, again, alone)]
    assert shapes[0] == shapes[1] == shapes[2]
    text = RecordedTarget.of(target, PROMPT, first.tokens, 40)
    assert [one.tree for one in replay_draft(text, draft, Chance(1)).rounds] == shapes[0]
    assert pickle.loads(pickle.dumps(draft.running)).follow(Context.of(PROMPT)) == ({}, 0, 0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: replace(planned(NoDraft()), parts=(), tokens=()), "0 parts, at least 1"),
        (lambda: replace(planned(NoDraft()), price=0.0), "price of Planned .* got 0.0"),
        (lambda: replace(planned(NoDraft()), seconds=((1.0,),)), "5 seconds for each of 1 parts"),
    ],
)
def test_bad_plans_are_refused(call, said):
    assert_refused(call, said)
