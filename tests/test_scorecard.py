"""The scorecard: verdicts follow from numbers and intervals, and no result is left out."""

import math
import tomllib

import pandas as pd
import pytest

from specdec_lib.core.files import DATA, REPOSITORY
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.ideas import ideas_file
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.scorecard import reading
from specdec_lib.measure.scorecard.claims import (
    BAND,
    NO_SIGN,
    UNTESTED,
    VERDICTS,
    Claim,
    count_by_margin,
    count_verdicts,
    reasons,
    score,
)
from specdec_lib.measure.scorecard.reading import CLAIMS, EVIDENCE, read_claims
from specdec_lib.workload import load_ladder
from specdec_lib.workload.published import published


@pytest.mark.parametrize(
    "value, ours, neutral, wanted",
    [
        # of a gain of 2 the band is from 2 ** .8 = 1.74 to 2 ** 1.2 = 2.30
        (2.0, (1.9, 1.8, 2.2), 1, "reproduced"),
        (2.0, (1.9, 1.7, 2.2), 1, "compatible, too wide"),
        (2.0, (1.6, 1.5, 1.7), 1, "smaller"),
        (2.0, (1.2, 0.9, 1.5), 1, "smaller"),
        (2.0, (2.6, 2.4, 3.1), 1, "larger"),
        (2.0, (0.8, 0.7, 0.9), 1, "opposite"),
        (2.0, (0.9, 0.7, 1.1), 1, "smaller"),
        (2.0, (1.9,), 1, "too few to tell"),
        (0.3, (0.6, 0.5, 0.7), 1, "smaller"),
        (0.3, (0.3, 0.29, 0.31), 1, "reproduced"),
        (0.3, (1.6, 1.5, 1.7), 1, "opposite"),
        # the same as a change in percent
        (100.0, (90.0, 80.0, 120.0), 0, "reproduced"),
        (100.0, (-20.0, -30.0, -10.0), 0, "opposite"),
        (2.0, (), 1, "not testable here"),
        (math.nan, (2.0,), 1, "not testable here"),
        # a bound is kept or not, and a length has no sign
        (10, (10.2,), None, "bound kept"),
        (10, (34,), None, "bound broken"),
        (9, (9,), NO_SIGN, "equal"),
        (9, (2,), NO_SIGN, "another number"),
    ],
)
def test_a_verdict_follows_from_the_values_and_the_interval(value, ours, neutral, wanted):
    about = "staged", "Table 9", "it pays", "x", "nothing differs"
    claim = Claim(*about, value, "clock", *ours, no_effect=neutral)
    assert claim.verdict == wanted and wanted in (*VERDICTS[claim.kind], UNTESTED)


def test_verdicts_at_another_margin(scores):
    claims = read_claims(load_ladder(device="cpu"))
    counts = count_by_margin(claims, (0.1, BAND, 0.3))
    usual = count_verdicts(scores).sum(axis=1).reindex(counts.index, fill_value=0)
    assert counts[BAND].tolist() == usual.tolist()
    assert (
        counts.loc["opposite"].nunique() == 1 and counts.loc["reproduced"].is_monotonic_increasing
    )
    assert counts.loc["reproduced", 0.1] < counts.loc["reproduced", 0.3]  # a margin changes some
    assert (counts.idxmax() == "smaller").all()


def test_formulas_and_lengths_are_not_counted_as_gains(scores):
    gains, numbers = (count_verdicts(scores, kind).sum().sum() for kind in ("gain", "number"))
    assert gains + numbers == (scores.verdict != UNTESTED).sum()
    assert set(scores[scores.item == "Table 5"].kind) == {"number"}
    assert set(scores[scores.by == "predicted"].kind) == {"number"}
    assert set(scores[scores.item == "Table 2"].kind) == {"gain"}


def test_reasons_stand_once_with_what_they_share_above_them():
    rows = [
        ("larger", "A", "On one core. It is small."),
        ("opposite", "B", "On two cores."),
        ("larger", "C", "On one core. It is quick."),
        ("larger", "D", "On two cores."),
    ]
    scores = pd.DataFrame(rows, columns=["verdict", "claim", "reason"])
    assert reasons(scores.assign(paper="ours", item="Table 9")).splitlines() == [
        "- **opposite**, ours, Table 9, *B*: On two cores.",
        "- **larger**, ours, Table 9, *D*: On two cores.",
        "- On one core:",
        "    - **larger**, ours, Table 9, *A*: It is small.",
        "    - **larger**, ours, Table 9, *C*: It is quick.",
    ]


def test_every_evidence_is_used_and_known():
    blocks = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claims"]
    used = {block["ours"]["evidence"] for block in blocks if "ours" in block}
    assert used == set(EVIDENCE)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ('paper = "staged"\nverdict = "reproduced"', "verdict\n  Extra inputs are not permitted"),
        ('paper = "staged"\nitem = "Table 9"\nclaim = "x"', "unit\n  Field required"),
        ('paper = "staged"\nno_effect = "none"', "no_effect.*\n  Input should be"),
        (
            'paper = "a"\nitem = "b"\nclaim = "c"\nunit = "d"\nreason = "e"\n'
            'printed = { table = "staged.fig1", row = { quantity = "x" }, column = "value" }',
            "a claim needs one printed row with",
        ),
    ],
)
def test_a_wrong_block_is_refused(wrong, said, tmp_path, monkeypatch):
    """No verdict can be written by hand."""
    file = tmp_path / "claims.toml"
    file.write_text(f"[texts]\n[[claims]]\n{wrong}\n", encoding="utf-8")
    monkeypatch.setattr(reading, "CLAIMS", file)
    with pytest.raises(ValueError, match=said):
        read_claims(load_ladder(device="cpu"))


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    return score(read_claims(load_ladder(device="cpu")))


def test_every_printed_result_has_a_row(scores):
    """Control: without one row, a number is missed."""
    shown = set(scores.paper_value.round(4))
    results = {"staged.table1": [], "cascade.table2": []}
    results["cascade.table1"] = ["d1", "d2", "k1", "k2", "ewif_recomputed"]
    for item, inputs in results.items():
        table = published(item).drop(columns=inputs)
        wanted = set(table.select_dtypes("number").to_numpy().ravel().round(4)) - {1}
        assert wanted and wanted <= shown, item
    kinds = [f"{price}_{kind}" for price in ("ms", "pw") for kind in ("k11", "k12", "k22")]
    lengths = published("cascade.table5")[[*kinds, "ms_lenience", "pw_lenience"]].stack().dropna()
    assert sorted(lengths) == sorted(scores[scores.item == "Table 5"].paper_value)
    ratios = published("cascade.table3").set_index("method").drop("autoregressive")
    found = scores[scores.item == "Table 3"].paper_value
    assert set(ratios.gsm8k_ratio) <= set(found) and not set(ratios.gsm8k_ratio) <= set(found[1:])
    staged = "Table 1", "Table 2", "Figure 1", "Figure 2", "Figure 3"
    items = {("staged", item) for item in staged} | {("cascade", item) for item in staged[:4]}
    tables = "Table 3", "Table 3, tuned", "Table 4", "Table 5", "Ablation"
    items |= {("cascade", item) for item in tables}
    assert items <= set(zip(scores.paper, scores.item, strict=True))
    known = {UNTESTED, *VERDICTS["gain"], *VERDICTS["number"]}
    assert scores.reason.str.len().gt(20).all() and set(scores.verdict) <= known


def test_the_figure_in_git_has_these_verdicts_of_the_stored_measurements(scores):
    drawn = pd.read_csv(REPOSITORY / "figures" / "06_scorecard.csv").fillna({"domain": ""})
    drawn["unit"] = drawn.unit.fillna("")
    pd.testing.assert_frame_equal(scores, drawn, check_dtype=False, rtol=1e-5)
    asked = "sampling == 'greedy' and domain == 'math' and prices == 'reported'"
    swi = pd.read_csv(DATA / "measured" / "cascade_swi.csv").query(asked).set_index("drafters").swi
    row = scores.query("item == 'Table 2' and claim == 'GSM8K, BASE + SMALL + MaG, PW'").iloc[0]
    assert (row.ours, row.paper_value) == (swi["middle + draft + Max-Gram"], 3.43)
    row = scores[scores.claim == "staged against speculative, deterministic, embedded"].iloc[0]
    greedy = pd.read_csv(ideas_file(RACED)).query("edition == 'exact' and temperature == 0")
    sums = greedy.groupby("method")[["tokens", "seconds"]].sum()
    pace = sums.tokens / sums.seconds
    assert row.ours == pytest.approx(pace["tree, scout"] / pace["speculative decoding"], rel=1e-5)


def test_the_race_behind_it_is_of_todays_state():
    for outside in (False, True):
        place = ideas_file(RACED, published=outside)
        if place.is_file():
            assert set(pd.read_csv(place).state) == {decoding()}, place.name
