"""The command that compares whole texts: what it prints, how it ends, and what it refuses."""

import json

import pytest

from specdec_lib.core.decode import decode
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.ties import command

FEW = ["--device", "cpu", "--dtype", "float32", "--limit", "1", "--max-new-tokens", "6"]


def test_the_command_prints_every_difference_and_fails_on_a_bug(capsys, monkeypatch):
    command.main(FEW)
    out = capsys.readouterr().out
    assert "plain against speculative: equal" in out and out.endswith(
        "2 equal, 0 rounding, 0 bug, 0 one stops early\n"
    )
    right = command.greedy_texts

    def wrong(ladder, prompt, tokens):
        texts = right(ladder, prompt, tokens)
        return texts | {
            "generate": (*texts["plain"][:-1], (texts["plain"][-1] + 1) % ladder.target.vocabulary)
        }

    monkeypatch.setattr(command, "greedy_texts", wrong)
    with pytest.raises(SystemExit):
        command.main(FEW)
    assert (
        "plain against generate: bug: the texts part at generated token 5"
        in capsys.readouterr().out
    )


def test_a_text_that_ends_early_is_a_fault_because_all_are_to_be_as_long(capsys, monkeypatch):
    right = command.greedy_texts
    monkeypatch.setattr(
        command,
        "greedy_texts",
        lambda *given: {
            way: text[: 5 if way == "generate" else 6] for way, text in right(*given).items()
        },
    )
    with pytest.raises(SystemExit, match="1"):
        command.main(FEW)
    assert capsys.readouterr().out.endswith("1 equal, 0 rounding, 0 bug, 1 one stops early\n")


def test_the_draft_of_the_command_is_a_tree(ladder, monkeypatch):
    asked = []

    def spied(target, draft, *given, **named):
        asked.append(draft)
        return decode(target, draft, *given, **named)

    monkeypatch.setattr(command, "decode", spied)
    texts = command.greedy_texts(ladder, ladder.encode("def f(x):"), 5)
    assert set(texts) == {"plain", "speculative", "generate"} and len(set(texts.values())) == 1
    plain, tree = asked
    assert isinstance(plain, NoDraft) and isinstance(tree, TreeDraft) and tree.budget == 16


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
        (["--limit", "0"], "a limit is at least 1 or None for all, got 0"),
        (["--max-new-tokens", "0"], "--max-new-tokens is 1 to "),
        (["--max-new-tokens", "4000"], "got 4000"),
        (["--prompts", "haiku"], "prompt sets are code, math, prose"),
        (["--prompts", "nothing.jsonl"], "there is no file nothing.jsonl"),
        (["--target", "/no/such/folder"], "a ladder of your own has a target and a draft"),
    ],
)
def test_what_cannot_be_done_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        command.main([*FEW, *options])


def test_a_file_of_prompts_is_read(capsys, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in ("def f(x):", "def g(y):"))
    )
    command.main([*FEW, "--prompts", str(path), "--limit", "2"])
    out = capsys.readouterr().out
    assert "mine.jsonl/1, plain against generate: equal" in out and out.endswith(
        "4 equal, 0 rounding, 0 bug, 0 one stops early\n"
    )
