"""The command that names tables of older code."""

import pandas as pd
import pytest

from specdec_lib.measure import fingerprints, states
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


def test_the_state_is_of_code_and_drafts_alone(monkeypatch, tmp_path):
    path = tmp_path / "one.py"
    path.write_text('"""Words."""\n\n\ndef run():\n    """More."""\n    return 1  # said\n')
    first = fingerprints._without_words(path)
    path.write_text('"""Other words."""\n\n\ndef run():\n    """Others."""\n    return 1\n')
    assert fingerprints._without_words(path) == first
    path.write_text('"""Words."""\n\n\ndef run():\n    """More."""\n    return 2  # said\n')
    assert fingerprints._without_words(path) != first
    before = decoding()
    monkeypatch.setattr(fingerprints, "DECODING", fingerprints.DECODING[1:])
    decoding.cache_clear()
    assert decoding() != before
    monkeypatch.undo()
    decoding.cache_clear()
    assert decoding() == before
