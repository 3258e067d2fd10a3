"""What the papers print is read, never typed."""

import pandas as pd
import pytest
from fakes import refusals

from specdec_lib.workload.published import number, price_list, published, published_beside


def test_the_papers_tables_are_as_printed():
    table = published("staged.table1").set_index("sampling")
    assert table.loc["deterministic", "staged"] == 0.23
    assert table.loc["top-k", "speculative"] == 0.48
    assert number("staged.fig1", "baseline speed") == 150
    assert number("staged.table2", "deterministic", "staged") == 475


def test_a_price_list_leaves_out_who_has_no_price():
    prices = {"t5-small": 0.02, "t5-base": 0.04, "t5-large": 0.11, "t5-xxl": 1, "mag": 0}
    assert price_list("pw") == prices
    assert price_list("ms")["llama-7b"] == 70000  # as in the paper's code, ten times too much


test_what_is_not_printed_is_refused = refusals(
    (lambda: published("staged.table9"), "published items are staged.table1"),
    (lambda: price_list("nobody's"), "price lists are ms, pw; got"),
    (lambda: number("staged.fig1", "no such row"), "got 'no such row', 'value'"),
    (lambda: number("staged.fig1", "baseline speed", "no such column"), "'no such column'"),
)


def test_ours_stands_beside_the_papers():
    mine = {"draft": "mine", "sampling": "greedy", "value": 0.3, "low": 0.2, "high": 0.4}
    mine |= {"prompts": 12}
    ours, samplings = pd.DataFrame([mine]), {"deterministic": "greedy"}
    found = published_beside("staged.table1", ours, methods={"staged": "mine"}, samplings=samplings)
    assert found.iloc[0].tolist() == ["greedy", "staged", 0.23, 0.3, 0.2, 0.4, 12]
    with pytest.raises(ValueError, match="one row of ours is needed for 'other', 'greedy', got 0"):
        published_beside("staged.table1", ours, methods={"staged": "other"}, samplings=samplings)
