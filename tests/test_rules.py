"""The rules of the verifier bench alone: exact, with bugs to catch, and their golden tokens."""

import functools

import pytest
import torch
from fakes import PROMPT, assert_refused, deviation, distance, one_round_distribution, table_model
from test_lossless_bugs import DISTINCT, DRAFTS, IID, PAIR, TOP
from test_verify import KINDS, PAIRS, T1, expected_tokens

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import ROOT, Shape, TokenTree
from specdec_lib.core.verify import look_up, reject, remaining
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.rule_bench import rules
from specdec_lib.measure.rule_bench.rules import draw_once, k_seq, least_slack, traverse
from specdec_lib.models.table import joint_distribution

RULES = {"draw_once": draw_once, "traverse": traverse, "k_seq": k_seq}
SAMPLERS = {"T=0": Sampler(0), "T=1": T1, "top-p": Sampler(0.7, top_p=0.8)}
SHAPES = {  # vocabulary, how many tokens are possible, shape
    "chain of 2": (4, None, Shape.chain(2)),
    "chain of 3": (3, 2, Shape.chain(3)),
    "two below the root": (3, None, Shape.of_widths((2, 1))),
    "three below the root": (4, None, Shape.of_widths((3,))),
    "full tree": (3, 2, Shape.full(2, 2)),
    "odd tree": (3, 2, Shape((-1, 0, 1, 0))),
}
DRAWN = [(name, kind) for name in RULES for kind in KINDS if name != "k_seq" or kind == "iid"]


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name,kind", DRAWN)
def test_a_round_keeps_the_targets_joint_distribution(name, kind, shape, sampler, unchecked):
    vocabulary, support, slots = SHAPES[shape]
    models = [table_model(vocabulary, seed, support=support, name=f"{seed}") for seed in (1, 2)]
    draft = TreeDraft(models[1], shape=slots, siblings=kind)
    length = slots.depth + 1
    found = one_round_distribution(models[0], draft, sampler, length, RULES[name])
    assert distance(found, joint_distribution(models[0], PROMPT, sampler, length)) < 1e-12


@pytest.mark.parametrize("name", RULES)
def test_rounds_composed_keep_it_too(name, unchecked):
    target, draft = table_model(3, 3), table_model(3, 4, name="draft")
    for guesser in (ChainDraft(draft, 2, siblings="iid"), IID3):
        assert deviation(target, guesser, T1, RULES[name], length=2) < 1e-12


TARGET, DRAFT = PAIR
IID3 = TreeDraft(table_model(3, 4, name="draft"), widths=(2,), siblings="iid")
CHAIN = ChainDraft(DRAFT, 2, siblings="iid")
ROW_BUGS = {name: bug for name, bug in DRAFTS.items() if "two drafts" not in name}


@pytest.mark.parametrize("draft", ROW_BUGS.values(), ids=ROW_BUGS)
def test_enumeration_catches_dishonest_rows_under_traverse(draft, unchecked):
    assert deviation(TARGET, draft, T1, traverse, length=2) > 1e-3


@pytest.mark.parametrize("name", ["duplicates merged", "drawn tokens pruned"])
def test_the_naive_rule_reads_no_row_and_so_allows_both(name, unchecked):
    """Merging and pruning by the draft alone change what is guessed, not what is drawn."""
    assert deviation(TARGET, ROW_BUGS[name], T1, draw_once, length=2) < 1e-12


def drawing_twice(tree: TokenTree, target_logits, chance: Chance) -> Verdict:
    """The bug of a draw per row: equal siblings have one each, and the longest match is kept."""
    wanted, at = chance.sampler.probs(target_logits[ROOT]), tree.root_position
    children = tree.children(ROOT)
    drawn = [chance.draw("emit", wanted, at, (rank,)) for rank in range(max(1, len(children)))]
    pairs = zip(children, drawn, strict=False)
    hits = [child for child, token in pairs if tree.tokens[child] == token]
    if not hits:
        return Verdict((), drawn[0])
    wanted = chance.sampler.probs(target_logits[hits[0]])
    return Verdict((hits[0],), chance.draw("emit", wanted, at, (hits[0], 0)))


def ratio_of_a_fresh_node(kept, *given):
    return RATIO(1.0, *given)


def share_kept(kept, *given):
    return kept, LOSE(kept, *given)[1]


def residual_not_taken(kept, wanted, *given):
    return LOSE(kept, wanted, *given)[0], wanted


def residual_of_the_whole(kept, *given):
    return LOSE(kept, *given)[0], LOSE(1.0, *given)[1]


def residual_of_one(wanted, offered, *_):
    return remaining(wanted, 0, offered)


RATIO, LOSE = rules._ratio, rules._after_failure
CHANGED = {  # the rule, what is replaced, by what, and a draft that shows it
    "share of the parent forgotten": (traverse, "_ratio", ratio_of_a_fresh_node, CHAIN),
    "share not lowered by a failure": (traverse, "_after_failure", share_kept, CHAIN),
    "residual not taken": (traverse, "_after_failure", residual_not_taken, CHAIN),
    "residual of the whole share": (traverse, "_after_failure", residual_of_the_whole, CHAIN),
    "no slack": (k_seq, "least_slack", lambda *_: 1.0, IID),
    "correction from the residual of one": (k_seq, "_unclaimed", residual_of_one, IID),
}


@pytest.mark.parametrize("rule,name,bug,draft", CHANGED.values(), ids=CHANGED)
def test_enumeration_catches_a_changed_step(rule, name, bug, draft, monkeypatch, unchecked):
    wanted = joint_distribution(TARGET, PROMPT, T1, 3)
    assert distance(one_round_distribution(TARGET, draft, T1, 3, rule), wanted) < 1e-12
    monkeypatch.setattr(rules, name, bug)
    assert distance(one_round_distribution(TARGET, draft, T1, 3, rule), wanted) > 1e-3


def test_enumeration_catches_a_draw_per_twin(unchecked):
    assert deviation(TARGET, IID, T1, draw_once, length=2) < 1e-12
    assert deviation(TARGET, IID, T1, drawing_twice, length=2) > 1e-3


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(
    "pair,chosen", [("three", (0.31, 0.507, 0.6379)), ("four", (0.2, 0.35, 0.4646))]
)
def test_acceptance_of_independent_siblings(pair, chosen, width, unchecked):
    """The naive rule's is golden; K-SEQ's is 1 − (1 − β)^k by its own formula."""
    draft_of = functools.partial(TreeDraft, widths=(width,), siblings="iid")
    assert expected_tokens(pair, draft_of, draw_once) - 1 == pytest.approx(chosen[width - 1])
    wanted, offered = (torch.tensor(one, dtype=torch.float64) for one in PAIRS[pair])
    slack = least_slack(wanted, offered, width)
    rate = float(torch.minimum(wanted / slack, offered).sum())
    found = expected_tokens(pair, draft_of, k_seq) - 1
    assert found == pytest.approx(1 - (1 - rate) ** width) and 1 <= slack <= width
    if width > 1:  # the least slack leaves nothing to spare
        assert found == pytest.approx(slack * rate, abs=1e-8)


ONE = TokenTree(0, (0,)).grown([1], [0], source="draft", scores=[1.0])
SHORT = "2 nodes need as many target rows, got 1"


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: deviation(TARGET, DISTINCT, T1, k_seq, length=2), 'use siblings="iid"'),
        (lambda: deviation(TARGET, TOP, T1, k_seq, length=2), 'use siblings="iid"'),
        *(
            (lambda rule=rule: rule(ONE, torch.zeros(1, 2), Chance(0)), SHORT)
            for rule in (*RULES.values(), look_up, reject)
        ),
    ],
)
def test_siblings_of_several_distributions_and_a_missing_target_row_are_refused(call, said):
    assert_refused(call, said)
