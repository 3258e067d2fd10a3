"""The table of a sweep, its statistics, and losslessness on the ladder."""

import itertools
import math

import lossless
import pandas as pd
import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
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
    assert set(chain[chain.temperature == 1].match) == {"default"}
    assert with_sampling(table).sampling.tolist()[:3] == ["greedy", "greedy", "T = 1, top-k 50"]


def test_counts_do_not_depend_on_what_is_run_beside_them(ladder, prompts):
    counts = ["tokens", "rounds", "proposed", "accepted", "target_rows"]
    tree = Setting("tree", TreeDraft(ladder.draft, budget=8), Sampler(1.0))
    limits = {"max_new_tokens": 16, "progress": False}
    alone = sweep([tree], prompts[1:2], ladder, **limits)
    both = sweep([Setting("none", NoDraft()), tree], prompts[:2], ladder, **limits)
    same = both[(both.draft == "tree") & (both.prompt == prompts[1].name)]
    assert same[counts].values.tolist() == alone[counts].values.tolist()


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


def test_a_summary_keeps_settings_and_looping_prompts_apart():
    settings = {"draft": "x", "temperature": 1.0, "top_p": 1.0, "rounds": 10}
    settings |= {"top_k": [None, None, 50, None], "rule": ["look_up"] * 3 + ["reject"]}
    counts = {"tokens": [10, 40, 20, 30], "accepted": [0, 30, 0, 0], "tried": [10, 40, 0, 0]}
    table = summarise(pd.DataFrame(settings | counts | {"repetition": [0.0, 0.9, 0.9, 0.9]}))
    assert table.tokens_per_round.tolist() == [2.5, 2, 3]
    first = table.iloc[0]
    assert (first.tokens_per_round_kept, first.acceptance_rate) == (1.0, 0.6)
    assert (first.prompts, first.prompts_kept) == (2, 1)
    assert first.repetition == pytest.approx(0.72) and math.isnan(first.tokens_per_round_low)
    nothing = table[["acceptance_rate", "tokens_per_round_kept"]][1:]
    assert nothing.isna().all(axis=None)


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
