"""The ledger, with a clock that its parts turn: every second lies where it was spent."""

from dataclasses import dataclass, field, replace

import pytest
import torch
from fakes import Clock, Table, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode, models_in
from specdec_lib.core.protocols import Usage
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.latency.ledger import round_parts, shares
from specdec_lib.measure.latency.stopwatch import (
    CHOOSING,
    PARTS,
    Stopwatch,
    TimedChance,
    timed_chance,
    timed_parts,
)

PROMPT = (1, 0, 2)


@dataclass
class Slow(Table):
    """A model that takes a while for a pass, and more around it."""

    name: str
    clock: Clock
    pass_seconds: float
    around_seconds: float = 0.0
    vocabulary: int = 5
    max_positions: int = 1000
    usage: Usage = field(default_factory=Usage)

    def score(self, context, tree):
        self.clock.now += self.pass_seconds + self.around_seconds
        self.usage += Usage(1, len(tree), self.pass_seconds)
        return table_model(5, seed=len(self.name)).score(context, tree)


@dataclass(frozen=True)
class SlowDraft:
    """Proposes one token of its model, and takes a while itself, before and after."""

    model: Slow
    clock: Clock
    seconds: float

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        self.clock.now += self.seconds / 2
        tree = TokenTree.rooted(context)
        logits = self.model.score(context, tree)
        self.clock.now += self.seconds / 2
        chosen = chance.choose(logits[0], len(context))
        return tree.grown([chosen], [0], source="draft", scores=[1.0])


@dataclass(frozen=True)
class SlowGuess:
    """Guesses without a model, and takes a while."""

    clock: Clock
    seconds: float

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        self.clock.now += self.seconds
        return TokenTree.rooted(context).grown([1], [0], source="guess", scores=[1.0])


@pytest.fixture
def booked(clock):
    """A ledger in which every part takes a different time per round."""
    target, small = Slow("target", clock, 8.0, 0.5), Slow("small", clock, 2.0, 0.25)
    draft = MergedDraft((SlowDraft(small, clock, 1.0), SlowGuess(clock, 0.125)))
    drafts, chances = {"both": draft, "plain": NoDraft()}, [Chance(1), Chance(2)]

    def rule(*given):
        clock.now += 0.0625
        return look_up(*given)

    settings = {"max_new_tokens": 7, "rule": rule, "progress": False}
    return round_parts(target, drafts, [PROMPT, PROMPT[:2]], chances, **settings)


def test_every_second_lies_where_it_was_spent(booked):
    table = shares(booked).set_index(["draft", "part", "model"]).round_seconds
    plain = {("verify", "target"): 8.0, ("KV moves", "target"): 0.5}
    plain |= {("choice and noise", ""): 0.0625}
    more = {("draft passes", "small"): 2.0, ("KV moves", "small"): 0.25}
    more |= {("tree", ""): 1.0, ("n-gram", ""): 0.125}
    for name, wanted in (("plain", plain), ("both", plain | more)):
        assert {part: seconds for part, seconds in table[name].items() if seconds} == wanted


def test_the_parts_sum_to_the_wall_time_and_watching_costs_nothing_by_this_clock(booked):
    found = shares(booked)
    assert found.accounted.tolist() == pytest.approx([1] * len(found))
    assert found.watch_cost.tolist() == pytest.approx([0] * len(found))
    assert found.groupby("draft").share.sum().tolist() == pytest.approx([1, 1])
    lost = shares(booked[booked.part != "draft passes"])  # the control
    assert lost[lost.draft == "both"].accounted.max() < 0.95


def drafts(ladder):
    scout = MergedDraft((MaxGram(None, 4), MaxGram(ladder.katz.bigrams(), 3)))
    drafters = ladder.middle, ladder.draft, MaxGram(None, 4)
    return {
        "chain": ChainDraft(ladder.draft, 3),
        "staged": StagedTree(TreeDraft(ladder.draft, budget=6, depth=3), scout),
        "cascade": from_matrix(drafters, ((1, 1, 2), (0, 1, 2), (0, 0, 2))),
        "relay": Relay((ChainDraft(ladder.draft, 2), MaxGram(None, 4)), (2, 4)),
    }


def watched(ladder, draft, prompt, chance, **limits):
    """The same generation without the stopwatch and with it, and the stopwatch."""
    watch, rule = Stopwatch(), limits.pop("rule", look_up)
    plain = decode(ladder.target, draft, prompt, chance, rule=rule, **limits)
    parts = (*timed_parts(ladder.target, draft, watch), prompt, timed_chance(chance, watch))
    return plain, decode(*parts, rule=watch.timed(rule, CHOOSING), **limits), watch


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", ["chain", "staged", "cascade", "relay"])
def test_watching_changes_nothing(ladder, prompts, name, temperature):
    chance, prompt = Chance(3, Sampler(temperature)), ladder.encode(prompts[0])
    draft = drafts(ladder)[name]
    plain, seen, watch = watched(ladder, draft, prompt, chance, max_new_tokens=12)
    assert seen.tokens == plain.tokens
    assert [played.tree for played in seen.rounds] == [played.tree for played in plain.rounds]
    counts = [
        [(used.passes, used.rows) for played in run.rounds for used in played.usage.values()]
        for run in (plain, seen)
    ]
    assert counts[0] == counts[1]
    parts = {part for part, _ in watch.lap()}
    assert parts == set(PARTS) - ({"n-gram"} if name == "chain" else set())


def test_watching_keeps_coins_and_draws(ladder, prompts):
    draft = TreeDraft(ladder.draft, widths=(2, 1), siblings="distinct")
    run = (ladder, draft, ladder.encode(prompts[1]), Chance(4, Sampler(1.0)))
    plain, seen, _ = watched(*run, max_new_tokens=10, rule=reject)
    assert seen.tokens == plain.tokens


def test_every_public_decision_of_chance_is_timed():
    watch, chance = Stopwatch(), Chance(0, Sampler(1.0))
    timed, logits = timed_chance(chance, watch).inner("part", (1,)), torch.arange(5.0)
    assert timed.choose(logits, 3) == chance.choose(logits, 3)
    assert timed.nesting == (("part", (1,)),)
    assert ("choice and noise", "") in watch.lap()
    public = {name for name, one in vars(Chance).items() if callable(one) and name[0] != "_"}
    assert {"choose", "rank", "coin", "draw"} <= public - {"inner"} <= set(vars(TimedChance))


def test_one_model_in_two_places_is_watched_once(ladder):
    draft = MergedDraft((ChainDraft(ladder.draft, 2), ChainDraft(ladder.draft, 3)))
    target, seen = timed_parts(ladder.target, draft, Stopwatch())
    assert list(models_in(target, seen)) == ["target", "draft"]
    itself = ChainDraft(ladder.target, 2)
    target, seen = timed_parts(ladder.target, itself, Stopwatch())
    assert models_in(target, seen) == {"target": target}


def test_what_cannot_be_booked_is_named():
    with pytest.raises(ValueError, match="got 0, 1 and 1"):
        round_parts(table_model(5, 0), {}, [PROMPT], [Chance(0)])


def test_a_target_that_counts_nothing_is_all_passes():
    asked = (table_model(5, 0), {"plain": NoDraft()}, [PROMPT], [Chance(0)])
    table = round_parts(*asked, max_new_tokens=3, progress=False)
    assert set(table.part) >= {"verify"} and "KV moves" not in set(table.part)
    assert set(table["rounds"]) == {3}


@pytest.mark.parametrize(
    "scout", [NoDraft(), SlowGuess(Clock(), 1.0), ChainDraft(table_model(5, 2), 2)]
)
def test_a_staged_tree_over_a_model_that_counts_nothing_is_timed(scout):
    staged, context = StagedTree(TreeDraft(table_model(5, 1), widths=(2, 1)), scout), (1, 0, 2)
    watch = Stopwatch()
    _, seen = timed_parts(table_model(5, 0), staged, watch)
    tree = seen.propose(Context.of(context), Chance(0))
    assert tree == staged.propose(Context.of(context), Chance(0)) and tree.guesses == 4
    assert ("n-gram", "") in watch.lap()


def test_a_draft_that_cannot_be_made_anew_is_timed_whole():
    class Plain:
        def propose(self, context, chance):
            return TokenTree.rooted(context)

    _, seen = timed_parts(table_model(5, 0), Plain(), Stopwatch())
    assert isinstance(seen.draft, Plain) and replace(seen).part == ("tree", "")
