"""Forecasts: what is counted along a text is what decoding does, and prices are added up."""

from collections import Counter

import pandas as pd
import pytest

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.drafts.planned import SITUATIONS
from specdec_lib.measure import plan_regret
from specdec_lib.measure.planning import (
    PLANNED,
    Prices,
    follow_policy,
    forecasts,
    plan_settings,
    settings,
    timed_passes,
    try_settings,
)
from specdec_lib.measure.settings.bench import OURS
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.target_text import TargetText, find_text
from specdec_lib.measure.text_writing import write_texts
from specdec_lib.measure.trial import whole
from specdec_lib.theory import Overhead, PassTable
from specdec_lib.workload import load_prompts, seeds

pytestmark = pytest.mark.usefixtures("unchecked")
LIMITS = {"max_new_tokens": 16, "seed": 3}
SAMPLED, ASKED = Sampler(1.0, top_k=8), load_prompts("chat", "development", 2)


@pytest.fixture(scope="module", params=[Sampler(0), SAMPLED], ids=["greedy", "sampled"])
def texts(request, ladder) -> tuple[TargetText, ...]:
    return write_texts(ladder, ASKED, request.param, **LIMITS)


def prices(*methods: str, round_seconds: float = 0.0, draft: float = 0.1) -> Prices:
    target = PassTable((1, 9), (0,), ((1.0, 1.8),))
    tables = {name: PassTable((1,), (0,), ((draft,),)) for name in ("middle", "draft")}
    outside = {method: Overhead(round=round_seconds) for method in methods}
    return Prices(tables | {"target": target}, outside)


def test_what_is_counted_is_what_decoding_does(ladder, texts):
    tried = settings(ladder, texts[0].sampler, (AUTOREGRESSIVE, *OURS), 2, ())
    assert len(tried) == 1 + 2 * len(OURS)
    trials = try_settings(ladder, ASKED, texts, tried)
    assert {*trials.situation} <= {*SITUATIONS}
    for (method, setting), draft in tried.items():
        own = trials[(trials.method == method) & (trials.setting == setting)]
        for prompt, seed in zip(ASKED, seeds(ASKED, 3), strict=True):
            given, written = ladder.encode(prompt), find_text(texts, prompt).tokens
            options = {"max_new_tokens": len(written), "stop_tokens": ladder.stop_tokens}
            made = decode(ladder.target, draft, given, Chance(seed, texts[0].sampler), **options)
            assert made.tokens == written
            work, passes, wanted = whole(own[own.prompt == prompt.name]), Counter(), Counter()
            for (name, _, _), count in work.passes.items():
                passes[name] += count
            for one in made.rounds:
                wanted.update({name: used.passes for name, used in one.usage.items()})
            assert passes == wanted
            guesses = sum(one.proposed for one in made.rounds)
            counts = (len(made.rounds), len(made.tokens), guesses)
            assert (work.rounds, work.tokens, work.guesses) == counts


def test_forecasts_add_prices_up_and_stand_beside_one_method(ladder, texts):
    tried = settings(ladder, texts[0].sampler, (AUTOREGRESSIVE, "chain"), 2, ())
    trials = try_settings(ladder, ASKED, texts, tried)
    table = forecasts(trials, prices(AUTOREGRESSIVE, "chain", round_seconds=0.25))
    plain = table.set_index("method").loc[AUTOREGRESSIVE]
    assert (plain.ms_per_token, plain.speed_up, plain.prompts) == (pytest.approx(1250), 1, 2)
    work = whole(trials[trials.setting == "draft, 1 tokens"])
    drafted = sum(count for (name, _, _), count in work.passes.items() if name == "draft")
    rows = sum(rows * count for (name, rows, _), count in work.passes.items() if name == "target")
    wanted = work.rounds * 1.25 + 0.1 * (rows - work.rounds) + 0.1 * drafted
    row = table.set_index("setting").loc["draft, 1 tokens"]
    assert row.ms_per_token == pytest.approx(1000 * wanted / work.tokens)
    assert row.speed_up == pytest.approx(1250 / row.ms_per_token)


@pytest.mark.parametrize("dear, declines", [(1e-6, False), (50.0, True)])
def test_where_drafts_are_too_dear_the_policy_is_plain_decoding(ladder, texts, dear, declines):
    tried = settings(ladder, texts[0].sampler, (AUTOREGRESSIVE, "chain", "tree"), 3, ())
    trials = try_settings(ladder, ASKED, texts, tried)
    priced = prices(AUTOREGRESSIVE, "chain", "tree", PLANNED, draft=dear)
    policy, planned = follow_policy(trials, priced, tried)
    assert ({method for method, _ in policy.values()} == {AUTOREGRESSIVE}) == declines
    own = try_settings(ladder, ASKED, texts, {(PLANNED, ""): planned})
    ms = forecasts(pd.concat([trials, own]), priced).set_index("method").ms_per_token
    if declines:
        assert ms[PLANNED] == ms[AUTOREGRESSIVE] == 1000
    else:
        assert ms[PLANNED] < 1.1 * ms.min()


def test_passes_are_timed_where_the_texts_are_and_settings_of_every_method_tried(ladder, tmp_path):
    texts = write_texts(ladder, ASKED, SAMPLED, **LIMITS)
    passes = timed_passes(ladder, ASKED, texts, tmp_path)
    assert {*passes} == {"target", "middle", "draft"}
    longest = max(len(ladder.encode(one)) + len(find_text(texts, one).tokens) for one in ASKED)
    assert passes["target"].contexts[-1] == longest
    policy, found = plan_settings(ladder, ASKED, texts, passes, most=1, keep=tmp_path)
    trials, tried, priced = found
    assert {method for method, _ in tried} == {AUTOREGRESSIVE, *OURS, PLANNED} == {*priced.outside}
    assert {*policy} == {*SITUATIONS} and {*policy.values()} < {*tried}
    trees = {name for method, name in tried if method == "tree"}
    assert all(any(tree in name for tree in trees) for method, name in tried if method == "staged")
    assert len(forecasts(trials, priced)) == len(tried)


def test_regret_is_held_against_the_best_of_the_other_half():
    rows = [
        (AUTOREGRESSIVE, "", 10.0, 10.0, 10.0, 10.0),
        ("tree", "lucky in the first", 8.0, 6.0, 5.0, 7.0),
        ("chain", "steady", 6.0, 6.2, 6.4, 6.0),
        (PLANNED, "policy", 7.0, 6.3, 6.6, 6.0),
    ]
    columns = ["method", "setting", "forecast", "ms_per_token", "first", "second"]
    same = dict.fromkeys(("pair", "sampling", "domain"), "any") | {"prompts": 4}
    table = pd.DataFrame(rows, columns=columns).assign(**same, speed_up_low=1, speed_up_high=2)
    table["speed_up"] = 10 / table.ms_per_token
    found = plan_regret.summarise_regret(table).set_index("choice")
    assert found.setting["the plan"] == "chain: steady" and (found.settings == 3).all()
    assert found.setting[plan_regret.BEST] == "tree: lucky in the first"
    # best of the first half is the tree, of the second the chain
    assert found.regret["the plan"] == pytest.approx((6.0 / 7.0 + 6.4 / 6.4) / 2 - 1)
    assert found.regret["planned draft"] == pytest.approx((6.0 / 7.0 + 6.6 / 6.4) / 2 - 1)
    assert found.speed_up["the plan"] == pytest.approx(10 / 6.2)


def test_a_plan_stands_beside_the_best_of_the_same_prompts():
    """Of the planned draft with its interval; a fixed plan has none; where it is the planned draft,
    one row says both.
    """
    ends = ("slower", "slower_low", "slower_high")
    common = {"pair": "p", "sampling": "greedy", "domain": "chat", "prompts": 10}
    table = pd.DataFrame(
        common | dict(zip(("method", "forecast", "ms_per_token", *ends), one, strict=True))
        for one in (
            ("tree", 4.0, 10.0, 1.25, 1.0, 2.0),
            ("chain", 5.0, 9.0, 0.9, 0.8, 1.0),
            (plan_regret.PLANNED, 6.0, 10.0, 1.0, 1.0, 1.0),
        )
    )
    found = plan_regret.beside_best(table).set_index("choice")
    assert found.loc["the planned draft", ["ratio_low", "ratio", "ratio_high"]].tolist() == (
        pytest.approx([1.0, 1 / 0.9, 1 / 0.8])
    )
    assert found.ratio["the plan, fixed"] == pytest.approx(10 / 9)
    assert found.ratio_low.isna()["the plan, fixed"]
    planned = table.assign(forecast=[4.0, 5.0, 3.0])
    [one] = plan_regret.beside_best(planned).itertuples()
    assert one.choice == "the plan, which is the planned draft"


def test_regret_rows_stand_beside_every_setting(ladder):
    held_out = load_prompts("chat", "held-out", 2)
    texts = write_texts(ladder, [*ASKED, *held_out], SAMPLED, **LIMITS)
    table = plan_regret.regret_rows(ladder, ASKED, held_out, texts, prices().passes, most=1)
    assert {*table.method} == {AUTOREGRESSIVE, *OURS, PLANNED}
    planned = table[table.method == PLANNED].iloc[0]
    assert planned.slower == 1 and table.forecast.notna().all()
    wanted = table.ms_per_token / planned.ms_per_token
    assert table.slower.tolist() == pytest.approx(wanted.tolist())
