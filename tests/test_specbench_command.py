"""The command that scores a result file of Spec-Bench: what it prints and writes, and what it refuses."""

import pytest
from test_specbench import BASE, OWN, changed, stored

from specdec_lib.specbench.__main__ import main


@pytest.fixture
def files(tmp_path):
    return stored(tmp_path / "own.jsonl", OWN), stored(tmp_path / "base.jsonl", BASE)


def test_the_command_prints_both_ways_of_counting(files, capsys, tmp_path):
    other = stored(tmp_path / "other.jsonl", changed(BASE, 1, turns=["tent"]))
    main([str(files[0]), "--baseline", str(other), "--csv", str(tmp_path / "table.csv")])
    said = capsys.readouterr().out
    assert "13.20 (" in said and "14.33" in said and "0.81 (" in said and "0.86" in said and "sums ÷ sums" in said
    assert "texts: 3 of 4 turns are the same, 0 only end sooner or later, 1 differ" in said
    assert "first difference: question 161, choice 1, turn 1, after 2 characters: 'xt', and the baseline 'nt'" in said
    assert (tmp_path / "table.csv").read_text().count("\n") == 4


def test_the_command_scores_what_both_have_when_it_is_asked_to(files, capsys, tmp_path):
    fewer = stored(tmp_path / "fewer.jsonl", BASE[:2])
    with pytest.raises(SystemExit):
        main([str(files[0]), "--baseline", str(fewer)])
    assert "the baseline lacks 81 (2 turns)" in capsys.readouterr().err
    main([str(files[0]), "--baseline", str(fewer), "--common"])
    assert "1 questions are in one file only: 81" in capsys.readouterr().out
    main([str(files[0])])
    assert "speed-up  " not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([str(files[0]), "--common"])
    assert "--common keeps the questions that two files have: it needs --baseline" in capsys.readouterr().err


def test_a_table_that_cannot_be_written_is_said_before_the_work_or_after_the_print(files, capsys, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path, complaint, printed in (("file/table.csv", "cannot be written to", False), ("folder", "folder cannot be written (", True)):
        with pytest.raises(SystemExit):
            main([str(files[0]), "--csv", str(tmp_path / path)])
        said = capsys.readouterr()
        assert complaint in said.err and ("13.20 (" in said.out) == printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.jsonl", "file", "folder", "own.jsonl"]
