"""Sentences of the notebooks 06 and 08 on what an idea is worth, here and at other prices, each
beside the stored races.
"""

from dataclasses import replace

import pandas as pd

from specdec_lib.measure.idea_tables import idea_table, raced_machines, stored_ideas
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.price_map import DRAFTS, SIXTEENS, Priced, claim_gains, modelled_place
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.renewing import AVX2, ZEN_4
from specdec_lib.measure.settings.ideas import SCOUT, SPECULATIVE, TREE
from specdec_lib.theory import RTX_4090, ModelShape, roofline_seconds
from specdec_lib.workload.published import number


def test_notebook_08_trees_at_the_papers_gpu():
    large, small = ModelShape(36, 1280, 50257), ModelShape(5, 512, 50257)
    plain = number("staged.table2", "deterministic", "baseline")
    launch = 1 / plain - roofline_seconds(large, RTX_4090, rows=1, context=256)
    place = replace(modelled_place(large, small, RTX_4090, launch / large.layers), host=1.0)
    gains = [
        Priced.of(rows, stored_clocked("passes", machine)).gain(TREE + SCOUT, SPECULATIVE, place)
        for machine in raced_machines()
        for _, rows in stored_ideas(machine).groupby(["edition", "temperature"])
    ]
    assert (round(min(gains), 2), round(max(gains), 2), len(gains)) == (1.11, 1.26, 12)
    for sampling in ("deterministic", "top-k"):
        printed = [number("staged.table2", sampling, name) for name in ("staged", "speculative")]
        assert round(printed[0] / printed[1], 2) == 1.36


def test_notebook_08_shares_of_the_maps():
    passes = stored_clocked("passes", RACED)
    places = {"sixteens": SIXTEENS[::3], "drafts": DRAFTS[::3]}
    shares = {}
    for (edition, heat), rows in stored_ideas(RACED).groupby(["edition", "temperature"]):
        found = claim_gains(Priced.of(rows, passes), host=1.0, **places)
        shares[edition, heat] = (found.gain > 1).groupby(found.claim).mean()
        if heat == 0:
            assert found.gain[found.claim == "second stage, of a tree"].max() < 1.08
    table = pd.DataFrame(shares)
    greedy = table.xs(0.0, axis=1, level=1)
    assert (greedy.loc["tree"] > 0.99).all() and (table.loc["tree"].min() < 0.6)
    assert (greedy.loc["copies (Max-Gram) before a tree"] > 0.6).all()
    assert table.loc["vertical cascade", ("exact", 1.0)] < 0.05
    assert 0.5 < table.loc["vertical cascade beside copies", ("exact", 0.0)] < 0.65


def test_notebook_06_a_vertical_cascade_beside_its_controls():
    table = idea_table(stored_ideas(RACED)).query("edition == 'float32' and temperature == 0")
    alone = table[table.pair == "vertical cascade ÷ speculative decoding"].set_index("part")
    judged = alone.loc[["chat", "qa", "math", "math_reasoning"]]
    assert (judged.ratio_high > 1).all() and (judged.ratio_low[["qa"]] > 1).all()
    zen_4 = idea_table(stored_ideas(ZEN_4)).query("part == 'all'")
    assert not (zen_4[zen_4.pair == "vertical cascade ÷ chain, copies"].ratio_low > 1).any()
    zen_3 = idea_table(stored_ideas(AVX2)).query("part == 'all' and edition == 'int8'")
    both = zen_3[zen_3.pair == "vertical and horizontal ÷ speculative decoding"]
    assert (both.ratio.round(2) <= 0.8).all() and (both.ratio_high < 1).all() and len(both) == 2
