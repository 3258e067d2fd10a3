"""The ledger, with a clock that its parts turn: every second lies where it was spent."""

from dataclasses import dataclass

import pytest
import torch
from fakes import Clock, Linear, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.latency import latency_settings, time_breakdown
from specdec_lib.measure.latency.time_breakdown import (
    DECISIONS,
    PARTS,
    Stopwatch,
    round_parts,
    shares,
    timed_chance,
    watched,
)
from specdec_lib.measure.settings.latency import FEW

PROMPT = (1, 0, 2)


@dataclass(frozen=True)
class SlowDraft:
    """Takes a while, and then guesses one token, of its model if it has one."""

    clock: Clock
    seconds: float
    model: Linear | None = None

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        self.clock.now += self.seconds
        tree, token = TokenTree.rooted(context), 1
        if self.model is not None:
            token = chance.choose(self.model.score(context, tree)[0], len(context))
        return tree.grown([token], [0], source="slow", scores=[1.0])


def test_every_second_lies_where_it_was_spent_and_watching_is_free(clock, monkeypatch):
    """Every part takes a different time per round."""
    target, small = Linear("target", clock, 10.0), Linear("small", clock, 2.5)
    draft = MergedDraft((SlowDraft(clock, 1.0, small), SlowDraft(clock, 0.125)))

    def rule(*given):
        clock.now += 0.0625
        return look_up(*given)

    monkeypatch.setattr(time_breakdown, "look_up", rule)
    asked = (target, {"both": draft, "plain": NoDraft()}, [PROMPT, PROMPT[:2]])
    booked = round_parts(*asked, [Chance(1), Chance(2)], max_new_tokens=7, progress=False)
    found = shares(booked)
    table = found.set_index(["draft", "part", "model"]).round_seconds
    plain = {("verify", "target"): 8.0, ("KV moves", "target"): 2.0}
    plain |= {("choice and noise", ""): 0.0625}
    more = {("draft passes", "small"): 2.0, ("KV moves", "small"): 0.5}
    more |= {("tree", ""): 1.0, ("n-gram", ""): 0.125}
    for name, wanted in (("plain", plain), ("both", plain | more)):
        assert table[name][table[name] > 1e-9].to_dict() == pytest.approx(wanted)
    plainly = found[found.draft == "plain"]  # a token per round
    assert plainly.token_seconds.tolist() == pytest.approx(plainly.round_seconds.tolist())
    counts = booked[booked.draft == "both"].drop_duplicates("prompt")[["rounds", "tokens"]].sum()
    both = found[found.draft == "both"]
    assert (both.round_seconds * counts["rounds"]).tolist() == pytest.approx(
        (both.token_seconds * counts["tokens"]).tolist()
    )
    assert found.accounted.tolist() == pytest.approx([1] * len(found))
    assert found.watch_cost.tolist() == pytest.approx([0] * len(found))
    assert found.groupby("draft").share.sum().tolist() == pytest.approx([1, 1])
    lost = shares(booked[booked.part != "draft passes"])  # the control
    assert lost[lost.draft == "both"].accounted.max() < 0.95


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("name", [*FEW, "drawn"])
def test_watching_changes_nothing(ladder, prompts, name, temperature):
    """Neither choices nor, under `reject`, coins and draws."""
    sampler, watch = Sampler(temperature), Stopwatch()
    drawn = TreeDraft(ladder.draft, widths=(2, 1), siblings="distinct")
    drafts = {one.name: one.draft for one in latency_settings(ladder, sampler)}
    draft = (drafts | {"drawn": drawn})[name]
    rule = reject if name == "drawn" else look_up
    asked = (ladder.target, draft, ladder.encode(prompts[0]), Chance(3, sampler))
    plain = decode(*asked, max_new_tokens=12, rule=rule)
    *both, prompt, chance = asked
    with watched(*both, watch):
        seen = decode(*both, prompt, timed_chance(chance, watch), max_new_tokens=12, rule=rule)
    assert seen.tokens == plain.tokens
    assert [played.tree for played in seen.rounds] == [played.tree for played in plain.rounds]
    counts = [
        [(used.passes, used.rows) for played in run.rounds for used in played.usage.values()]
        for run in (plain, seen)
    ]
    assert counts[0] == counts[1]
    parts = {part for part, _ in watch.lap()}
    assert parts == set(PARTS) - (set() if "cascade" in name else {"n-gram"})


def test_every_public_decision_of_chance_is_timed_and_the_same():
    watch, plain = Stopwatch(), Chance(0, Sampler(1.0))
    public = {name for name, one in vars(Chance).items() if callable(one) and name[0] != "_"}
    assert public - {"inner"} == set(DECISIONS)
    timed = timed_chance(plain, watch).inner("part", (1,))
    logits = torch.arange(5.0)
    assert timed.choose(logits, 3) == plain.inner("part", (1,)).choose(logits, 3)
    assert all(getattr(type(timed), name) is not vars(Chance)[name] for name in DECISIONS)
    assert ("choice and noise", "") in watch.lap()


def test_what_was_watched_is_what_it_was_and_others_of_its_class_are_never_touched(clock):
    """It is so after an error too."""
    target, small, other = (Linear(name, clock, 1.0) for name in ("target", "small", "other"))
    draft = SlowDraft(clock, 1.0, small)
    parts = [(part, type(part)) for part in (target, small, draft)]
    with pytest.raises(ZeroDivisionError), watched(target, draft, Stopwatch()):
        assert all(type(part) is not kind for part, kind in parts)
        assert type(other) is Linear
        raise ZeroDivisionError
    assert all(type(part) is kind for part, kind in parts)


def test_models_that_count_nothing_are_all_passes():
    staged = StagedTree(
        TreeDraft(table_model(5, 1, name="small"), widths=(2, 1)), SlowDraft(Clock(), 1.0)
    )
    asked = (table_model(5, 0), {"staged": staged}, [PROMPT], [Chance(0)])
    table = round_parts(*asked, max_new_tokens=3, progress=False)
    assert {"verify", "draft passes", "n-gram"} <= set(table.part)
    assert "KV moves" not in set(table.part)
