"""The command that compares whole texts: what it prints, how it ends, and what it refuses."""

import pytest
from tiny import tiny_ladder

from specdec_lib.measure.compare import command as comparing
from specdec_lib.measure.ties import command
from specdec_lib.workload import load_ladder

FEW = ["--device", "cpu", "--dtype", "float32", "--limit", "1", "--max-new-tokens", "6"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The tiny ladder in place of the default one; folders that are named are loaded."""

    def load(target, draft, *, dtype, **options):
        own = target is not None or draft is not None
        return load_ladder(target, draft, dtype=dtype, **options) if own else tiny_ladder(dtype)

    monkeypatch.setattr(comparing, "load_ladder", load)


def test_the_command_prints_every_difference_and_fails_on_a_bug(capsys, monkeypatch):
    command.main(FEW)
    out = capsys.readouterr().out
    assert out.endswith("2 equal, 0 rounding, 0 bug, 0 one stops early\n")
    right = command.greedy_texts

    def wrong(ladder, prompt, tokens):
        texts = right(ladder, prompt, tokens)
        *begun, last = texts["plain"]
        other = (*begun, (last + 1) % ladder.target.vocabulary)
        return texts | {"speculative": tuple(begun), "generate": other}

    monkeypatch.setattr(command, "greedy_texts", wrong)
    with pytest.raises(SystemExit, match="1"):
        command.main(FEW)
    out = capsys.readouterr().out
    assert "plain against generate: bug: the texts part at generated token 5" in out
    assert out.endswith("0 equal, 0 rounding, 1 bug, 1 one stops early\n")


def test_what_a_models_own_generation_configuration_says_is_put_aside(ladder, monkeypatch):
    config, prompt = ladder.target.model.generation_config, ladder.encode("def f(x):")
    wanted = command.greedy_texts(ladder, prompt, 24)
    monkeypatch.setattr(config, "repetition_penalty", 1.8)
    monkeypatch.setattr(config, "no_repeat_ngram_size", 2)
    assert command.greedy_texts(ladder, prompt, 24) == wanted and len(set(wanted.values())) == 1
    assert ladder.target.model.generation_config is config


@pytest.mark.parametrize(
    "options,complaint",
    [
        (["--max-new-tokens", "4000"], "got 4000"),
        (["--target", "/no/such/folder"], "a ladder of your own has a target and a draft"),
    ],
)
def test_what_cannot_be_done_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        command.main([*FEW, *options])


def test_a_file_of_prompts_is_read(capsys, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"text": "def f(x):"}\n{"text": "def g(y):"}\n')
    command.main([*FEW, "--prompts", str(path), "--limit", "2"])
    out = capsys.readouterr().out
    assert "mine.jsonl/1, plain against generate: equal" in out
    assert out.endswith("4 equal, 0 rounding, 0 bug, 0 one stops early\n")
