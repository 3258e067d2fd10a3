"""The ledger, with a clock that its parts turn: every second lies where it was spent."""

from dataclasses import dataclass
from functools import wraps

import pytest
import torch
from fakes import Clock, Linear, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.latency import ledger
from specdec_lib.measure.latency.ledger import (
    DECISIONS,
    PARTS,
    Stopwatch,
    round_parts,
    shares,
    watched,
)

PROMPT = (1, 0, 2)


@dataclass(frozen=True)
class SlowDraft:
    """Proposes one token of its model, and takes a while itself, before and after."""

    model: Linear
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
def booked(clock, monkeypatch):
    """A ledger in which every part takes a different time per round."""
    target, small = Linear("target", clock, 10.0), Linear("small", clock, 2.5)
    draft = MergedDraft((SlowDraft(small, clock, 1.0), SlowGuess(clock, 0.125)))
    drafts, chances = {"both": draft, "plain": NoDraft()}, [Chance(1), Chance(2)]

    @wraps(look_up)
    def rule(*given):
        clock.now += 0.0625
        return look_up(*given)

    monkeypatch.setattr(ledger, "look_up", rule)
    settings = {"max_new_tokens": 7, "progress": False}
    return round_parts(target, drafts, [PROMPT, PROMPT[:2]], chances, **settings)


def test_every_second_lies_where_it_was_spent_and_watching_costs_nothing_by_this_clock(booked):
    found = shares(booked)
    table = found.set_index(["draft", "part", "model"]).round_seconds
    plain = {("verify", "target"): 8.0, ("KV moves", "target"): 2.0}
    plain |= {("choice and noise", ""): 0.0625}
    more = {("draft passes", "small"): 2.0, ("KV moves", "small"): 0.5}
    more |= {("tree", ""): 1.0, ("n-gram", ""): 0.125}
    for name, wanted in (("plain", plain), ("both", plain | more)):
        assert table[name][table[name] > 1e-9].to_dict() == pytest.approx(wanted)
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
        "drawn": TreeDraft(ladder.draft, widths=(2, 1), siblings="distinct"),
        "relay": Relay((ChainDraft(ladder.draft, 2), MaxGram(None, 4)), (2, 4)),
    }


WATCHED = [
    (name, look_up, heat) for name in ("chain", "staged", "cascade", "relay") for heat in (0, 1)
]


@pytest.mark.parametrize("name,rule,temperature", [*WATCHED, ("drawn", reject, 1)])
def test_watching_changes_nothing(ladder, prompts, name, rule, temperature):
    """Neither choices nor, under `reject`, coins and draws."""
    chance, prompt = Chance(3, Sampler(temperature)), ladder.encode(prompts[0])
    asked, watch = (ladder.target, drafts(ladder)[name], prompt, chance), Stopwatch()
    plain = decode(*asked, max_new_tokens=12, rule=rule)
    with watched(*asked[:2], watch):
        seen = decode(*asked, max_new_tokens=12, rule=rule)
    assert seen.tokens == plain.tokens
    assert [played.tree for played in seen.rounds] == [played.tree for played in plain.rounds]
    counts = [
        [(used.passes, used.rows) for played in run.rounds for used in played.usage.values()]
        for run in (plain, seen)
    ]
    assert counts[0] == counts[1]
    parts = {part for part, _ in watch.lap()}
    assert parts == set(PARTS) - ({"n-gram"} if name in ("chain", "drawn") else set())


def test_every_public_decision_of_chance_is_timed_and_only_meanwhile():
    watch, before = Stopwatch(), vars(Chance).copy()
    public = {name for name, one in before.items() if callable(one) and name[0] != "_"}
    assert public - {"inner"} == set(DECISIONS)
    with watched(table_model(5, 0), NoDraft(), watch):
        Chance(0, Sampler(1.0)).inner("part", (1,)).choose(torch.arange(5.0), 3)
        assert all(vars(Chance)[name] is not before[name] for name in DECISIONS)
    assert ("choice and noise", "") in watch.lap() and vars(Chance) == before


def test_models_that_count_nothing_are_all_passes():
    staged = StagedTree(
        TreeDraft(table_model(5, 1, name="small"), widths=(2, 1)), SlowGuess(Clock(), 1.0)
    )
    asked = (table_model(5, 0), {"staged": staged}, [PROMPT], [Chance(0)])
    table = round_parts(*asked, max_new_tokens=3, progress=False)
    assert {"verify", "draft passes", "n-gram"} <= set(table.part)
    assert "KV moves" not in set(table.part)
