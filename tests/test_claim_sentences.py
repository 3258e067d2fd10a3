"""Sentences of the notebooks 06 and 08 on what an idea is worth, here and at other prices, each
beside the stored races.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from specdec_lib.measure.idea_tables import idea_table, raced_machines, stored_ideas
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.price_map import (
    DRAFTS,
    SIXTEENS,
    Priced,
    PricePoint,
    claim_gains,
    modelled_place,
    place_of,
)
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.renewing import AVX2, ZEN_4
from specdec_lib.measure.scorecard.other_races import raced_verdicts
from specdec_lib.measure.settings.ideas import BOTH, SCOUT, SPECULATIVE, TREE
from specdec_lib.theory import A40, RTX_4090, Machine, ModelShape, roofline_seconds
from specdec_lib.workload import load_ladder
from specdec_lib.workload.published import number

FIGURES = Path(__file__).parents[1] / "figures"


def launched(target: ModelShape, draft: ModelShape, gpu: Machine, speed: float) -> PricePoint:
    """A GPU at which plain decoding is as fast as the paper prints."""
    launches = 1 / speed - roofline_seconds(target, gpu, rows=1, context=256)
    return replace(modelled_place(target, draft, gpu, launches / target.layers), host=1.0)


def all_gains(method: str, place: PricePoint) -> list[float]:
    """Over speculative decoding, by the rounds of each core, edition and sampler."""
    return [
        Priced.of(rows, stored_clocked("passes", machine)).gain(method, SPECULATIVE, place)
        for machine in raced_machines()
        for _, rows in stored_ideas(machine).groupby(["edition", "temperature"])
    ]


def test_notebook_08_trees_and_cascades_at_the_papers_gpus():
    gpt2, five_layers = ModelShape(36, 1280, 50257), ModelShape(5, 512, 50257)
    vicuna = ModelShape(32, 4096, 32000, inner_width=11008, matrices=3)
    two_layers = ModelShape(2, 768, 32000, inner_width=3072, matrices=3)
    speed = number("staged.table2", "deterministic", "baseline")
    trees = all_gains(TREE + SCOUT, launched(gpt2, five_layers, RTX_4090, speed))
    assert (round(min(trees), 2), round(max(trees), 2), len(trees)) == (1.11, 1.26, 12)
    speed = number("cascade.table3", "autoregressive", "gsm8k")
    both = all_gains(BOTH, launched(vicuna, two_layers, A40, speed))
    assert (round(min(both), 2), round(max(both), 2), len(both)) == (0.89, 1.11, 12)
    for sampling in ("deterministic", "top-k"):
        printed = [number("staged.table2", sampling, name) for name in ("staged", "speculative")]
        assert round(printed[0] / printed[1], 2) == 1.36


def test_notebook_06_what_its_counts_hide():
    scores = pd.read_csv(FIGURES / "06_scorecard.csv").set_index(["item", "claim"])
    gains = scores[(scores.kind == "gain") & (scores.verdict != "not testable here")]
    of_table = gains.verdict[gains.paper == "cascade"].loc["Table 2"]
    assert (len(gains), len(of_table), (of_table == "smaller").sum()) == (59, 20, 17)
    smaller = gains[(gains.verdict == "smaller") & (gains.by == "clock")]
    assert (smaller.low < smaller.no_effect).sum() == 2
    tuned = scores.loc["Table 5"]
    lenient = tuned.index.str.endswith("lenience")
    lengths = tuned[~lenient]
    assert (lengths.ours == lengths.paper_value).sum() == 1
    assert (lengths.ours <= lengths.paper_value).all()
    assert (lengths.ours[lengths.index.str.endswith("k22")] == 0).all()
    assert 0 < (tuned.ours > tuned.paper_value)[lenient].sum() < lenient.sum()


def test_notebook_06_in_int8_gains_over_plain_decoding_are_smaller():
    said = raced_verdicts(load_ladder(device="cpu"))
    over = said[said.index.get_level_values("claim").str.contains("against plain")]
    for machine in raced_machines():
        both = over[machine].replace("", None).dropna()
        float32, int8 = (
            both[name].str.split().str[0].astype(float) for name in ("float32", "int8")
        )
        assert (int8 < float32).all() and len(both) >= 4


CLEAR = 1.02  # what notebook 08 counts as a gain


def test_notebook_08_shares_of_the_maps():
    passes = stored_clocked("passes", RACED)
    places = {"sixteens": SIXTEENS[::3], "drafts": DRAFTS[::3]}
    shares = {}
    for (edition, heat), rows in stored_ideas(RACED).groupby(["edition", "temperature"]):
        found = claim_gains(Priced.of(rows, passes), host=1.0, **places)
        shares[edition, heat] = (found.gain > CLEAR).groupby(found.claim).mean()
        if heat == 0:
            assert found.gain[found.claim == "second stage, of a tree"].max() < 1.08
    trees = {}
    for machine in (ZEN_4, AVX2):
        for (edition, heat), rows in stored_ideas(machine).groupby(["edition", "temperature"]):
            priced = Priced.of(rows, stored_clocked("passes", machine))
            found = claim_gains(priced, host=1.0, claims=("tree",), **places)
            trees[machine, edition, heat] = (found.gain > CLEAR).mean()
    assert min(trees[ZEN_4, edition, 0.0] for edition in ("exact", "int8")) > 0.7  # most
    assert 0.3 < trees[AVX2, "exact", 0.0] < 0.36  # a third
    table = pd.DataFrame(shares)
    greedy = table.xs(0.0, axis=1, level=1)
    assert (greedy.loc["tree"] > 0.8).all() and (table.loc["tree"].min() < 0.6)
    assert (greedy.loc["copies (Max-Gram) before a tree"] > 0.55).all()
    cascades = ["vertical cascade", "horizontal cascade", "both cascades"]
    assert (table.loc[cascades, ("exact", 1.0)] < 0.05).all()
    beside = table.loc["vertical cascade beside copies", ("exact", 0.0)]
    assert 0.35 < beside < 0.45  # two fifths
    assert 0.45 < table.loc["second stage, of a chain", ("exact", 0.0)] < 0.55  # half


def test_notebook_06_a_vertical_cascade_beside_its_controls():
    table = idea_table(stored_ideas(RACED)).query("edition == 'float32' and temperature == 0")
    alone = table[table.pair == "vertical cascade ÷ speculative decoding"].set_index("part")
    judged = alone.loc[["chat", "qa", "math", "math_reasoning"]]
    assert (judged.ratio_high > 1).all() and (judged.ratio_low[["qa"]] > 1).all()
    drawn = idea_table(stored_ideas(RACED)).query("edition == 'float32' and temperature == 1")
    for one in ("vertical cascade", "vertical and horizontal"):
        pair = drawn[drawn.pair == f"{one} ÷ speculative decoding"].set_index("part")
        assert (pair.ratio_high[judged.index] < 1).all()  # sampled, both lose
    zen_4 = idea_table(stored_ideas(ZEN_4)).query("part == 'all'")
    assert not (zen_4[zen_4.pair == "vertical cascade ÷ chain, copies"].ratio_low > 1).any()
    zen_3 = idea_table(stored_ideas(AVX2)).query("part == 'all' and edition == 'int8'")
    both = zen_3[zen_3.pair == "vertical and horizontal ÷ speculative decoding"]
    assert (both.ratio.round(2) <= 0.8).all() and (both.ratio_high < 1).all() and len(both) == 2


def test_notebook_08_where_our_cores_stand_and_how_quiet_they_were():
    busy, sixteen = {}, {}
    for machine in (RACED, ZEN_4, AVX2):
        passes = stored_clocked("passes", machine)
        for edition in ("exact", "int8"):
            busy[machine, edition] = passes.cores[passes.edition == edition].max()
            sixteen[machine, edition] = place_of(passes, edition, "middle").sixteen
    slowed = {place: round(cores, 2) for place, cores in busy.items() if cores > 1.1}
    assert slowed == {(ZEN_4, "int8"): 1.22, (AVX2, "exact"): 1.27}
    beyond = [place for place, price in sixteen.items() if price > SIXTEENS[-1]]
    assert beyond == [(AVX2, "int8")]


def test_results_least_scores_of_the_trees_that_the_clock_chose():
    floors = {}
    for machine in (RACED, ZEN_4, AVX2):
        trees = stored_ideas(machine).query("method == 'tree' and edition == 'int8'")
        floors[machine] = set(trees.setting.str.contains("floor"))
    assert floors == {RACED: {True}, ZEN_4: {True}, AVX2: {False}}
