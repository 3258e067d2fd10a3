"""The command that names tables of older code."""

import pandas as pd
import pytest

from specdec_lib.measure import states
from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.states import OLDER, TODAY, UNKNOWN, stored_states
from tests.verbs import run


@pytest.fixture
def tables(tmp_path, monkeypatch):
    (tmp_path / "measured").mkdir()
    monkeypatch.setattr(states, "DATA", tmp_path)

    def write(name: str, **columns: object) -> None:
        pd.DataFrame([{"seconds": 1.0, **columns}]).to_csv(
            tmp_path / "measured" / name, index=False
        )

    return write


def test_a_table_says_whether_it_is_of_todays_code(tables, capsys):
    tables("ideas_here.csv", state=decoding(), date="2026-11-28")
    tables("race_here.csv")
    tables("staged.csv")  # counted
    found = stored_states().set_index("table").age.to_dict()
    assert found == {"ideas_here.csv": TODAY, "race_here.csv": UNKNOWN}
    assert run("measure", "states") == 0
    tables("passes_here.csv", state="older")
    assert stored_states().set_index("table").age["passes_here.csv"] == OLDER
    assert run("measure", "states") == 1
    assert "older than the code: passes_here.csv" in capsys.readouterr().out
