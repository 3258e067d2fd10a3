"""Forecasts: what is counted along a text is what decoding does, and prices are added up."""

import pandas as pd
import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import SITUATIONS
from specdec_lib.drafts.learning import EarlierAnswers
from specdec_lib.measure import regret
from specdec_lib.measure.planning import (
    PLANNED,
    Prices,
    follow_policy,
    forecasts,
    plan_settings,
    timed_passes,
)
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.families import OURS
from specdec_lib.measure.trials import settings, try_settings, whole, written_texts
from specdec_lib.theory import Overhead, PassTable
from specdec_lib.workload import Ladder, load_prompts

pytestmark = pytest.mark.usefixtures("unchecked")
LIMITS = {"tokens": 16, "seed": 3}
SAMPLED = Sampler(1.0, top_k=8)


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    return tiny_ladder()


@pytest.fixture(scope="module", params=[Sampler(0), SAMPLED], ids=["greedy", "sampled"])
def texts(request, ladder) -> tuple[Sampler, list]:
    prompts = load_prompts("chat", "development", 2)
    return request.param, [*written_texts(ladder, request.param, prompts, LIMITS, None)]


def prices(*methods: str, round_seconds: float = 0.0) -> Prices:
    tables = {
        "target": PassTable((1, 9), (0,), ((1.0, 1.8),)),
        "middle": PassTable((1,), (0,), ((0.3,),)),
        "draft": PassTable((1,), (0,), ((0.1,),)),
    }
    return Prices(tables, {method: Overhead(round=round_seconds) for method in methods})


def test_what_is_counted_is_what_decoding_does(ladder, texts):
    sampler, written = texts
    tried = settings(ladder, sampler, (AUTOREGRESSIVE, *OURS), 2, ())
    assert len(tried) == 1 + 2 * len(OURS)
    trials = try_settings(ladder, sampler, written, tried)
    for (method, setting), draft in tried.items():
        own = trials[(trials.method == method) & (trials.setting == setting)]
        for prompt, text in written:
            options = {"max_new_tokens": len(text.tokens), "stop_tokens": ladder.stop_tokens}
            made = decode(ladder.target, draft, text.prompt, Chance(text.seed, sampler), **options)
            assert made.tokens == text.tokens
            work = whole(own[own.prompt == prompt.name])
            assert (work.rounds, work.tokens) == (len(made.rounds), len(made.tokens))
            assert work.guesses == sum(one.proposed for one in made.rounds)
            passes = {name: 0 for name in ("target", "middle", "draft")}
            for (name, _, _), count in work.passes.items():
                passes[name] += count
            for name, count in passes.items():
                assert count == sum(
                    one.usage[name].passes for one in made.rounds if name in one.usage
                )
        assert {*own.situation} <= {*SITUATIONS}


def test_forecasts_add_prices_up_and_stand_beside_one_method(ladder, texts):
    sampler, written = texts
    tried = settings(ladder, sampler, (AUTOREGRESSIVE, "chain"), 2, ())
    trials = try_settings(ladder, sampler, written, tried)
    priced = prices(AUTOREGRESSIVE, "chain", round_seconds=0.25)
    table = forecasts(trials, priced).set_index("method")
    assert table.ms_per_token[AUTOREGRESSIVE] == pytest.approx(1250)
    assert table.speed_up[AUTOREGRESSIVE] == 1 and (table.prompts == 2).all()
    chain = trials[(trials.method == "chain") & (trials.setting == "draft, 1 tokens")]
    work = whole(chain)
    drafted = sum(count for (name, _, _), count in work.passes.items() if name == "draft")
    rows = sum(rows * count for (name, rows, _), count in work.passes.items() if name == "target")
    wanted = work.rounds * 1.25 + 0.1 * (rows - work.rounds) + 0.1 * drafted
    row = forecasts(trials, priced).set_index("setting").loc["draft, 1 tokens"]
    assert row.ms_per_token == pytest.approx(1000 * wanted / work.tokens)
    assert row.speed_up == pytest.approx(1250 / row.ms_per_token)


@pytest.mark.parametrize("dear, declines", [(1e-6, False), (50.0, True)])
def test_where_drafts_are_too_dear_the_policy_is_plain_decoding(ladder, texts, dear, declines):
    sampler, written = texts
    tried = settings(ladder, sampler, (AUTOREGRESSIVE, "chain", "tree"), 3, ())
    trials = try_settings(ladder, sampler, written, tried)
    cheap = prices(AUTOREGRESSIVE, "chain", "tree", PLANNED)
    tables = cheap.passes | {
        name: PassTable((1,), (0,), ((dear,),)) for name in ("draft", "middle")
    }
    policy, planned = follow_policy(trials, Prices(tables, cheap.outside), tried)
    assert ({method for method, _ in policy.values()} == {AUTOREGRESSIVE}) == declines
    [*own] = [try_settings(ladder, sampler, written, {(PLANNED, ""): planned})]
    both = pd.concat([trials, *own], ignore_index=True)
    table = forecasts(both, Prices(tables, cheap.outside)).set_index("method")
    if declines:
        assert table.ms_per_token[PLANNED] == table.ms_per_token[AUTOREGRESSIVE] == 1000
    else:
        assert table.ms_per_token[PLANNED] < 1.1 * table.ms_per_token.min()


def test_passes_are_timed_where_the_texts_are_and_settings_of_every_method_tried(ladder, tmp_path):
    prompts = load_prompts("chat", "development", 2)
    written = [*written_texts(ladder, SAMPLED, prompts, LIMITS, tmp_path / "texts")]
    assert written == [*written_texts(None, SAMPLED, prompts, LIMITS, tmp_path / "texts")]
    passes = timed_passes(ladder, written, tmp_path)
    assert {*passes} == {"target", "middle", "draft"}
    longest = max(len(text.prompt) + len(text.tokens) for _, text in written)
    assert passes["target"].contexts[-1] == longest
    policy, found = plan_settings(ladder, SAMPLED, written, passes, most=1, keep=tmp_path)
    trials, tried, priced = found
    assert {method for method, _ in tried} == {AUTOREGRESSIVE, *OURS, PLANNED} == {*priced.outside}
    assert {*policy} == {*SITUATIONS} and {*policy.values()} < {*tried}
    trees = {name for method, name in tried if method == "tree"}
    assert all(any(tree in name for tree in trees) for method, name in tried if method == "staged")
    assert len(forecasts(trials, priced)) == len(tried)


def test_drafts_that_learn_are_refused(ladder, texts):
    sampler, written = texts
    with pytest.raises(ValueError, match="EarlierAnswers"):
        try_settings(ladder, sampler, written, {("memory", ""): EarlierAnswers()})


def test_regret_is_held_against_the_best_of_the_other_half():
    rows = [
        (AUTOREGRESSIVE, "", 10.0, 10.0, 10.0, 10.0),
        ("tree", "lucky in the first", 8.0, 6.0, 5.0, 7.0),
        ("chain", "steady", 6.0, 6.2, 6.4, 6.0),
        (PLANNED, "policy", 7.0, 6.3, 6.6, 6.0),
    ]
    columns = ["method", "setting", "forecast", "ms_per_token", "first", "second"]
    table = pd.DataFrame(rows, columns=columns).assign(pair="any", sampling="any", domain="any")
    table = table.assign(
        prompts=4, speed_up=10 / table.ms_per_token, speed_up_low=1, speed_up_high=2
    )
    found = regret.summarise_regret(table).set_index("choice")
    assert found.setting["the plan"] == "chain: steady" and (found.settings == 3).all()
    assert found.setting[regret.BEST] == "tree: lucky in the first"
    # best of the first half is the tree, of the second the chain
    assert found.regret["the plan"] == pytest.approx((6.0 / 7.0 + 6.4 / 6.4) / 2 - 1)
    assert found.regret["planned draft"] == pytest.approx((6.0 / 7.0 + 6.6 / 6.4) / 2 - 1)
    assert found.speed_up["the plan"] == pytest.approx(10 / 6.2)


def test_regret_rows_stand_beside_every_setting(ladder, monkeypatch):
    texts = {
        split: [*written_texts(ladder, SAMPLED, load_prompts("chat", split, 2), LIMITS, None)]
        for split in ("development", "held-out")
    }
    passes = prices().passes
    table = regret.regret_rows(ladder, SAMPLED, texts, passes, most=1)
    assert {*table.method} == {AUTOREGRESSIVE, *OURS, PLANNED}
    planned = table[table.method == PLANNED].iloc[0]
    assert planned.slower == 1 and table.forecast.notna().all()
    assert table.slower.tolist() == pytest.approx(
        (table.ms_per_token / planned.ms_per_token).tolist()
    )


def test_prices_of_another_machine_are_refused_in_one_line():
    with pytest.raises(
        ValueError, match=r"no measurements of other in .*`specdec measure latency`"
    ):
        regret.stored_passes("other", "target")
