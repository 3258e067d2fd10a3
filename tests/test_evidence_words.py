"""What notebooks conclude from stored counts and clocks, in words without a number, is so."""

from pathlib import Path

import pandas as pd

from specdec_lib.measure.idea_tables import (
    claims_beside_clock,
    idea_table,
    raced_machines,
    stored_ideas,
)
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.price_map import predicted_beside_clock
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.ratios import ratios
from specdec_lib.measure.renewing import AVX2, ZEN_4
from specdec_lib.measure.scorecard.other_races import raced_verdicts
from specdec_lib.workload import load_ladder

FIGURES = Path(__file__).parents[1] / "figures"
MEASURED = Path(__file__).parents[1] / "data" / "measured"


def test_what_notebooks_01_and_02_say_of_their_pictures_is_so():
    speeds = pd.read_csv(FIGURES / "01_speed_up.csv").groupby("budget").speed_up.max()
    best = speeds.idxmax()
    assert best <= 8 and (speeds[[best - 1, best + 1]] > 0.97 * speeds.max()).all()
    firsts = pd.read_csv(FIGURES / "02_domain.csv").pivot(
        index="domain", columns="source", values="rate"
    )
    assert (firsts["n-gram"] > firsts.draft).tolist() == [True] * 4
    trees = pd.read_csv(MEASURED / "predicted.csv").query("predictor == 'depth and rank'")
    drawn = trees[trees.temperature == 1]
    assert len(drawn) == 13 and (drawn.predicted < drawn.low).all()


def test_what_notebook_04b_says_of_copies_alone_is_so():
    table = stored_clocked("walltime", RACED).assign(sampling="greedy")
    table = table[~table.draft.str.contains(": ")]  # the paper's settings
    by = {"baseline": "autoregressive", "by": ("draft", "sampling")}
    found = {
        domain: ratios(own, "tokens", "seconds", **by).set_index("draft").value
        for domain, own in table.groupby("domain")
    }
    assert found["summary"].idxmax() == "Max-Gram alone"
    code = found["code"]
    chains = code[code.index.str.startswith("speculative")]
    assert abs(code["Max-Gram alone"] / chains.max() - 1) < 0.02


def test_what_notebook_05_says_of_large_trees_is_so():
    speeds = pd.read_csv(FIGURES / "05_predicted.csv")
    large = speeds[speeds.draft.str.contains(r"tree of (?:16|32)")]
    assert len(large) == 6 and (large.predicted_speed_up > large.speed_up).all()


def test_what_notebook_06_says_of_cascades_and_of_older_cores_is_so():
    table = idea_table(stored_ideas(RACED)).query("part == 'all'")
    cascades = table[(table.idea == "cascade") & (table.edition == "float32")]
    assert len(cascades) == 16 and cascades.ratio.max() < 1.03
    beside = table[table.pair == "vertical cascade ÷ tree, copies"]
    slower = beside[beside.ratio_high < 1]
    kept = beside.drop(slower.index)
    assert len(slower) == 6 and set(zip(kept.edition, kept.temperature, strict=True)) == {
        ("int8", 1.0)
    }
    verdicts = raced_verdicts(load_ladder(device="cpu"))
    staged = verdicts.xs("Table 2").filter(like="staged against speculative, ", axis=0)
    older = staged[ZEN_4]
    smaller = older.apply(lambda cell: cell.str.endswith("smaller")).stack()
    assert len(smaller) == 8 and smaller.sum() == 7
    [(lost, edition)] = smaller.index[~smaller]
    assert "top-k, published" in lost and edition == "int8"  # as on the README's core


def test_what_notebook_08_says_of_three_cores_is_so():
    passes = {name: stored_clocked("passes", name) for name in raced_machines()}
    groups = {
        name: stored_ideas(name).query("edition == 'exact' and temperature == 0")
        for name in raced_machines()
    }
    found = {name: claims_beside_clock(own, passes[name]) for name, own in groups.items()}
    assert found[AVX2].ratio["tree"] < 1, "no gain shows greedily"
    assert found[ZEN_4].ratio_low["tree"] > 1
    for older in (AVX2, ZEN_4):
        own = (found[older].predicted / found[older].ratio - 1).abs().mean()
        map_of_readme = (found[RACED].predicted / found[older].ratio - 1).abs().mean()
        assert own < map_of_readme, "its own rounds foretell its clock better"
    int8 = stored_ideas(RACED).query("edition == 'int8'")
    plain = predicted_beside_clock(int8, passes[RACED]).query("method == 'autoregressive'")
    assert plain.ratio.between(1.075, 1.09).tolist() == [True] * 2, "some 8 % too slow"


def test_what_notebook_00b_says_of_copies_is_so():
    shaded = pd.read_csv(FIGURES / "00b_survival.csv", keep_default_na=False)
    hard = shaded[shaded.chance < 0.2]
    assert len(hard) > 20 and 0.5 < hard.copied.mean() < 0.65  # more than half


def test_what_notebook_04c_says_of_how_flat_the_surfaces_are_is_so():
    cells = pd.read_csv(MEASURED / "cascade_studies.csv").query("study == 'surface'")
    own, tail = zip(*(map(int, name.split(",")) for name in cells.name), strict=True)
    cells = cells.assign(own=own, tail=tail)
    for (sampling, domain), some in cells.groupby(["sampling", "domain"]):
        best = some.loc[some.swi.idxmax()]
        near = (some.swi >= 0.95 * best.swi).mean()
        if sampling == "T = 1":
            assert near > 0.8 and some.swi[some["tail"] == 0].max() / best.swi > 0.975
        elif domain in ("code", "summary"):
            assert near < 0.06 and best.own <= 1 and best["tail"] == cells["tail"].max()
    assert set(cells.texts) == {20}


def test_what_notebook_04c_says_of_a_cascades_passes_is_so():
    """In the picture copies lengthen the target's passes, and save some of the draft's."""
    strip = pd.read_csv(FIGURES / "04c_strip.csv", keep_default_na=False)
    of = strip.assign(whose=strip.model == "target").groupby(["method", "whose"]).milliseconds
    mean, count = of.mean().unstack(), of.size().unstack()
    assert mean[True]["cascade"] > mean[True]["plain decoding"]
    assert count[False]["cascade"] < count[False]["chain"]
