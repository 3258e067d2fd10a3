"""The steps of a round are the loop's own: every number told is the one that decided."""

from dataclasses import dataclass, field

import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.models.table import TableModel
from specdec_lib.show.steps import steps_of

TARGET = TableModel.fixed((0.3, 0.25, 0.2, 0.15, 0.1), "target")
DRAFT = TableModel.fixed((0.1, 0.3, 0.2, 0.25, 0.15), "draft")
CONTEXT = Context.of((0, 1, 2))
SAMPLERS = (Sampler(0.0), Sampler(1.0), Sampler(0.7, top_k=3))
CASES = ((look_up, "ranked"), (reject, "distinct"))


def told(rule, siblings, chance):
    draft = TreeDraft(DRAFT, budget=6, depth=3, siblings=siblings)
    steps = steps_of(TARGET, draft, CONTEXT, chance, rule=rule, text="abcde".__getitem__)
    return draft.propose(CONTEXT, chance), steps


def of_kind(steps, *kinds):
    return [one for one in steps if one.kind in kinds]


def numbers(steps, *kinds):
    return [row for one in of_kind(steps, *kinds) for row in one.numbers]


@dataclass(frozen=True)
class Written(Chance):
    """A chance that writes down each coin it threw and each token it chose or drew."""

    coins: list = field(default_factory=list, compare=False)
    choices: list = field(default_factory=list, compare=False)

    def coin(self, probability, root_position, slots):
        self.coins.append((probability, heads := super().coin(probability, root_position, slots)))
        return heads

    def choose(self, logits, position):
        self.choices.append((position, token := super().choose(logits, position)))
        return token


def agrees(rule, tree, steps, written):
    """Whether the steps that were told are the verdict under this chance, number by number."""
    verdict, end = rule(tree, TARGET.score(CONTEXT, tree), written), steps[-1]
    if end.path != verdict.path or end.numbers[-1]["token"] != verdict.bonus:
        return False
    thrown = [one.numbers[0] for one in of_kind(steps, "coin")]
    coins = [(one["probability"], one["uniform"] < one["probability"]) for one in thrown]
    real = [(min(1.0, probability), heads) for probability, heads in written.coins]
    told_of = (one.numbers for one in of_kind(steps, "choose"))
    chosen = [max(rows, key=lambda row: row["sum"])["token"] for rows in told_of]
    return coins == real and chosen == [token for _, token in written.choices]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("rule, siblings", CASES)
def test_every_number_is_the_rules_own_and_another_seeds_is_not(rule, siblings, sampler, unchecked):
    caught = 0
    for seed in range(80):
        tree, steps = told(rule, siblings, Chance(seed, sampler))
        assert agrees(rule, tree, steps, Written(seed, sampler))
        caught += not agrees(rule, tree, steps, Written(seed + 1000, sampler))
    assert caught > 8 or not sampler.temperature, "the control"


def test_noise_is_the_positions_own_a_sum_is_a_sum_and_the_largest_comes_first():
    tree, steps = told(look_up, "ranked", Chance(3, Sampler(1.0)))
    sums = {row["node"]: row["sum"] for row in numbers(steps, "propose")}
    assert len(sums) == 6 and of_kind(steps, "choose")
    for one in of_kind(steps, "choose", "propose"):
        for row in one.numbers:
            assert row["sum"] == row["log_probability"] + row["noise"]
            place = one.tree.root_position + len(one.path) + 1
            place = one.tree.position(row["node"]) if one.kind == "propose" else place
            [noise] = Chance(3, Sampler(1.0)).noise(place, [row["token"]])
            assert row["noise"] == pytest.approx(noise, abs=1e-12)
    for node in range(len(tree)):
        own = [sums[child] for child in tree.children(node)]
        assert own == sorted(own, reverse=True)


def test_drawn_numbers_fall_on_their_tokens_parts_and_what_is_left_is_without_what_was_offered():
    rejected = []
    for seed in range(40):
        _, steps = told(reject, "distinct", Chance(seed, Sampler(1.0)))
        drawn = [row for row in numbers(steps, "draw") if row["chosen"]]
        assert len(guesses := numbers(steps, "propose")) == 6 and len(drawn) == 1
        assert all(row["low"] <= row["uniform"] < row["high"] for row in (*guesses, *drawn))
        rejected += [one.numbers for one in of_kind(steps, "coin") if not one.numbers[0]["kept"]]
    assert len(rejected) > 10
    for rows in rejected:
        over = {row["token"]: max(0.0, row["wanted"] - row["offered"]) for row in rows}
        left = {token: value / sum(over.values()) for token, value in over.items()}
        assert {row["token"]: row["left"] for row in rows} == pytest.approx(left, abs=1e-6)


def test_the_steps_come_in_order_and_the_tree_grows_by_levels():
    tree, steps = told(look_up, "ranked", Chance(2, Sampler(1.0)))
    kinds, depth = [one.kind for one in steps], max(tree.depths)
    assert kinds[: depth + 2] == ["context", *["propose"] * depth, "score"] and kinds[-1] == "emit"
    assert [max(one.tree.depths) for one in steps[: depth + 1]] == list(range(depth + 1))
    assert steps[depth].tree.guesses == tree.guesses == len(numbers(steps, "propose"))
