"""Drafts with an off-switch: when they guess, what they learn from, and what they refuse."""

import pickle
from dataclasses import dataclass, field, replace

import pytest
from cases import COPIES, LEARNING
from fakes import fixed_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.paying import FirstPaying, off_switch
from specdec_lib.drafts.trees.growing import ChainDraft

CHANCE = Chance(0, Sampler(0))
TARGET = fixed_model((0.0, 0.0, 1.0), "target")
RIGHT = ChainDraft(fixed_model((0.0, 0.0, 1.0), "right"), 2)
WRONG = ChainDraft(fixed_model((0.0, 1.0, 0.0), "wrong"), 2)


def proposed(draft, *, tokens=200, prompt=(0, 1)):
    """Guesses of each round but the last, which have no room."""
    made = decode(TARGET, draft, prompt, CHANCE, max_new_tokens=tokens)
    assert set(made.tokens) == {2}
    return [one.proposed for one in made.rounds[:-2]]


@dataclass
class Copying:
    """A draft without a model that guesses these tokens, one after the other's round."""

    guesses: list[int]
    seen: list[int] = field(default_factory=list)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        guess = self.guesses[len(self.seen) % len(self.guesses)]
        self.seen.append(len(context))
        return TokenTree.of_paths(context, [[guess] * 2 if guess >= 0 else []])


def test_a_draft_is_off_where_it_does_not_pay_and_tried_again_now_and_then():
    assert proposed(off_switch(RIGHT, 1.5)) == [2] * len(proposed(off_switch(RIGHT, 1.5)))
    on = [count > 0 for count in proposed(off_switch(WRONG, 1.5))]
    assert on[0] and any(on[len(on) // 2 :]) and sum(on) < 0.2 * len(on)
    dear, cheap = (sum(map(bool, proposed(off_switch(WRONG, one)))) for one in (3.0, 1.1))
    assert dear < cheap, "what costs more is given up sooner"


def test_a_draft_that_costs_nothing_is_never_off_and_one_without_hope_never_on():
    assert set(proposed(off_switch(WRONG, 1.0))) == {2}
    assert set(proposed(off_switch(RIGHT, 1.5, hoped=1.4))) == {0}
    patient, hasty = (proposed(off_switch(WRONG, 1.5, hoped=one)).index(0) for one in (3, 1.6))
    assert patient > hasty


def test_the_next_part_guesses_where_one_is_off_or_has_too_few_guesses():
    draft = FirstPaying((WRONG, RIGHT), (1.5, 1.5))
    made = decode(TARGET, draft, (0, 1), CHANCE, max_new_tokens=90)
    assert made.rounds[0].tree.sources[1] == "wrong"
    assert len(made.tokens) / len(made.rounds) > 2
    short = FirstPaying((MaxGram(None, 8), RIGHT), (1.5, 1.5), least=2)
    assert proposed(short, prompt=(0, 1))[0] == 2, "nothing to copy: the chain"
    one = FirstPaying((MaxGram(None, 8, least=2), replace(RIGHT, length=1)), (1.5, 1.2), least=2)
    assert proposed(one)[0] == 1, "the last part's is never too few"
    other = off_switch(WRONG, 1.5, otherwise=RIGHT)
    assert set(proposed(other)) == {2}


def test_what_needs_no_model_is_watched_while_it_is_off():
    """It is on again a few rounds after it would have been right."""
    copying = Copying([0] * 12 + [2] * 100)
    counts = proposed(off_switch(copying, 1.5), tokens=60)
    off = counts.index(0)
    assert 0 < off < 8 and counts[off:12] == [0] * (12 - off)
    back = counts.index(2, 12)
    assert back <= 18 and set(counts[back:]) == {2}
    assert len(copying.seen) >= len(counts), "it was asked in every round"


def test_rounds_without_guesses_say_nothing():
    never = off_switch(Copying([-1]), 1.5)
    assert set(proposed(never)) == {0}
    assert not never.running.follow(Context.of((0, 1)))
    now_and_then = proposed(off_switch(Copying([-1, -1, 2]), 1.5), tokens=60)
    assert set(now_and_then[::3] + now_and_then[1::3]) == {0} and set(now_and_then[2::3]) == {2}


def test_each_generation_begins_anew_and_copies_of_a_draft_start_empty():
    draft = off_switch(WRONG, 1.5)
    first = proposed(draft)
    assert proposed(draft) == first
    for fresh in (pickle.loads(pickle.dumps(draft.running)), replace(draft).running):
        assert fresh.follow(Context.of((0, 1))) == {}


def test_wrong_values_are_refused():
    with pytest.raises(ValueError, match=r"needed of off_switch .* got 0.5"):
        off_switch(NoDraft(), 0.5)
    with pytest.raises(ValueError, match=r"at least 1, with needed and .* got 0, needed \(\)"):
        FirstPaying((), ())
    with pytest.raises(ValueError, match=r"got 1, needed \(1.5, 2.0\), hoped None"):
        FirstPaying((COPIES,), (1.5, 2.0))
    with pytest.raises(ValueError, match=r"got 1, needed \(1.5,\), hoped \(1.5, 2.0\)"):
        FirstPaying((COPIES,), (1.5,), (1.5, 2.0))
    with pytest.raises(ValueError, match=r"got 1, needed \(1.5,\), hoped \(\)"):
        FirstPaying((COPIES,), (1.5,), ())
    with pytest.raises(ValueError, match=r"trust of FirstPaying .* got 0.0"):
        FirstPaying((COPIES,), (1.5,), trust=0.0)
    drawn = ChainDraft(fixed_model((0.0, 0.0, 1.0), "drawn"), 1, siblings="iid")
    draft = FirstPaying((drawn, RIGHT), (1.5, 1.5), least=2)
    with pytest.raises(ValueError, match=r"drawn cannot be passed over .* 1 of part 0"):
        draft.propose(Context.of((0, 1)), Chance(0, Sampler(1.0)))


def test_a_part_that_learns_is_told_of_every_round():
    assert any(proposed(off_switch(LEARNING["recycled"](), 1.5), tokens=30)), (
        "it knows nothing else"
    )
