"""The steps of a round are the loop's own: every number told is the one that decided."""

from dataclasses import dataclass, field, replace

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade import Reviewed
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import TableModel
from specdec_lib.show.steps import steps_of

TARGET = TableModel.fixed((0.3, 0.25, 0.2, 0.15, 0.1), "target")
DRAFT = TableModel.fixed((0.1, 0.3, 0.2, 0.25, 0.15), "draft")
CONTEXT = Context.of((0, 1, 2))
SAMPLERS = (Sampler(0.0), Sampler(1.0), Sampler(0.7, top_k=3))
SIBLINGS = {look_up: ("ranked", "top"), reject: ("iid", "distinct", "top")}
CASES = [
    (rule, siblings, sampler)
    for rule, kinds in SIBLINGS.items()
    for siblings in kinds
    for sampler in SAMPLERS
]


def text(token: int) -> str:
    return "abcde"[token]


def told(rule, siblings, chance, draft=None):
    draft = draft or TreeDraft(DRAFT, budget=6, depth=3, siblings=siblings)
    return draft.propose(CONTEXT, chance), steps_of(
        TARGET, draft, CONTEXT, chance, rule=rule, text=text
    )


@dataclass(frozen=True)
class Written(Chance):
    """A chance that writes down each coin it threw and each token it chose or drew."""

    coins: list = field(default_factory=list, compare=False)
    choices: list = field(default_factory=list, compare=False)

    def coin(self, probability, committed, slots):
        self.coins.append((probability, heads := super().coin(probability, committed, slots)))
        return heads

    def choose(self, logits, position):
        self.choices.append((position, token := super().choose(logits, position)))
        return token


def agrees(rule, siblings, sampler, told_seed, real_seed):
    """Whether the steps told for one seed are the verdict of another, number by number."""
    tree, steps = told(rule, siblings, Chance(told_seed, sampler))
    written = Written(real_seed, sampler)
    verdict = rule(tree, TARGET.score(CONTEXT, tree), written)
    end = steps[-1]
    if end.path != verdict.path or end.numbers[-1]["token"] != verdict.bonus:
        return False
    coins = [
        (one.numbers[0]["probability"], one.numbers[0]["uniform"] < one.numbers[0]["probability"])
        for one in steps
        if one.kind == "coin"
    ]
    real = [(min(1.0, probability), heads) for probability, heads in written.coins]
    chosen = [
        max(one.numbers, key=lambda row: row["sum"])["token"]
        for one in steps
        if one.kind == "choose"
    ]
    return coins == real and chosen == [token for _, token in written.choices]


@pytest.mark.parametrize("rule, siblings, sampler", CASES)
def test_every_number_is_the_one_that_the_rule_used(rule, siblings, sampler, unchecked):
    assert all(agrees(rule, siblings, sampler, seed, seed) for seed in range(150))


@pytest.mark.parametrize(
    "rule, siblings, sampler", [case for case in CASES if case[2].temperature > 0]
)
def test_another_seeds_numbers_are_caught(rule, siblings, sampler, unchecked):
    assert sum(not agrees(rule, siblings, sampler, seed, seed + 1000) for seed in range(150)) > 15


def test_noise_is_the_positions_own_and_the_sum_is_a_sum():
    _, steps = told(look_up, "ranked", Chance(3, Sampler(1.0)))
    rows = [(one, row) for one in steps if one.kind in ("choose", "propose") for row in one.numbers]
    assert rows and all(row["sum"] == row["log_probability"] + row["noise"] for _, row in rows)
    for one, row in rows:
        position = (
            one.tree.position(row["node"])
            if one.kind == "propose"
            else one.tree.root_position + len(one.path) + 1
        )
        assert row["noise"] == pytest.approx(
            Chance(3, Sampler(1.0)).noise(position, [row["token"]])[0], abs=1e-12
        )


def test_the_best_guess_of_each_node_is_the_draft_s_largest_sum():
    tree, steps = told(look_up, "ranked", Chance(8, Sampler(1.0)))
    rows = {
        row["node"]: row["sum"] for one in steps if one.kind == "propose" for row in one.numbers
    }
    for node in range(len(tree)):
        sums = [rows[child] for child in tree.children(node)]
        assert sums == sorted(sums, reverse=True)


@pytest.mark.parametrize("siblings", ["iid", "distinct"])
def test_each_drawn_number_falls_on_its_tokens_part(siblings):
    for seed in range(40):
        _, steps = told(reject, siblings, Chance(seed, Sampler(1.0)))
        guesses = [row for one in steps if one.kind == "propose" for row in one.numbers]
        drawn = [row for one in steps if one.kind == "draw" for row in one.numbers if row["chosen"]]
        assert len(guesses) == 6 and len(drawn) == 1
        assert all(row["low"] <= row["uniform"] < row["high"] for row in (*guesses, *drawn))


def test_what_is_left_is_a_law_without_what_was_offered():
    steps = [
        one
        for seed in range(30)
        for one in told(reject, "iid", Chance(seed, Sampler(1.0)))[1]
        if one.kind == "coin"
    ]
    rejected = [one for one in steps if not one.numbers[0]["kept"]]
    assert rejected
    for one in rejected:
        over = {row["token"]: max(0.0, row["wanted"] - row["offered"]) for row in one.numbers}
        assert {row["token"]: row["left"] for row in one.numbers} == pytest.approx(
            {t: v / sum(over.values()) for t, v in over.items()}, abs=1e-6
        )


def test_the_steps_come_in_order_and_the_tree_grows_by_levels():
    tree, steps = told(look_up, "ranked", Chance(1, Sampler(0.0)))
    kinds = [one.kind for one in steps]
    depth = max(tree.depths)
    assert kinds[: depth + 2] == ["context", *["propose"] * depth, "score"] and kinds[-1] == "emit"
    assert [max(one.tree.depths) for one in steps[: depth + 1]] == list(range(depth + 1))
    assert (
        steps[depth].tree.guesses
        == tree.guesses
        == sum(len(one.numbers) for one in steps if one.kind == "propose")
    )


def test_drafts_of_other_kinds_are_told_too():
    staged = StagedTree(TreeDraft(DRAFT, widths=(2, 1)), ChainDraft(DRAFT, 2))
    for draft in (ChainDraft(DRAFT, 3), staged, NoDraft()):
        tree, steps = told(look_up, "ranked", Chance(2, Sampler(1.0)), draft)
        verdict = look_up(tree, TARGET.score(CONTEXT, tree), Chance(2, Sampler(1.0)))
        assert (steps[-1].path, steps[-1].numbers[-1]["token"]) == (verdict.path, verdict.bonus)


@dataclass(frozen=True)
class Scouted:
    """A draft of one's own that looks like a staged one, and proposes another's tree."""

    draft: TreeDraft
    scout: TreeDraft

    def propose(self, context, chance):
        return self.scout.propose(context, chance)


TREE = TreeDraft(DRAFT, budget=4)


@pytest.mark.parametrize(
    "draft",
    [
        Reviewed(TARGET, ChainDraft(DRAFT, 2)),
        Scouted(TREE, TREE),
        Scouted(TREE, TreeDraft(TARGET, budget=4)),
    ],
)
def test_the_numbers_of_a_draft_inside_another_are_not_told_as_what_decided(draft):
    _, steps = told(look_up, "ranked", Chance(2, Sampler(1.0)), draft)
    proposed = [one for one in steps if one.kind == "propose"]
    assert proposed and all(
        one.words.endswith("; it tells no numbers of what decided.") for one in proposed
    )
    assert not any({"sum", "uniform"} & set(row) for one in proposed for row in one.numbers)


@pytest.mark.parametrize("siblings", ["ranked", "distinct"])
def test_a_staged_drafts_numbers_are_those_of_the_draft_inside(siblings):
    inner = TreeDraft(DRAFT, budget=5, siblings=siblings)
    rule = look_up if siblings == "ranked" else reject
    for seed in range(20):
        one, two = (
            [
                (step.words, step.numbers)
                for step in told(rule, siblings, Chance(seed, Sampler(1.0)), draft)[1]
                if step.kind == "propose"
            ]
            for draft in (inner, StagedTree(inner, ChainDraft(TARGET, 2)))
        )
        assert one == two


def test_another_rule_and_a_context_that_does_not_fit_are_refused():
    given = (NoDraft(), CONTEXT, Chance(0))
    with pytest.raises(ValueError, match="look_up and reject"):
        steps_of(TARGET, *given, rule=lambda tree, logits, chance: None, text=text)
    short = replace(TARGET, max_positions=1)
    with pytest.raises(ValueError, match="tokens, the target reads at most 1"):
        steps_of(short, *given, rule=look_up, text=text)


def test_chance_tells_its_numbers():
    chance = Chance(4, Sampler(1.0))
    assert Chance(4).noise(7, [0, 3]) == [0.0, 0.0]
    number = chance.uniform("coin", 3, (0, 1))
    assert (
        0 <= number < 1
        and chance.coin(number + 1e-9, 3, (0, 1))
        and not chance.coin(number, 3, (0, 1))
    )
    with pytest.raises(ValueError, match='"coin", a "sibling" or to "emit"'):
        chance.uniform("dice", 3, ())
