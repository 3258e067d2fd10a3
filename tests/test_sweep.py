"""The table of a sweep, its statistics, and losslessness on the ladder."""

import itertools
import math
from dataclasses import replace

import lossless
import lossless_trees
import pandas as pd
import pytest
import torch
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.measure.acceptance import collect
from specdec_lib.measure.sweep.grid import Setting, generations
from specdec_lib.measure.sweep.ratios import summarise, with_sampling
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.measure.sweep.running import sweep


def test_a_row_holds_the_sums_over_its_rounds(ladder, prompts):
    chain = ChainDraft(ladder.draft, 3)
    settings = [Setting("none", NoDraft()), Setting("chain", chain)]
    settings.append(Setting("chain", chain, Sampler(1.0, top_k=50)))
    table = sweep(settings, prompts[:2], ladder, max_new_tokens=24, progress=False)
    assert len(table) == 6 and (table.tokens <= 24).all()
    assert (table.target_passes == table.rounds).all()
    greedy = table[table.temperature == 0].groupby("draft").tokens.apply(list)
    assert greedy["none"] == greedy["chain"]
    chain = table[table.draft == "chain"]
    assert (chain.accepted <= chain.tried).all() and (chain.tried <= chain.proposed).all()
    assert (chain.target_rows == chain.proposed + chain.rounds).all()
    assert (table.seconds >= table.overhead_seconds).all()
    assert with_sampling(table).sampling.tolist()[:3] == ["greedy", "greedy", "T = 1, top-k 50"]


def test_the_generations_of_a_sweep_are_what_its_rows_sum_up(ladder, prompts):
    drawn = ChainDraft(ladder.draft, 2, siblings="iid")
    settings = [Setting("chain", ChainDraft(ladder.draft, 3))]
    settings.append(Setting("drawn", drawn, Sampler(1.0, top_k=50), reject))
    run = {"seed": 3, "max_new_tokens": 12, "progress": False}
    table = sweep(settings, prompts[:2], ladder, **run)
    played = list(generations(settings, prompts[:2], ladder, **run))
    order = [(prompt, setting) for prompt in prompts[:2] for setting in settings]
    assert [(prompt, setting) for setting, prompt, _ in played] == order
    counts = [[len(made.tokens), len(made.rounds)] for _, _, made in played]
    assert counts == table[["tokens", "rounds"]].values.tolist()
    for rows in collect(played):
        counted = rows.groupby(["prompt", "draft"], sort=False).accepted.sum()
        assert counted.tolist() == table.accepted.tolist()


@pytest.mark.parametrize("settings", [[], [Setting("a", NoDraft()), Setting("a", NoDraft())]])
def test_a_grid_that_makes_no_sense_is_refused(settings, ladder, prompts):
    with pytest.raises(ValueError, match="settings with different names"):
        sweep(settings, prompts[:1], ladder)


EIGHT = (*range(8),)
REPEATED = [((), 0.0), (range(30), 0.0), ((1,) * 20, 12 / 20), (EIGHT * 2, 1 / 16)]


@pytest.mark.parametrize("tokens,share", [*REPEATED, (EIGHT * 3, 9 / 24)])
def test_repetition_is_the_share_of_tokens_that_end_a_known_8_gram(tokens, share):
    assert repetition(list(tokens)) == pytest.approx(share)


def test_a_summary_keeps_settings_apart():
    settings = {"draft": "x", "temperature": 1.0, "top_p": 1.0, "rounds": 10}
    settings |= {"top_k": [None, None, 50, None], "rule": ["look_up"] * 3 + ["reject"]}
    counts = {"tokens": [10, 40, 20, 30], "accepted": [0, 30, 0, 0], "tried": [10, 40, 0, 0]}
    table = summarise(pd.DataFrame(settings | counts | {"repetition": [0.0, 0.9, 0.9, 0.9]}))
    assert table.tokens_per_round.tolist() == [2.5, 2, 3] and table.prompts.tolist() == [2, 1, 1]
    assert table.acceptance_rate.isna().tolist() == [False, True, True]
    first = table.iloc[0]
    assert first.acceptance_rate == 0.6 and math.isnan(first.tokens_per_round_low)
    assert first.repetition == pytest.approx(0.72)


@pytest.fixture(scope="module")
def exact():
    """The ladder in float64."""
    return tiny_ladder("float64")


def test_speculative_output_is_the_targets_own_on_the_ladder(exact, unchecked):
    """A few hundred tokens of `make lossless`: every draft under every sampler."""
    samplers = lossless.SAMPLERS.items()
    wanted = {(name, draft) for name, one in samplers for draft in lossless.drafts(exact, one)}
    found = lossless.comparisons(exact, "float64", max_new_tokens=8)
    rows = list(itertools.islice(found, len(wanted)))
    assert all(row["equal"] for row in rows), [row for row in rows if not row["equal"]]
    assert {(row["sampler"], row["draft"]) for row in rows} == wanted


def test_on_the_ladder_staged_trees_equal_the_drafts_node_for_node(exact, unchecked):
    """Two contexts of `make lossless`, and that its comparison would show a difference."""
    row = next(lossless_trees.node_comparisons(exact, "T=1", every=8, max_new_tokens=16))
    assert row["contexts"] == 2 and row["different"] == [] and len(row["passes"]) == 4 * 3
    for kind, passes in row["passes"].items():
        assert max(passes.values()) == passes[lossless_trees.ALONE], kind
    guesses = {"source": "x", "scores": [0.5, 0.4], "rows": [torch.ones(4) / 4] * 2}
    tree = TokenTree(3, (1,)).grown([2, 3], [0, 0], **guesses)
    assert lossless_trees.same(tree, tree)
    changes = {"tokens": (1, 3, 2), "parents": (-1, 0, 1), "scores": (1.0, 0.5, 0.3)}
    for name, other in (changes | {"rows": (None, torch.ones(4) / 4, None)}).items():
        assert not lossless_trees.same(tree, replace(tree, **{name: other}))
