"""The bounds of the verifier bench, against golden values and linear programmes, and its counts."""

import itertools
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest
from fakes import HERE, PROMPT, fixed_model, table_model
from scipy import optimize
from test_verify import OPTIMAL, PAIRS, T1, expected_tokens

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.verify import reject
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.rule_bench import summarise_rules, verify_prompt, verifying
from specdec_lib.measure.rule_bench.rules import draw_once, traverse
from specdec_lib.measure.rule_bench.verifying import RULES
from specdec_lib.models.table import joint_distribution
from specdec_lib.theory.bounds import best_acceptance, best_acceptance_of_two, proposed
from tests.verbs import run

DRAWN = ("iid", "distinct")  # siblings


@pytest.mark.parametrize("pair,width", OPTIMAL)
def test_the_best_acceptance_is_golden_and_groups_only_raise_it(pair, width):
    wanted, offered = map(np.array, PAIRS[pair])
    goldens = OPTIMAL[pair, width]
    assert best_acceptance(wanted, offered, width) == pytest.approx(goldens[0], abs=1e-6)
    for golden, distinct in zip(goldens, (False, True), strict=True) if width == 2 else ():
        drawn = partial(best_acceptance_of_two, wanted, offered, distinct=distinct)
        assert drawn() == pytest.approx(golden, abs=1e-6) and drawn(groups=2) >= golden - 1e-6


@pytest.mark.parametrize("kind", DRAWN)
def test_the_probability_that_a_path_is_proposed_is_that_of_the_real_draft(kind, unchecked):
    model, widths, found = table_model(3, 7), (2, 2), Counter()
    draft = TreeDraft(model, widths=widths, siblings=kind)

    def tokens(chance) -> tuple[int, ...]:
        return draft.propose(HERE, chance).tokens

    for drawn, share in every_outcome(tokens, T1).items():  # two children of each of two nodes
        found.update(dict.fromkeys({(drawn[1 + at // 2], drawn[3 + at]) for at in range(4)}, share))
    for path in itertools.product(range(3), repeat=2):
        rows = [T1.probs(model.logits(PROMPT + path[:depth])).numpy() for depth in range(2)]
        assert proposed(rows, path, widths, kind) == pytest.approx(found[path], abs=1e-12)


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize(
    "pair,widths", [("four", (1, 1)), ("four", (2,)), ("three", (1, 1)), ("three", (2, 1))]
)
def test_no_rule_yields_more_than_the_bound(pair, kind, widths, unchecked):
    """If the draft leaves nothing to chance, the naive rule reaches the bound."""
    draft_of = partial(TreeDraft, widths=widths, siblings=kind)
    limit = mean_bound(pair, draft_of, kind)
    tokens = [expected_tokens(pair, draft_of, rule) for rule in RULES[kind]]
    assert max(tokens) <= limit + 1e-12 and limit < 1.25 * max(tokens)
    top_of = partial(TreeDraft, widths=widths, siblings="top")
    reached = expected_tokens(pair, top_of, draw_once)
    assert reached == pytest.approx(mean_bound(pair, top_of, "top"), abs=1e-12)


def mean_bound(pair: str, draft_of, kind: str) -> float:
    """The mean of `tokens_bound` over all trees that a draft may propose."""
    target, draft = map(fixed_model, PAIRS[pair], ("target", "draft"))
    limits = {}

    def limit(chance) -> tuple[int, ...]:
        tree = draft_of(draft).propose(HERE, chance)
        found = verifying.bounds(tree, target.score(HERE, tree).exp(), kind)
        limits[tree.tokens] = found["tokens"]
        return tree.tokens

    return sum(limits[tokens] * share for tokens, share in every_outcome(limit, T1).items())


@pytest.mark.parametrize("seed", range(4))
def test_no_exact_rule_yields_more_than_block_verification_on_a_chain(seed, unchecked):
    """The best of all rules whose output is a path and one more token, by a linear programme over
    what a rule may do with each chain that is drawn, is what `traverse` yields; `reject` less.
    """
    target, draft = table_model(3, seed), table_model(3, seed + 10, name="draft")
    chain = TreeDraft(draft, widths=(1, 1), siblings="iid")
    drawn = every_outcome(lambda chance: chain.propose(HERE, chance).tokens[1:], T1)
    moves = []
    for (tokens, share), kept, more in itertools.product(drawn.items(), range(3), range(3)):
        moves.append((tokens, share, (*tokens[:kept], more)))
    whole = joint_distribution(target, PROMPT, T1, 3)
    rest = {out: joint_distribution(target, PROMPT + out, T1, 3 - len(out)) for *_, out in moves}

    def followed(out: tuple[int, ...], text: tuple[int, ...]) -> float:
        return rest[out].get(text[len(out) :], 0.0) * (text[: len(out)] == out)

    exact = [[share * followed(out, text) for _, share, out in moves] for text in whole]
    spent = [[float(tokens == own) for own, *_ in moves] for tokens in drawn]
    gains = [-share * len(out) for _, share, out in moves]
    sides = [*whole.values(), *[1.0] * len(drawn)]
    best = -optimize.linprog(gains, A_eq=exact + spent, b_eq=sides).fun
    tokens = {rule: round_tokens(target, chain, rule) for rule in (reject, traverse)}
    assert tokens[traverse] == pytest.approx(best, abs=1e-7) and tokens[reject] < best - 1e-4


def round_tokens(target, draft, rule) -> float:
    """E[emitted] of one round after PROMPT, every branch visited."""

    def emitted(chance) -> tuple[int]:
        tree = draft.propose(HERE, chance)
        return (1 + len(rule(tree, target.score(HERE, tree), chance).path),)

    return sum(tokens * share for (tokens,), share in every_outcome(emitted, T1).items())


@pytest.mark.parametrize("kind", DRAWN)
def test_expected_tokens_are_those_of_every_branch(kind, unchecked):
    """The exact mean runs over coins and draws; the bench follows coins alone."""
    target, draft = table_model(6, 1), table_model(6, 2, support=4, name="draft")
    for seed in range(6):
        chance = Chance(seed, Sampler(1.0))
        tree = TreeDraft(draft, widths=(2, 2), siblings=kind).propose(HERE, chance)
        logits = target.score(HERE, tree)
        found = verifying.verify_tree(tree, logits, chance, siblings=kind)
        for rule in RULES[kind]:
            outcomes = every_outcome(partial(verifying._accepted, rule, tree, logits), T1)
            wanted = sum((1 + length) * share for (length,), share in outcomes.items())
            own, first = found[rule.__name__], 1 - outcomes.get((0,), 0)
            assert own["tokens"] == pytest.approx(wanted, abs=1e-9)
            assert own["first_accepted"] == pytest.approx(first, abs=1e-9)


def test_a_stopped_run_goes_on_and_counts_every_rule_on_the_same_contexts(
    ladder, tmp_path, monkeypatch, unchecked
):
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path))
    monkeypatch.setattr(verifying, "PLACE", tmp_path / "verifiers.csv")
    monkeypatch.setattr(verifying.LadderRecipe, "load", lambda _: ladder)
    monkeypatch.setattr(verifying, "SAMPLERS", (Sampler(1.0),))
    asked = []

    def counted(ladder, prompt, *arguments, **options):
        asked.append(prompt.name)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return verify_prompt(ladder, prompt, *arguments, **options)

    monkeypatch.setattr(verifying, "verify_prompt", counted)
    monkeypatch.setitem(verifying.SIZES, "contexts", 1)
    given = ["measure", "verifiers", "--limit", "1"]
    with pytest.raises(KeyboardInterrupt):
        run(*given)
    run(*given)
    table = pd.read_csv(verifying.PLACE)
    assert len(asked) == 5 and asked[2] == asked[3] and set(asked) == set(table.prompt)
    assert table.groupby("prompt").size().nunique() == 1
    rounds = table[table.rule != "bound"].set_index(["prompt", *verifying.BY]).rounds
    assert set(rounds) == {1, 2, 4} and (table.tokens >= table.rounds - 1e-9).all()
    found = summarise_rules(table)
    plain = found[(found.rule == "reject") & (found.siblings == "iid")]
    assert plain.ratio.tolist() == pytest.approx([1, 1]) and found.ratio.notna().all()
    assert found.tokens_per_round_low.isna().all()  # four prompts give no interval
    many = [table.assign(prompt=table.prompt + str(copy)) for copy in range(3)]
    assert summarise_rules(pd.concat(many)).ratio_low.notna().all()
