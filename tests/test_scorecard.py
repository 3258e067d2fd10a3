"""The scorecard: verdicts follow from numbers and intervals, and no result is left out."""

import pandas as pd
import pytest

from specdec_lib.core.files import DATA
from specdec_lib.measure.intervals import LEAST_PROMPTS
from specdec_lib.measure.race.table import RACED
from specdec_lib.measure.scorecard.cascade import cascade_claims
from specdec_lib.measure.scorecard.claims import (
    NO_SIGN,
    NONE,
    VERDICTS,
    Claim,
    Finding,
    count_verdicts,
    score,
)
from specdec_lib.measure.scorecard.staged import staged_claims
from specdec_lib.workload import load_ladder
from specdec_lib.workload.published import published


def claim(value: float, ours: Finding, neutral: float | None = 1) -> Claim:
    about = "staged", "Table 9", "it pays", "x", "clock"
    return Claim(*about, value, ours, neutral, "nothing differs")


@pytest.mark.parametrize(
    "value, ours, wanted",
    [
        (2.0, Finding(1.96), "reproduced"),
        (2.0, Finding(1.7, 1.4, 2.1), "reproduced"),
        (2.0, Finding(1.7, 1.4, 1.9), "same sign, smaller"),
        (2.0, Finding(2.9, 2.4, 3.1), "same sign, larger"),
        (2.0, Finding(1.2, 0.9, 1.5), "sign unsettled"),
        (2.0, Finding(0.8, 0.7, 0.9), "opposite"),
        (0.3, Finding(0.6, 0.5, 0.7), "same sign, smaller"),
        (0.3, Finding(1.6, 1.5, 1.7), "opposite"),
        (2.0, Finding(), "not testable here"),
        (NONE, Finding(2.0), "not testable here"),
        # an interval from few prompts is left out
        (2.0, Finding(1.7, 1.4, 2.1, LEAST_PROMPTS - 1), "same sign, smaller"),
        (2.0, Finding(1.7, 1.4, 2.1, LEAST_PROMPTS), "reproduced"),
    ],
)
def test_a_verdict_follows_from_the_values_and_the_interval(value, ours, wanted):
    assert claim(value, ours).row()["verdict"] == wanted and wanted in VERDICTS


def test_a_bound_is_kept_or_not_and_a_length_has_no_sign():
    exact = [claim(10, Finding(ours), None) for ours in (10.2, 34)]
    assert [one.row()["verdict"] for one in exact] == ["reproduced", "opposite"]
    lengths = [claim(9, Finding(ours), NO_SIGN) for ours in (9, 2)]
    assert [one.row()["verdict"] for one in lengths] == ["reproduced", "another number"]


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    ladder = load_ladder(device="cpu")
    return score([*staged_claims(ladder), *cascade_claims(ladder)])


def test_every_printed_result_has_a_row(scores):
    """Control: without one row, a number is missed."""
    shown = set(scores.paper_value.round(4))
    results = {"staged.table1": set(), "cascade.table2": set()}
    results |= {"cascade.table1": {"d1", "d2", "k1", "k2", "ewif_recomputed"}}
    for item, inputs in results.items():
        table = published(item).drop(columns=list(inputs))
        wanted = set(table.select_dtypes("number").to_numpy().ravel().round(4)) - {1}
        assert wanted and wanted <= shown, item
    kinds = [f"{price}_{kind}" for price in ("ms", "pw") for kind in ("k11", "k12", "k22")]
    lengths = published("cascade.table5")[[*kinds, "ms_lenience", "pw_lenience"]].stack().dropna()
    assert sorted(lengths) == sorted(scores[scores.item == "Table 5"].paper_value)
    ratios = published("cascade.table3").set_index("method").drop("autoregressive")
    assert set(ratios.gsm8k_ratio) <= set(scores[scores.item == "Table 3"].paper_value)
    assert not set(ratios.gsm8k_ratio) <= set(scores[scores.item == "Table 3"].paper_value[1:])
    items = {("staged", f"Table {n}") for n in (1, 2)}
    items |= {("staged", f"Figure {n}") for n in (1, 2, 3)}
    items |= {("cascade", f"Table {n}") for n in range(1, 6)} | {("cascade", "Ablation")}
    items |= {("cascade", f"Figure {n}") for n in (1, 2)}
    assert items <= set(zip(scores.paper, scores.item, strict=True))
    counts = count_verdicts(scores)
    assert counts.to_numpy().sum() == len(scores) and list(counts.columns) == ["cascade", "staged"]
    assert scores.reason.str.len().gt(20).all() and set(scores.verdict) <= set(VERDICTS)


def test_our_values_are_the_stored_measurements(scores):
    race = pd.read_csv(DATA / "measured" / f"race_{RACED}.csv")
    staged = race.query(
        "method == 'staged' and edition == 'exact' and baseline == 'autoregressive'"
        " and domain == 'all' and temperature == 0"
    )
    row = scores.query("claim == 'staged against plain decoding, deterministic'").iloc[0]
    assert row.ours == pytest.approx(staged.ratio.item(), rel=1e-5)
    ends = staged[["ratio_low", "ratio_high"]].iloc[0].tolist()  # of prompts in another order
    assert [row.low, row.high] == pytest.approx(ends, rel=0.01)
    asked = "sampling == 'greedy' and domain == 'math' and prices == 'reported'"
    swi = pd.read_csv(DATA / "measured" / "cascade_swi.csv").query(asked)
    row = scores.query("item == 'Table 2' and claim == 'GSM8K, BASE + SMALL + MaG, PW'").iloc[0]
    assert row.ours == swi.set_index("drafters").swi["middle + draft + Max-Gram"]
    assert row.paper_value == 3.43 and row.verdict == "same sign, smaller"


def test_the_papers_sizes_are_the_published_ones(scores):
    for sizes, paper in (("762 : 40 M", "staged"), ("11,300 : 220 : 60 M", "cascade")):
        own = scores[scores.paper == paper].reason
        assert own.str.contains(f"without embeddings ({sizes}, whole)", regex=False).any()
