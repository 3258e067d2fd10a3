"""The command that compares whole texts: what it prints, how it ends, and what it refuses."""

import pytest
from tiny import tiny_ladder

from specdec_lib.measure import show_ties
from specdec_lib.measure.compare import command as comparing

FEW = ["--device", "cpu", "--dtype", "float32", "--limit", "1", "--max-new-tokens", "6"]


def test_the_command_prints_every_difference_and_fails_on_a_bug(capsys, monkeypatch):
    monkeypatch.setattr(comparing, "load_ladder", lambda *_, dtype, **__: tiny_ladder(dtype))
    show_ties.main(FEW)
    out = capsys.readouterr().out
    assert out.endswith("2 equal, 0 rounding, 0 bug, 0 one stops early\n")
    right = show_ties.greedy_texts

    def wrong(ladder, prompt, tokens):
        texts = right(ladder, prompt, tokens)
        *begun, last = texts["plain"]
        other = (*begun, (last + 1) % ladder.target.vocabulary)
        return texts | {"speculative": tuple(begun), "generate": other}

    monkeypatch.setattr(show_ties, "greedy_texts", wrong)
    with pytest.raises(SystemExit, match="1"):
        show_ties.main(FEW)
    out = capsys.readouterr().out
    assert "plain against generate: bug: the texts part at generated token 5" in out
    assert out.endswith("0 equal, 0 rounding, 1 bug, 1 one stops early\n")
    with pytest.raises(ValueError, match="got 4000"):
        show_ties.main([*FEW, "--max-new-tokens", "4000"])
