"""What the loop sees of n-grams: logits and trees from a Katz table."""

import math

import numpy as np
import pytest
import torch
from fakes import best_paths, path_scores

from specdec_lib.core.chance import Chance, EveryBranch, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.models.katz.model import Katz

BINNED = (0.4, 0.35), (0.6, 0.3), (0.95, 0.02)
BY_GAP = MatchTable((0.6, 0.3), "by gap", (0.5, 2.0), BINNED)


@pytest.fixture(scope="module")
def small() -> Katz:
    return Katz.fit([np.random.default_rng(0).integers(0, 7, 400)], 7)


@pytest.fixture(scope="module")
def large() -> Katz:
    return Katz.fit([np.minimum(np.random.default_rng(2).zipf(1.3, 20000) - 1, 299)], 300)


def test_score_is_the_log_of_the_distribution_after_each_node(small):
    context = Context((0, 2, 1), 2)
    tree = TokenTree.rooted(context).grown([1, 2, 0], [0, 0, 2], source="test", scores=[0.5] * 3)
    logits = small.score(context, tree)
    assert logits.dtype == torch.float64
    wanted = [small.probs(tokens) for tokens in [(2, 1), (1, 1), (1, 2), (2, 0)]]
    np.testing.assert_array_equal(logits, np.log(wanted))


def test_a_sampled_draft_is_ranked_under_the_noise_of_its_position_which_no_branches_have(small):
    table, context, chance = small, Context.of([3, 1, 0]), Chance(9, Sampler(1.3))
    tree = NgramDraft(table, (6, 2)).propose(context, chance)
    logits = table.score(context, tree)
    for node in range(7):
        ranked, _ = chance.rank(logits[node], tree.position(node) + 1, 6 if node == 0 else 2)
        assert [tree.tokens[child] for child in tree.children(node)] == ranked
    assert tree.scores[1:7] == (0.75, 0.16, 0.04, 0.03, 0.015, 0.0075) and tree.scores[7] == 0.75**2
    with pytest.raises(ValueError, match="noise cannot be enumerated"):
        NgramDraft(table, (2,)).propose(context, EveryBranch(0, Sampler(1.0)))


@pytest.mark.parametrize(
    "sampler", [Sampler(1.0), Sampler(0.7, top_k=3), Sampler(1.3, top_p=0.7), Sampler(1.0, 5, 0.9)]
)
def test_a_draft_ranks_as_its_sharpened_distribution_would(small, sampler):
    chance, draft = Chance(7, sampler), NgramDraft(small, (1,), counted_at=1.5)
    for position in range(20):
        tokens, gaps = chance.rank(torch.from_numpy(small.probs([1, 0]) ** 1.5).log(), position, 4)
        ranked, found = draft.rank((1, 0), 4, chance, position)
        assert ranked == tokens
        assert found == pytest.approx([gaps[1] if len(gaps) > 1 else math.inf, *gaps[1:]])


def test_a_sampled_draft_looks_at_sixteen_candidates_and_none_at_more_than_there_are(large):
    draft, context = NgramDraft(large, (1,)), Context.of([0])
    chances = (Chance(seed, Sampler(5.0)) for seed in range(300))
    drawn = {draft.propose(context, chance).tokens[1] for chance in chances}
    assert drawn <= set(large.top([0], 16)[0]) and len(drawn) > 8
    narrow = NgramDraft(Katz.fit([np.array([0, 1, 0])], 2), (5,))
    assert narrow.propose(context, Chance(0)).guesses == 2


@pytest.mark.parametrize("temperature,siblings", [(0, "ranked"), (1.0, "top"), (0, "top")])
@pytest.mark.parametrize("budget", [1, 5, 16])
def test_a_budget_holds_the_likeliest_paths_of_all(small, budget, temperature, siblings):
    context, chance = Context.of([3, 1, 0]), Chance(0, Sampler(temperature))
    tree = NgramDraft(small, budget=budget, depth=3, siblings=siblings).propose(context, chance)
    wanted = best_paths(lambda path: small.top(context.tokens + path, 7), budget, 3)
    found = path_scores(tree)
    assert len(found) == tree.guesses == budget and not tree.has_rows
    assert found == pytest.approx({path: wanted[path] for path in found})


@pytest.mark.parametrize("counted_at", [1.0, 1.5])
@pytest.mark.parametrize("match", [MatchTable(), BY_GAP])
def test_under_noise_a_budget_holds_the_best_products_of_match_rates(small, match, counted_at):
    context, chance = Context.of([3, 1, 0]), Chance(5, Sampler(1.0))
    draft = NgramDraft(small, budget=9, depth=3, match=match, counted_at=counted_at)

    def children(path):
        sharp = torch.from_numpy(small.probs(context.tokens + path) ** counted_at).log()
        tokens, gaps = chance.rank(sharp, len(context) + len(path), 7)
        return tokens, [match.rate(rank, gap) for rank, gap in enumerate([gaps[1], *gaps[1:]])]

    tree, wanted = draft.propose(context, chance), best_paths(children, 9, 3)
    found = path_scores(tree)
    assert tree.guesses == 9 and found == pytest.approx({path: wanted[path] for path in found})
