"""Single sentences of the notebooks, each beside the stored table that it is about."""

from pathlib import Path

import pandas as pd

from specdec_lib.measure.bytes_moved import size_table
from specdec_lib.measure.idea_tables import raced_machines, stored_ideas
from specdec_lib.measure.latency import free_parts
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.price_map import (
    predicted_beside_clock,
    timed_prices,
)
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import ratios
from specdec_lib.measure.renewing import AVX2
from specdec_lib.measure.rule_bench import summarise_rules
from specdec_lib.measure.scorecard.other_races import raced_verdicts
from specdec_lib.theory import (
    best_relay,
)
from specdec_lib.workload import load_ladder

FIGURES = Path(__file__).parents[1] / "figures"
MEASURED = Path(__file__).parents[1] / "data" / "measured"


def test_notebook_01_a_tree_of_sixteen_would_gain_nothing():
    speeds = pd.read_csv(FIGURES / "01_speed_up.csv").groupby("budget").speed_up.max()
    assert 0.97 < speeds[16] < 1 < speeds[15]


def test_notebook_02_a_draft_is_a_little_too_modest_and_rates_fall_with_temperature():
    dots = pd.read_csv(FIGURES / "02_calibration.csv")
    for _, own in dots.groupby("series"):
        sure = own[own.confidence > 0.1]
        assert (sure.rate > sure.confidence).mean() > 0.5
        [lowest] = own[own.at_risk == own.at_risk.max()].itertuples()
        assert lowest.confidence < 0.1 and lowest.rate < lowest.confidence
    known = dots.dropna(subset="low")
    off = (known.confidence < known.low) | (known.confidence > known.high)
    assert off.sum() <= 2 and len(known) > 10
    rates = pd.read_csv(MEASURED / "temperatures.csv").pivot(
        index="guesser", columns="temperature", values="rate"
    )
    for heat in rates:
        assert rates[heat].loc[["middle", "reading", "draft", "n-gram"]].is_monotonic_decreasing
    assert (rates[1.5] < rates[0.0]).all()
    table = rates.loc["n-gram"]
    assert table[table.index <= 1].between(0.18, 0.2).all() and table[1.5] < table[1.0] / 3


def test_notebook_02_what_the_predictors_are_off_by():
    table = pd.read_csv(MEASURED / "predicted.csv")
    promised = table.pivot(index=["temperature", "name"], columns="predictor", values="predicted")
    off = promised.div(promised.replay, axis=0).groupby("temperature").median() - 1
    assert off["depth and rank"].between(-0.035, -0.02).all()
    assert off["root"].between(-0.075, -0.05).all()
    assert off["every position"].between(0.01, 0.035).all()
    assert (off["depth, rank and parent"] - off["depth and rank"]).abs().max() < 0.005
    held_out = (table.predicted / table.measured - 1)[table.predictor == "replay"]
    assert 0.02 < held_out.abs().median() < 0.06


def test_notebook_03_how_small_and_how_quick_the_draft_is():
    share = size_table(load_ladder(device="cpu")).set_index("model").a_pass_share
    assert round(1 / share["middle"]) == 7
    assert 0.9 < 28 * timed_prices()["middle"] < 1.1


def test_notebook_03_what_an_n_gram_table_guesses_right():
    origin = pd.read_csv(FIGURES / "03_origin.csv", keep_default_na=False)
    foreseen = origin.token[origin.source == "n-gram"].str.strip()
    assert 0.5 < foreseen.isin(["", "(", ")", "a", "an", "the"]).mean() < 0.65
    assert foreseen.value_counts().idxmax() == "" and "value" not in set(foreseen)


def test_notebook_03_a_drafts_passes_are_an_eighth_of_a_trees_time():
    strip = pd.read_csv(FIGURES / "03_strip.csv", keep_default_na=False)
    tree = strip[strip.method == "tree"]
    share = tree.milliseconds[tree.model != "target"].sum() / tree.milliseconds.sum()
    assert abs(share - 1 / 8) < 0.01
    cheap = strip[strip.model != "target"].groupby("method").size()
    assert (cheap["staged tree"], cheap["tree"]) == (9, 12)


def test_notebook_03b_a_longer_chain_hardly_yields_more():
    far = pd.read_csv(MEASURED / "cascade_position.csv").query("drafter == 'draft'")
    for _, own in far.groupby(["sampling", "domain"]):
        rates = own.sort_values("position").rate
        assert 1 <= (1 + rates.head(16).sum()) / (1 + rates.head(5).sum()) < 1.055


def test_notebook_04_a_cheap_tail_adds_three_percent_to_the_toy():
    rates, costs = (0.8, 0.4), (0.1, 0.01)
    both = best_relay(rates, costs, longest=12).speed_up
    alone = best_relay(rates[:1], costs[:1], longest=12).speed_up
    assert round(100 * (both / alone - 1)) == 3
    assert round(timed_prices()["draft"], 2) == 0.01  # a hundredth


def test_notebook_04b_two_and_three_drafters_and_the_small_one():
    swi = pd.read_csv(MEASURED / "cascade_swi.csv").query("sampling == 'greedy'")
    by = swi.pivot(index=["prices", "domain"], columns="drafters", values="swi")
    beside = (by["middle + draft + Max-Gram"] / by["middle + Max-Gram"]).drop("parameters")
    assert beside.drop("summary", level="domain").between(0.975, 1.01).all()
    assert (beside.xs("summary", level="domain") < 0.95).all()
    summaries = by.loc["measured", "summary"]
    assert 1 < summaries["middle"] / summaries["Max-Gram"] < 1.05  # a little ahead
    small = pd.read_csv(MEASURED / "cascade_versus.csv").query(
        "prices == 'measured' and cascade == 'draft + Max-Gram'"
    )
    assert (small.high[small.sampling == "greedy"] < 1).all()
    assert (small.high[small.sampling != "greedy"] < 1).sum() == 3


def test_notebook_04b_a_high_swi_can_be_a_slow_decoder():
    table = stored_clocked("walltime", RACED).assign(sampling="greedy")
    chat = table[table.domain == "chat"]
    by = {"baseline": "autoregressive", "by": ("draft", "sampling")}
    speeds = ratios(chat, "tokens", "seconds", **by).set_index("draft").value
    assert speeds["cascade + tree, a tail of 10"] < 0.95
    prices = timed_prices()
    spent = sum(chat[f"{name}_passes"].fillna(0) * prices[name] for name in prices if name in SPENT)
    swi = ratios(chat.assign(spent=spent), "tokens", "spent", **by).set_index("draft").value
    assert round(swi["cascade + tree, a tail of 10"], 1) == 2.0


SPENT = ("target", "middle", "draft")


def test_notebook_05_a_scout_makes_the_drafts_part_no_shorter():
    ledger = stored_clocked("ledger", RACED).query("runtime == 'fast' and part == 'draft passes'")
    took = ledger.pivot_table(index="temperature", columns="draft", values="token_seconds")
    assert (took["staged tree of 8, depth 4"] >= took["tree of 8, depth 4"]).all()


def test_notebook_05b_what_is_left_to_gain():
    parts = free_parts(stored_clocked("ledger", RACED), stored_clocked("speeds", RACED))
    assert 1.14 < (parts.both_free / parts.speed_up).max() < 1.16  # up to 15 %


def test_notebook_06_what_its_first_lines_count():
    scores = pd.read_csv(FIGURES / "06_scorecard.csv").query("kind == 'gain'")
    counts = scores.verdict.value_counts()
    assert counts.drop("not testable here", errors="ignore").sum() == 59
    counted = ["reproduced", "larger", "smaller", "opposite"]
    assert counts[counted].tolist() == [4, 4, 38, 3]
    again = scores[scores.verdict == "reproduced"]
    assert sorted(again.by) == ["clock", "clock", "counted", "counted"]
    assert again.claim.str.startswith(("speculative against plain", "staged against")).all()
    larger = scores[scores.verdict == "larger"]
    assert larger.claim.str.endswith("speculative").sum() == 2
    assert larger.claim.str.contains("GSM8K, BASE").sum() == 2
    tuned = scores[scores.item == "Table 3, tuned"]
    assert tuned.ours.between(0.945, 0.985).all()  # two to five percent slower
    assert (tuned.verdict == "opposite").sum() == 2
    adds = scores[scores.claim.str.startswith("staged against speculative")]
    assert (adds.verdict[adds.by == "clock"] == "smaller").all()


def test_notebook_06_a_core_without_avx_512():
    verdicts = raced_verdicts(load_ladder(device="cpu"))
    ours = verdicts[AVX2].map(lambda said: float(said.split()[0]) if said else float("nan"))
    staged = ours.xs("Table 2").filter(like="staged against speculative", axis=0)
    staged = staged.stack().dropna()
    assert len(staged) == 4 and (staged < 1).sum() == 3
    cascades = ours.xs("Table 3, tuned").stack()
    assert 0.72 < cascades.min() < 0.77  # up to a quarter slower
    quick = verdicts[RACED, "int8"].xs("Table 3, tuned")
    gains = quick.map(lambda said: float(said.split()[0]))
    assert (gains.min(), gains.max()) == (1.04, 1.13)


def test_notebook_07_what_traverse_adds_and_costs():
    table = summarise_rules(pd.read_csv(MEASURED / "verifiers.csv"))
    keys = ["sampling", "shape", "siblings"]
    by = table.pivot_table(index=keys, columns="rule", values=["tokens_per_round", "microseconds"])
    adds = (by["tokens_per_round"].traverse / by["tokens_per_round"].reject).dropna()
    assert 1 < adds.max() < 1.025
    costs = table.groupby(["shape", "siblings", "rule"]).microseconds.median().unstack()
    share = (costs.traverse - costs.reject).dropna() / table.pass_microseconds.median()
    assert share.between(0.025, 0.045).all() and len(share) == 3


def test_notebook_08_most_methods_that_guess_are_slower_than_predicted():
    medians = []
    for machine in raced_machines():
        stored, passes = stored_ideas(machine), stored_clocked("passes", machine)
        found = predicted_beside_clock(stored, passes)
        guessing = found[found.method != "autoregressive"]
        medians += guessing.groupby(["edition", "temperature"]).ratio.median().tolist()
    assert len(medians) == 12 and sum(ratio < 1 for ratio in medians) == 9


def test_notebook_02_rates_predict_seven_percent_too_few_tokens():
    table = pd.read_csv(MEASURED / "predicted.csv").query("predictor == 'depth and rank'")
    short = 1 - table.predicted / table.measured
    assert short.groupby(table.temperature).median().between(0.065, 0.075).all()


def test_notebook_05_hot_text_and_branching_trees():
    sweeps = pd.read_csv(FIGURES / "05_sweeps.csv").query("temperature == 1.5")
    assert 1.15 < sweeps.speed_up.max() < 1.19  # about a sixth at most
    shapes = pd.read_csv(FIGURES / "05_surface.csv")
    best = shapes[shapes.width > 1].groupby("budget").speed_up.max()
    assert best.loc[3:8].min() > best.drop(best.loc[3:8].index).max()


def test_notebook_05b_an_off_switch_costs_and_the_planned_draft():
    switch = pd.read_csv(FIGURES / "05b_off_switch.csv")
    whole = switch[switch.domain == "all"]
    assert (whole.speed_up_high < 1).sum() == 3 and (1 - whole.speed_up).max() < 0.015
    assert (switch.speed_up_low[switch.domain != "all"] > 1).sum() == 1  # "hardly any kind"
    plans = pd.read_csv(FIGURES / "05b_plans.csv")
    planned = plans[plans.choice.str.contains("planned draft")]
    assert (planned.ratio_low > 1).sum() == 3 and (planned.ratio_high < 1).sum() == 2
