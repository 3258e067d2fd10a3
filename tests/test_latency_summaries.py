"""What is printed and drawn of the tables of `specdec measure latency`."""

import numpy as np
import pandas as pd
import pytest

from specdec_lib.measure.latency import (
    beside_here,
    free_parts,
    host_overheads,
    ledger_costs,
    pass_multiples,
    prediction_errors,
    stored_tables,
    sweep_rows,
    with_words,
)
from specdec_lib.measure.settings.latency import setting_in_words
from specdec_lib.show import figures


@pytest.mark.parametrize(
    "name, words",
    [
        ("autoregressive", "plain decoding"),
        ("cascade", "cascade"),
        ("cascade 1 4 / 0 4", "cascade of 1 draft token and 4 copies"),
        ("cascade 3 8 / 0 4", "cascade of 3 draft tokens and 8 copies"),
        ("cascade 1 0 4 / 0 2 4 / 0 0 4", "cascade of 1 middle token and 4 copies"),
        ("staged tree of 8, depth 4", "staged tree of 8, depth 4"),
    ],
)
def test_a_cascade_is_named_by_what_the_target_verifies(name, words):
    assert setting_in_words(name) == words


def test_no_two_stored_settings_get_the_same_words():
    names = stored_tables()["speeds"].draft.unique()
    assert len({*map(setting_in_words, names)}) == len(names) > 20


def test_a_pass_stands_over_that_over_one_row_and_against_the_targets():
    rows = [
        (model, "fast", count, context, fixed + 0.5 * count)
        for model, fixed in (("target", 1.5), ("draft", 0.5))
        for count in (1, 3)
        for context in (64, 256)
    ]
    columns = ["model", "runtime", "rows", "context_tokens", "seconds"]
    curves = pd.DataFrame(rows, columns=columns).assign(roofline_seconds=0.5)
    found = pass_multiples(curves)
    target, draft = (found.loc["fast", name] for name in ("target", "draft"))
    assert (target[1], target[3], draft[3]) == pytest.approx((1.0, 1.5, 2.0))
    assert (draft["one row, ms"], draft["÷ the target's"]) == pytest.approx((1000.0, 0.5))
    assert target["roofline ÷ it"] == pytest.approx(0.25)
    assert found["error of a line"].max() < 1e-9


def test_a_ledgers_costs_are_sums_of_its_parts():
    parts = [("verify", 0.8), ("draft passes", 0.1), ("host", 0.1)]
    ledger = pd.DataFrame(parts, columns=["part", "share"]).assign(
        runtime="fast", temperature=0.0, draft="chain of 3", accounted=1.0, watch_cost=0.01
    )
    ledger["token_seconds"] = 0.01 * ledger.share
    [found] = ledger_costs(with_words(ledger)).reset_index().itertuples()
    assert (found.sampling, found.draft) == ("greedy", "chain of 3")
    assert (found.ms_per_token, found.outside_models) == pytest.approx((10.0, 0.1))
    assert (found.accounted, found.watch_cost) == (1.0, 0.01)


def test_what_is_measured_here_stands_beside_what_is_stored_under_the_same_keys():
    stored = pd.DataFrame({"draft": ["a", "b", "c"], "speed_up": [1.0, 2.0, 3.0], "more": 0})
    here = pd.DataFrame({"draft": ["b", "new"], "speed_up": [2.5, 9.0]})
    found = beside_here(here, stored, ["draft"], ["speed_up"])
    assert found.index.tolist() == ["b", "new"]
    assert found["speed_up", "here"].tolist() == [2.5, 9.0]
    np.testing.assert_array_equal(found["speed_up", "stored"], [2.0, np.nan])
    with pytest.raises(ValueError, match="draft must tell the rows of the table here apart"):
        beside_here(pd.concat([here, here]), stored, ["draft"], ["speed_up"])


def test_stored_tables_are_summarised_and_drawn():
    """Every kind has its error and its host's seconds; both parts for nothing gain the most."""
    tables = stored_tables()
    speeds = with_words(tables["speeds"])
    kinds = {"plain decoding", "chain", "tree", "staged", "cascade"}
    assert set(host_overheads(speeds)) == kinds == set(host_overheads(speeds, 1.0))
    errors = prediction_errors(speeds)
    assert set(errors.index.get_level_values("kind")) == kinds
    assert errors.settings.sum() == len(speeds) and (errors["median"] <= errors.largest).all()
    free = free_parts(tables["ledger"], tables["speeds"])
    assert (free.both_free > free[["speed_up", "free_host", "free_drafting"]].max(axis=1)).all()
    assert "plain decoding" not in free.index.get_level_values("draft") and len(free) == 8
    swept = sweep_rows(with_words(tables["sweeps"]))
    assert set(swept.sweep) == {"temperature", "domain"}
    assert "plain decoding" not in set(swept.draft) and figures.speed_sweep(swept).data
