"""The planned draft: exact whatever it chooses, and it chooses what is worth most here."""

import itertools
import pickle
from dataclasses import replace

import pytest
from fakes import PROMPT, Scripted, distance, fixed_model, table_model

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.drafts import planned as planned_module
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.planned import MATCHES, SITUATIONS, Planned, situation
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.own_text import OwnText, replay_draft
from specdec_lib.models.table import joint_distribution

pytestmark = pytest.mark.usefixtures("unchecked")
SAMPLERS = {
    "T=0": Sampler(0),
    "T=1": Sampler(1.0),
    "top-k": Sampler(1.0, top_k=2),
    "top-p": Sampler(0.7, top_p=0.8),
}


def planned(*parts, tokens=None, seconds=None, price=1.0) -> Planned:
    """Parts of which another is worth most in every other situation, while all goes as expected."""
    rows = [
        tuple(1.1 + ((place + at) % len(parts)) for place in SITUATIONS) for at in range(len(parts))
    ]
    costs = ((1.0,) * len(SITUATIONS),) * len(parts)
    return Planned(tuple(parts), tuple(tokens or rows), tuple(seconds or costs), price)


def drawing(model, siblings: str) -> Planned:
    chain = ChainDraft(model, 2, siblings="iid" if siblings == "iid" else "top")
    tree = TreeDraft(model, widths=(2, 1), siblings=siblings)
    return planned(NoDraft(), MaxGram(None, 2), chain, tree)


FLIPS = (1.6, 1.55)  # expected tokens of two drafts: the worse of the two for now stands back


def flipping(kind: type[Planned], siblings: str) -> Planned:
    """Two drafts between which the outcome of earlier guesses decides."""
    drafts = [table_model(2, seed, name=f"draft {seed}") for seed in (4, 5)]
    parts = tuple(ChainDraft(one, 1, siblings=siblings) for one in drafts)
    flat = tuple((one,) * len(SITUATIONS) for one in FLIPS)
    return kind(parts, flat, ((1.0,) * len(SITUATIONS),) * 2, 1.0)


class Peeks(Planned):
    """The bug: of two drawn trees it takes the one whose first token is the smaller."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        trees = [
            part.propose(context, chance.inner("part", (at,))) for at, part in enumerate(self.parts)
        ]
        return min(trees, key=lambda tree: tree.tokens[1])


def off(kind: type[Planned], siblings: str, sampler: Sampler) -> tuple[float, set[str]]:
    """How far four tokens that `reject` emits lie from the target's distribution; who guessed."""
    target, seen = table_model(2, 3), set()
    wanted = joint_distribution(target, PROMPT[:2], sampler, 4)

    def run(chance):
        draft = flipping(kind, siblings)
        made = decode(target, draft, PROMPT[:2], chance, max_new_tokens=4, rule=reject)
        seen.update(name for one in made.rounds for name in one.tree.sources[1:])
        return made.tokens

    return distance(every_outcome(run, sampler), wanted), seen


@pytest.mark.parametrize("sampler", list(SAMPLERS.values())[:3], ids=[*SAMPLERS][:3])
@pytest.mark.parametrize("siblings", ["top", "iid"])
def test_reject_gives_the_targets_distribution(siblings, sampler, monkeypatch):
    monkeypatch.setattr(planned_module, "TRUST", 0.5)
    far, guessed = off(Planned, siblings, sampler)
    assert far < 1e-12 and "draft 4" in guessed
    assert "draft 5" in guessed or sampler.temperature == 0  # outcomes really decide


def test_the_enumeration_catches_a_choice_by_what_was_drawn():
    assert off(Peeks, "iid", Sampler(1.0))[0] > 1e-3


def test_look_up_emits_every_possible_sequence_of_target_choices():
    target = table_model(3, 5)
    draft, guessed = drawing(table_model(3, 6, name="draft"), "ranked"), 0
    for choices in itertools.product(range(3), repeat=4):
        chance = Scripted(0, Sampler(1.0), choices=dict(enumerate(choices, len(PROMPT))))
        made = decode(target, draft, PROMPT, chance, max_new_tokens=4)
        assert made.tokens == choices
        guessed += sum(one.proposed for one in made.rounds)
    assert guessed


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
    flat = [(one,) * len(SITUATIONS) for one in (1.0, 2.0, 3.0)]
    costs = [(one,) * len(SITUATIONS) for one in (1.0, 1.5, 3.0)]
    for price, guesses in ((0.4, 3), (1.0, 1), (3.0, 0)):
        draft = planned(*parts, tokens=flat, seconds=costs, price=price)
        tree = draft.propose(Context.of((0, 1)), Chance(0, Sampler(0)))
        assert tree.guesses == guesses, price


def test_a_draft_that_fares_worse_than_expected_is_dropped_for_a_while():
    target = fixed_model((0.0, 0.0, 1.0), "target")
    wrong = fixed_model((0.0, 1.0, 0.0), "wrong")
    flat = [(one,) * len(SITUATIONS) for one in (1.0, 2.6)]
    costs = [(one,) * len(SITUATIONS) for one in (1.0, 2.0)]
    draft = planned(NoDraft(), ChainDraft(wrong, 2), tokens=flat, seconds=costs, price=1.0)
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
    target, model = table_model(5, 1), table_model(5, 2, name="draft")
    options = {"max_new_tokens": 40}
    draft, fresh = drawing(model, "ranked"), drawing(model, "ranked")
    first = decode(target, draft, PROMPT, Chance(1), **options)
    decode(target, draft, PROMPT[::-1], Chance(2), **options)
    again, alone = (decode(target, one, PROMPT, Chance(1), **options) for one in (draft, fresh))
    shapes = [[one.tree for one in made.rounds] for made in (first, again, alone)]
    assert shapes[0] == shapes[1] == shapes[2]
    text = OwnText.of(target, PROMPT, first.tokens, 40)
    assert [one.tree for one in replay_draft(text, draft, Chance(1)).rounds] == shapes[0]
    assert pickle.loads(pickle.dumps(draft.running)).follow(Context.of(PROMPT)) == {}


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"parts": ()}, "a part and a price above 0, got 0"),
        ({"price": 0.0}, "got 1 and 0.0"),
        ({"tokens": ()}, "5 tokens for each of 1 parts"),
        ({"seconds": ((1.0,),)}, "5 seconds for each of 1 parts"),
    ],
)
def test_bad_plans_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(planned(NoDraft()), **changed)
