"""What notebooks say of stored clocks is what these hold."""

from pathlib import Path

import pandas as pd

from specdec_lib.measure.defaults import off_switch_gains, slowest_kinds, stored_defaults
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.idea_tables import idea_table, steps_table, stored_ideas
from specdec_lib.measure.latency import free_parts, pass_tables
from specdec_lib.measure.learning import summarise_learning
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.plan_regret import BEST, summarise_regret
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import ALL, ratios
from specdec_lib.measure.settings.usual import DEFAULT, UNSWITCHED
from specdec_lib.workload.published import published

FIGURES = Path(__file__).parents[1] / "figures"
MEASURED = Path(__file__).parents[1] / "data" / "measured"


def test_what_notebook_04_says_of_the_parts_of_a_cascade_is_so():
    parts = pd.read_csv(FIGURES / "04c_ablation.csv")
    gains = parts.pivot(index=["way", "sampling", "family"], columns="method", values="ratio")
    assert (gains.loc["SWI, counted"] > 1).all(axis=None)
    exact = gains.loc["speed, float32"]
    assert (exact < 1.03).all(axis=None)
    assert (exact < 1).to_numpy().mean() > 0.5  # most lose
    quick = gains.loc["speed, int8"]
    greedy = quick.loc["greedy"]
    assert (greedy["vertical only"] > 1.03).all()
    assert (greedy.drop(columns="vertical only").max(axis=1) < greedy["vertical only"]).all()
    assert (quick.drop(index="greedy") < 1.06).all(axis=None)


def test_what_notebook_06_says_a_staged_tree_adds_is_so():
    scores = pd.read_csv(FIGURES / "06_scorecard.csv").query("by == 'clock'")
    adds = scores[scores.claim.str.startswith("staged against speculative")]
    assert len(adds) and adds.ours.max() < 1.13  # an eighth at most


def raced() -> pd.DataFrame:
    """What notebook 06 says of the race of ideas stands on: every pair of methods."""
    return idea_table(stored_ideas())


def test_what_notebook_06_says_of_each_idea_is_so():
    table = raced()
    whole = table[(table.part == "all") & (table.idea != "all together")]
    paired = whole.set_index(["pair", "family", "edition", "sampling"]).sort_index()
    tree, scout = paired.loc["tree ÷ speculative decoding"], paired.loc["chain, scout ÷ chain"]
    trees = paired[paired.idea == "tree"]
    assert abs(tree.ratio.max() - 9 / 8) < 0.01 and (tree.ratio_low > 1).sum() == len(tree) - 2
    slower = trees[trees.ratio_high < 1].droplevel("pair").index.unique()
    assert slower.tolist() == [("published prompts", "int8", "T = 1, top-k 50")]
    fed = paired.loc["tree, scout ÷ tree"]
    assert pd.concat([scout, fed]).ratio.round(2).between(0.98, 1.02).all()
    vertical = "vertical cascade ÷ speculative decoding"
    cascades = paired[paired.idea == "cascade"].drop(index="comb of both ÷ speculative decoding")
    comb = paired.loc["comb of both ÷ speculative decoding"]
    assert (comb.xs("T = 1, top-k 50", level="sampling").ratio_low > 1).sum() == 2
    assert not (comb.xs("greedy", level="sampling").ratio_low > 1).any()
    quickest = paired.loc[vertical].xs("int8", level="edition")
    assert (quickest.ratio_low > 1).sum() == 3
    ends = paired.loc["horizontal cascade ÷ speculative decoding"]
    quick = ends.xs("int8", level="edition")
    assert (ends.xs("float32", level="edition").ratio_high < 1).all()
    assert quick.index[quick.ratio_low > 1].tolist() == [("published prompts", "greedy")]
    both = paired.loc["vertical and horizontal ÷ speculative decoding"]
    quick = both.xs("int8", level="edition")
    assert (quick.ratio_low > 1).groupby(level="sampling").sum().to_dict() == {
        "T = 1, top-k 50": 0,
        "greedy": 2,
    }
    gains = cascades.xs("float32", level="edition").query("ratio_low > 1")
    assert gains.index.tolist() == [(vertical, "published prompts", "greedy")]
    copied = paired.loc["tree, copies ÷ tree"]
    assert (copied.xs("greedy", level="sampling").ratio_low > 1).all()


def test_what_notebook_06_says_of_plain_decoding_in_int8_is_so():
    steps = steps_table(stored_ideas())
    least = steps[steps.edition == "float32"].groupby(["family", "sampling"]).ms_per_token.min()
    plain = steps.query("edition == 'int8' and step == 'plain decoding'").set_index(
        ["family", "sampling"]
    )
    assert (plain.ms_per_token < least.reindex(plain.index)).all()


def test_what_notebook_06_says_of_kinds_of_text_is_so():
    table = raced()
    gains = table[(table.idea == "all together") & ~table.part.str.startswith("repetition")]
    kinds = gains[gains.part != "all"]
    columns = ["part", "family", "edition", "sampling"]
    fastest = kinds.loc[kinds.groupby(columns).ratio.idxmax()]
    slower = kinds[kinds.ratio_high < 1]
    exact = fastest[fastest.edition == "float32"]
    assert exact.method.str.startswith("tree").all()
    of_greedy = exact[exact.sampling == "greedy"]
    assert of_greedy.method.str.endswith("copies").sum() == len(of_greedy) - 1
    quick = fastest[fastest.edition == "int8"].set_index("part")
    by_vertical = quick[quick.method == "vertical cascade"]
    assert set(by_vertical.index[by_vertical.sampling == "greedy"]) == {"qa", "math_reasoning"}
    others = quick[(quick.sampling == "greedy") & (quick.method != "vertical cascade")].method
    assert others.str.startswith("tree").all() and others.str.endswith("copies").all()
    drawn = quick[quick.sampling != "greedy"]
    assert len(drawn) == 11 and drawn.method.value_counts().max() <= 3
    assert not slower.method.str.contains("copies").any()
    assert "vertical cascade" not in set(slower.method)
    assert set(slower.part) == {"summarization"}
    assert set(slower.method[slower.edition == "float32"]) == {"vertical and horizontal"}
    of_greedy = slower[(slower.edition == "int8") & (slower.sampling == "greedy")]
    assert of_greedy.method.str.startswith("chain").all()


def test_what_notebook_01_says_of_rows_is_so():
    passes = stored_clocked("passes", RACED).query("edition == 'exact'")
    own = pass_tables(passes.assign(runtime="fast"), column="seconds")["target"]
    nine, seventeen = (own.at(rows, 256) / own.at(1, 256) for rows in (9, 17))
    assert nine < 1.2 and 1.8 < seventeen < 2.2


def test_what_notebook_04_says_of_the_clock_is_so():
    table = stored_clocked("walltime", RACED).assign(sampling="greedy")
    assert set(table.state) == {decoding()} and (table.cores < 1.25).all()
    assert (table.groupby(["domain", "draft"]).prompt.nunique() == 10).all()
    by = {"by": ("draft", "sampling")}

    def over(baseline: str, some: pd.DataFrame = table) -> pd.DataFrame:
        found = ratios(some, "tokens", "seconds", baseline=baseline, **by).set_index("draft")
        return found.drop(columns="sampling")

    plain = over("autoregressive")
    chain = plain.value["speculative, chain of 4"]
    papers = plain.index.str.startswith("cascade")
    assert papers.sum() == 6 and (plain.value[papers] < chain).all()
    summaries = over("autoregressive", table[table.domain == "summary"])
    assert summaries.value["cascade, K00 = 2"] < 1.01
    tail = over("cascade, K00 = 1").loc["cascade, K00 = 1, no horizontal"]
    assert tail.low < 1 < tail.high
    printed = published("cascade.table4").set_index("K00").walltime
    for k00 in (2, 3):
        ours = over("cascade, K00 = 1").loc[f"cascade, K00 = {k00}"]
        assert ours.high < 1 and ours.value < printed[k00] / printed[1]
    ablated = plain[plain.index.str.startswith("ablation: ")]
    assert ablated.high["ablation: full"] < 1
    assert (ablated.low[[f"ablation: no {one}" for one in ("horizontal", "Max-Gram")]] > 1.4).all()
    first = table.dropna(subset="matrix").groupby(["draft", "domain"]).matrix.first()
    tails = first.str.split(" / ").str[0].str.split().str[-1].astype(int)
    ends = tails.groupby("draft").agg(["min", "max"]).apply(tuple, axis=1)
    assert ends["ablation: full"] == (12, 64)
    lenient = plain[plain.index.str.startswith("lenience: ")]
    assert lenient[lenient.low > 1].index.tolist() == ["lenience: 5"]
    assert tails.groupby("draft").sum()[lenient.index].idxmin() == "lenience: 5"


def test_what_notebook_04_says_of_swi_is_so():
    swi = pd.read_csv(MEASURED / "cascade_swi.csv").query("sampling == 'greedy'")
    best = swi.loc[swi.groupby(["prices", "domain"]).swi.idxmax()].set_index("prices")
    assert best.drafters.str.contains(r"\+").all()
    assert (best.drafters["parameters"] == "middle + draft + Max-Gram").all()
    assert (best.drafters[["measured", "reported"]] == "middle + Max-Gram").sum() == 7
    versus = pd.read_csv(MEASURED / "cascade_versus.csv").query("prices == 'measured'")
    assert (versus.cascade[versus.chosen] == "middle + draft + Max-Gram").all()
    cascades = swi[(swi.prices == "measured") & swi.drafters.str.contains(r"\+")]
    tails = cascades.matrix.str.split(" / ").str[0].str.split().str[-1].astype(int)
    assert (tails.min(), tails.max()) == (12, 64)


def test_what_notebook_05_says_of_the_clock_is_so():
    for name in ("latency", "ledger", "speeds", "sweeps"):
        table = stored_clocked(name, RACED)
        assert set(table.state) == {decoding()} and (table.cores < 1.25).all(), name
    speeds = stored_clocked("speeds", RACED)
    sixteen, most = (speeds[speeds.draft.str.contains(f"tree of {size}")] for size in (16, 32))
    assert sixteen.error.between(0.135, 0.185).all() and (most.speed_up_high < 1).all()
    assert (sixteen.speed_up_high[sixteen.temperature > 0] < 1).all()
    assert (sixteen.speed_up_low[sixteen.temperature == 0] > 1).all()
    rest = speeds.drop(index=[*sixteen.index, *most.index]).query("kind != 'autoregressive'")
    assert (rest.speed_up_low > 1).all()
    ledger = stored_clocked("ledger", RACED).query("runtime == 'fast'")
    assert (ledger.share[ledger.part == "draft passes"] < 0.1).all()
    took = ledger.groupby(["temperature", "draft"]).token_seconds.sum().unstack()
    assert (took["staged tree of 8, depth 4"] > took["tree of 8, depth 4"]).all()
    assert (took.drop(columns="autoregressive").max(axis=1) < took["autoregressive"]).all()
    what_if = pd.read_csv(FIGURES / "05b_what_if.csv")
    best = what_if.groupby(["draft", "host"]).speed_up.max().unstack("draft")
    free = best["the draft for nothing"] / best["the draft as measured"]
    assert free.between(1.02, 1.05).all()  # a few percent
    assert (
        1.02 < best.loc["the host for nothing"].div(best.loc["the host as measured"]).max() < 1.06
    )
    parts = free_parts(stored_clocked("ledger", RACED), speeds)
    assert (parts.free_drafting / parts.speed_up).between(1.02, 1.1).all()  # less than a tenth
    turns = stored_clocked("latency", RACED).query("rows == 1 and context_tokens == 256")
    turns = turns[turns.runtime == "int8"].set_index("model").seconds
    loop = stored_clocked("passes", RACED).query("edition == 'exact' and rows == 1")
    loop = loop[loop.context_tokens == 256].set_index("model").seconds
    share = (loop / turns)[["draft", "middle", "reading"]]
    assert share.between(0.45, 0.68).all()  # half to two thirds
    assert 0.008 < loop["draft"] / loop["target"] < 0.014  # a hundredth


def test_what_notebook_05_says_of_predictions_and_the_roofline_is_so():
    curves = stored_clocked("latency", RACED)
    assert (curves.roofline_seconds <= curves.seconds).all()
    ridge = curves.flops_per_second[0] / curves.bytes_per_second[0]
    assert 5 < ridge * 4 / 2 < 12  # a handful of rows
    speeds = stored_clocked("speeds", RACED)
    assert speeds.error.abs().median() < 0.05 and (speeds.error.abs() < 0.05).mean() > 0.6
    contrary = speeds[(speeds.predicted_speed_up > 1) != (speeds.speed_up > 1)]
    contrary = contrary[contrary.kind != "autoregressive"]
    assert contrary.draft.str.contains("tree of 16").all() and (contrary.temperature > 0).all()
    assert len(contrary) == 2
    costs = stored_clocked("ledger", RACED).groupby(["runtime", "temperature", "draft"]).watch_cost
    assert costs.first().min() < 0 and costs.first().max() < 0.05  # a few percent, and below 0


def test_what_notebook_05b_says_of_the_off_switch_is_so():
    gains = off_switch_gains()
    whole = gains[gains.domain == ALL]
    assert whole.speed_up.min() > 0.985 and not (whole.speed_up_low > 1).any()
    assert 0.955 < gains.speed_up.min() < 0.965
    above = gains[(gains.speed_up_low > 1) & (gains.speed_up > 1.04)]
    assert above[["edition", "sampling", "domain"]].to_numpy().tolist() == [
        ["exact", "greedy", "translation"]
    ]
    assert above.speed_up.item() < 1.06  # about five percent
    least = stored_defaults()["published prompts"]
    for draft in (UNSWITCHED, DEFAULT):
        assert (slowest_kinds(least, draft).speed_up_high > 1).all()


def test_what_notebook_05b_says_of_plans_is_so():
    table = pd.read_csv(MEASURED / "regret.csv")
    plans = summarise_regret(table)
    chosen = plans[plans.choice != BEST]
    regret = chosen.groupby("choice").regret.agg(["median", "max"])
    assert (regret["median"].abs() < 0.01).all() and (regret["max"] < 0.05).all()
    nothing = chosen[(chosen.pair == "random weights") & (chosen.choice == "the plan")]
    assert nothing.setting.str.startswith("autoregressive").all() and len(nothing)
    embedded = table.query("pair.str.startswith('SmolLM2')")
    plain = (embedded.ms_per_token * embedded.speed_up).min()
    assert plain > 2 * 16  # another machine than the other tables'


def test_what_notebook_04_says_of_drafts_without_a_network_is_so():
    timed = stored_clocked("learning", RACED)
    assert set(timed.state) == {decoding()} and timed.cores.quantile(0.99) < 1.25
    speeds = summarise_learning(timed).set_index(["domain", "sampling", "draft"]).sort_index()
    sampling = dict.fromkeys(timed.sampling)
    for one in sampling:
        every = speeds.loc["all", one].speed_up
        assert every.idxmax() == "Max-Gram, else the tree"
        assert every["earlier answers"] < 1.05
    behind = ratios(timed, "tokens", "seconds", baseline="Max-Gram", by=("draft", "sampling"))
    behind = behind[behind.draft == "Max-Gram, else earlier answers"].set_index("sampling")
    assert 1 < behind.low["greedy"] and behind.value.between(1, 1.06).all()  # a little
    by = {"baseline": "draft model's tree", "by": ("draft", "sampling")}
    ahead = []
    for domain, own in [("all", timed), *timed.groupby("domain")]:
        found = ratios(own, "tokens", "seconds", **by).set_index(["draft", "sampling"])
        copies = found.loc["Max-Gram, else recycled"]
        ahead += [(domain, one) for one in copies.index[copies.low > 1]]
        if domain == "all":
            greedy, drawn = copies.loc["greedy"], copies.drop("greedy").iloc[0]
            assert greedy.low < 1 < greedy.high and drawn.high < 1 and round(drawn.value, 1) == 0.9
            beside = found.loc["tree beside recycled"]
            assert (beside.low < 1).all() and (beside.high > 1).all()
    assert ahead == [("summary", "greedy")]
