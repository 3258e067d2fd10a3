"""The steps of a round are the loop's own: every number told is the one that decided."""

from dataclasses import dataclass, field, replace

import pandas as pd
import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import rounds
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.cascade.matrix import from_matrix
from specdec_lib.drafts.cascade.reviewed import Reviewed
from specdec_lib.drafts.combined import MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import TableModel
from specdec_lib.show import figures, tables
from specdec_lib.show.steps import steps_of

TARGET = TableModel.fixed((0.3, 0.25, 0.2, 0.15, 0.1), "target")
DRAFT = TableModel.fixed((0.1, 0.3, 0.2, 0.25, 0.15), "draft")
CONTEXT = Context.of((0, 1, 2))
SAMPLERS = (Sampler(0.0), Sampler(1.0), Sampler(0.7, top_k=3))
SIBLINGS = {look_up: ("ranked", "top"), reject: ("iid", "distinct", "top")}
CASES = [(rule, siblings) for rule, kinds in SIBLINGS.items() for siblings in kinds]


@dataclass(frozen=True)
class Echo:
    """A draft of one's own, as in the README: it has no model."""

    length: int = 3

    def propose(self, context, chance):
        guesses = context.tokens[: self.length]
        scores = [0.5 ** (depth + 1) for depth in range(len(guesses))]
        tree = TokenTree.rooted(context)
        return tree.grown(guesses, range(len(guesses)), source="echo", scores=scores)


def told(rule, siblings, chance, draft=None):
    draft = draft or TreeDraft(DRAFT, budget=6, depth=3, siblings=siblings)
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


def test_drawn_numbers_fall_on_their_tokens_part_of_what_is_left():
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


@pytest.mark.parametrize("rule", [look_up, reject])
@pytest.mark.parametrize(
    "draft",
    [
        Echo(),
        NoDraft(),
        Reviewed(TARGET, ChainDraft(DRAFT, 2)),
        MergedDraft((TreeDraft(DRAFT, budget=4, depth=2), Echo())),
        from_matrix((DRAFT, MaxGram(None, 3)), ((1, 2), (0, 2))),
    ],
    ids=lambda draft: type(draft).__name__,
)
def test_a_draft_of_ones_own_and_a_cascade_are_told_without_numbers_of_their_guesses(draft, rule):
    """Their guesses have scores alone, the walk has all its numbers, and every step is drawn."""
    for seed in range(10):
        tree, steps = told(rule, "", Chance(seed, Sampler(1.0)), draft)
        assert agrees(rule, tree, steps, Written(seed, Sampler(1.0)))
        proposed = of_kind(steps, "propose")
        assert len(proposed) == max(tree.depths)
        assert all(one.words.endswith("; it tells no numbers of what decided.") for one in proposed)
        assert not any({"sum", "uniform"} & set(row) for row in numbers(proposed, "propose"))
        for one in of_kind(steps, "propose", "choose", "coin", "draw"):
            assert figures.step(pd.DataFrame(list(one.numbers)), title="").data


@pytest.mark.parametrize("siblings, rule", [("ranked", look_up), ("distinct", reject)])
def test_a_staged_drafts_numbers_are_those_of_the_draft_inside(siblings, rule, unchecked):
    inner = TreeDraft(DRAFT, budget=5, siblings=siblings)
    drafts = inner, StagedTree(inner, ChainDraft(TARGET, 2))
    for seed in range(20):
        both = (told(rule, siblings, Chance(seed, Sampler(1.0)), one)[1] for one in drafts)
        one, two = ([(s.words, s.numbers) for s in of_kind(steps, "propose")] for steps in both)
        assert one == two != []


def test_a_chain_is_told_with_its_numbers():
    _, steps = told(look_up, "ranked", Chance(1, Sampler(1.0)), ChainDraft(DRAFT, 3))
    assert len(of_kind(steps, "propose")) == 3
    assert all("sum" in row for row in numbers(steps, "propose"))


def test_another_rule_and_what_decode_refuses_are_refused():
    given = (NoDraft(), CONTEXT, Chance(0))
    with pytest.raises(ValueError, match="told for look_up and reject, got strange"):
        steps_of(TARGET, *given, rule=strange, text="abcde".__getitem__)
    with pytest.raises(ValueError, match="tokens, the target reads at most 1"):
        steps_of(replace(TARGET, max_positions=1), *given, rule=look_up, text="abcde".__getitem__)
    wide = TreeDraft(TableModel.fixed((0.5, 0.5), "narrow"), budget=2)
    with pytest.raises(ValueError, match="share the target's vocabulary"):
        steps_of(TARGET, wide, CONTEXT, Chance(0), rule=look_up, text="abcde".__getitem__)


def strange(tree, logits, chance, *, trace=None):
    raise AssertionError("never asked")


def test_a_step_without_what_decided_is_refused_with_what_is_needed():
    for wrong in pd.DataFrame({"text": ["a"], "noise": [1.0]}), pd.DataFrame({"text": []}):
        with pytest.raises(ValueError, match="log_probability noise sum"):
            figures.step(wrong, title="")


def test_the_table_of_a_walk_has_no_runner_up_where_one_token_alone_is_possible():
    chance = Chance(4, Sampler(1.0, top_k=1))
    tree = TreeDraft(DRAFT, budget=6, depth=3).propose(CONTEXT, chance)
    logits = TARGET.score(CONTEXT, tree)
    walk = tables.walk(tree, logits, chance, text="abcde".__getitem__)
    assert (walk.candidate == tables.CANDIDATES[0]).all() and (walk["log-probability"] == 0).all()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_table_of_a_walk_has_the_sums_that_decide(sampler):
    """The choice's log-probability and noise together lie above the runner-up's."""
    chance = Chance(4, sampler)
    tree = TreeDraft(DRAFT, budget=6, depth=3).propose(CONTEXT, chance)
    logits = TARGET.score(CONTEXT, tree)
    walk = tables.walk(tree, logits, chance, text="abcde".__getitem__)
    verdict = look_up(tree, logits, chance)
    chosen, second = (walk[walk.candidate == name] for name in tables.CANDIDATES)
    emitted = [*(tree.tokens[node] for node in verdict.path), verdict.bonus]
    assert ["abcde".index(token) for token in chosen.token] == emitted
    assert (chosen["sum"].to_numpy() > second["sum"].to_numpy()).all()
    for row in walk.to_dict("records"):
        token = "abcde".index(row["token"])
        warped = (
            sampler.probs(logits[0]).log() if sampler.temperature else logits[0].log_softmax(-1)
        )
        assert row["log-probability"] == pytest.approx(float(warped[token]), abs=1e-5)
        assert row["log-probability"] > -20
        assert row["noise"] == chance.noise(row["position"], [token])[0]
        assert row["sum"] == row["log-probability"] + row["noise"]


@pytest.mark.parametrize("matrix", [((3, 4), (0, 2)), ((2, 0), (0, 0)), ((1, 2), (0, 3))])
def test_the_brackets_of_a_reviewed_proposal_span_every_guess_once(matrix):
    """Upper ones are what the target was handed, lower ones what each review kept and added."""
    draft = replace(DRAFT, name="draft")
    nested = from_matrix((draft, MaxGram(None)), matrix)
    context = Context.of((0, 1, 2, 1, 3, 0, 1))
    played, _ = next(rounds(TARGET, nested, context, Chance(4, Sampler(0.0)), max_new_tokens=12))
    guessed, brackets = tables.reviewed_proposal(
        played, matrix, text="abcde".__getitem__, reviewer="draft"
    )
    assert len(guessed) == played.proposed and set(guessed.verdict) <= {"✓", "✗"}
    assert guessed.verdict.eq("✓").sum() == played.accepted
    for level in (0, 1):
        own = brackets[brackets.level == level]
        covered = [at for one in own.itertuples() for at in range(one.first, one.last + 1)]
        assert covered == list(range(len(covered)))
        assert len(covered) == (len(guessed) if level == 0 else brackets["last"][0] + 1)
    reviews = brackets[brackets.level == 1]
    kept = [int(said.removesuffix(" + 1")) for said in reviews.said]
    assert kept == (reviews["last"] - reviews["first"]).tolist()
    assert (guessed.whose[reviews["last"]] == "draft").all()


def test_a_proposal_without_reviews_or_of_other_drafters_has_no_brackets():
    context = Context.of((0, 1, 2, 1, 3, 0, 1))
    copies = from_matrix((replace(DRAFT, name="draft"), MaxGram(None)), ((0, 3), (0, 0)))
    played, _ = next(rounds(TARGET, copies, context, Chance(4, Sampler(0.0)), max_new_tokens=12))
    options = {"text": "abcde".__getitem__, "reviewer": "draft"}
    with pytest.raises(ValueError, match="a token of draft; guesses here are of prompt"):
        tables.reviewed_proposal(played, ((0, 3), (0, 0)), **options)
    with pytest.raises(ValueError, match="two rows of two entries"):
        tables.reviewed_proposal(played, ((1, 0, 3), (0, 0, 0), (0, 0, 0)), **options)
