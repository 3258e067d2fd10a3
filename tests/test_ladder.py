"""The recipe: what is trained on, that an interrupted run ends like an uninterrupted one, and that
every step leaves what it says.
"""

import itertools
import json
import operator
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from specdec_lib.suite.ladder import Maker, Recipe, bits_per_byte, making, train
from specdec_lib.suite.ladder.corpus import (
    END_OF_TEXT,
    SourceFile,
    docstrings,
    documents,
    encode,
    functions,
    source_files,
    train_tokenizer,
)
from specdec_lib.suite.ladder.problems import problems
from specdec_lib.suite.ladder.training import _step as one_step
from specdec_lib.suite.ladder.training import build
from specdec_lib.workload import MATCH, load_ladder

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
TINY = Recipe(
    layers=1, width=16, heads=2, tokens=8 * 256, positions=32, vocabulary=300, batch_tokens=256
)
STREAM = np.random.default_rng(0).integers(300, size=2000).astype(np.uint16)
MODULE = '''
class A:
    def mean(self, values):
        """The mean.

        Of the values.
        """
        total = sum(values)
        return total / len(values)

    def short(self):
        """Too short."""
        return 1

    def bare(self):
        x = 1
        return x
'''


def test_functions_are_dedented_and_split_after_the_docstring():
    (found,) = functions(MODULE)
    assert (
        found.opening
        == 'def mean(self, values):\n    """The mean.\n\n    Of the values.\n    """\n'
    )
    assert found.body == "    total = sum(values)\n    return total / len(values)\n"
    assert functions("def broken(:") == docstrings("def broken(:") == []


def test_files_of_no_split_share_a_name_and_tests_are_left_out():
    files = list(source_files(()))
    names = [file.name for file in files]
    assert len(set(names)) == len(names) == len(files) > 300 and "stdlib/textwrap.py" in names
    assert not any("/test/" in name or "/tests/" in name for name in names)
    shares = {
        split: sum(file.split == split for file in files) / len(files)
        for split in ("training", "development", "held-out")
    }
    assert sum(shares.values()) == 1 and all(
        0.02 < shares[split] < 0.12 for split in ("development", "held-out")
    )


def test_a_package_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="'no_such_package' is not installed"):
        list(source_files(("no_such_package",)))


def test_documents_hold_training_files_alone_and_are_the_same_each_time():
    files = [SourceFile(f"x/{i}.py", f"# file {i}\n" + MODULE) for i in range(40)]
    texts = documents(files)
    assert texts == documents(files)
    kept = {file.text for file in files if file.split == "training"}
    assert {text for text in texts if text.startswith("# file")} == kept and len(kept) < 40
    assert any(text.startswith("def mean") for text in texts) and any(
        text.startswith("Question:") for text in texts
    )


def test_every_word_problem_is_worked_right():
    for question, answer in itertools.islice(problems(3), 300):
        for left, sign, right, result in [step.split()[:4] for step in _steps(answer)]:
            assert OPERATIONS[sign](int(left), int(right)) == int(result)
        assert question.endswith("Answer:") and answer.rstrip().endswith(
            f"The answer is {_steps(answer)[-1].split()[3]}."
        )


def _steps(answer: str) -> list[str]:
    return [
        f"{a} {sign} {b} {c}"
        for a, sign, b, c in re.findall(r"(\d+) ([-+*/]) (\d+) = (\d+)", answer)
    ]


def test_a_document_ends_with_end_of_text():
    tokenizer = train_tokenizer(["def f(x):\n    return x\n"] * 3, vocabulary=300)
    stream = encode(tokenizer, ["def f(x):\n", "x\n"])
    assert stream.dtype == np.uint16 and (stream == tokenizer.token_to_id(END_OF_TEXT)).sum() == 2


def test_an_interrupted_training_ends_like_an_uninterrupted_one(tmp_path, monkeypatch):
    whole = train(TINY, STREAM, tmp_path / "whole.safetensors")

    class Interrupted(Exception):
        pass

    seen: list = []

    def stop_at(*arguments, **named):
        if len(seen) == 4:
            raise Interrupted
        seen.append(arguments)
        return one_step(*arguments, **named)

    times = itertools.count(0, 1000)
    monkeypatch.setattr("specdec_lib.suite.ladder.training.time.monotonic", lambda: next(times))
    monkeypatch.setattr("specdec_lib.suite.ladder.training._step", stop_at)
    with pytest.raises(Interrupted):
        train(TINY, STREAM, tmp_path / "parts.safetensors")
    monkeypatch.undo()
    parts = train(TINY, STREAM, tmp_path / "parts.safetensors")
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_checkpoint_without_the_optimisers_memory_would_end_elsewhere(tmp_path, monkeypatch):
    """The control of the test above: weights alone are not enough to go on from."""
    half = replace(TINY, tokens=TINY.tokens // 2)
    begin = train(half, STREAM, tmp_path / "half.safetensors")
    whole = train(TINY, STREAM, tmp_path / "whole.safetensors")
    rest = train(half, STREAM, tmp_path / "rest.safetensors", begin=begin)
    assert any(
        (one - other).abs().max() > 1e-3
        for one, other in zip(whole.parameters(), rest.parameters(), strict=True)
    )


def test_a_checkpoint_of_another_run_or_a_damaged_one_is_refused(tmp_path):
    checkpoint = tmp_path / "model.safetensors"
    model = train(TINY, STREAM, checkpoint)
    for recipe, stream, teacher in (
        (replace(TINY, tokens=512), STREAM, None),
        (TINY, STREAM[::-1], None),
        (TINY, STREAM, model),
    ):
        with pytest.raises(ValueError, match="made by another recipe"):
            train(recipe, stream, checkpoint, teacher=teacher)
    checkpoint.write_bytes(checkpoint.read_bytes()[:500])
    with pytest.raises(ValueError, match="is damaged"):
        train(TINY, STREAM, checkpoint)


def test_training_lowers_the_loss_and_a_teacher_is_followed(tmp_path):
    stream = np.tile(np.arange(50, dtype=np.uint16), 40)
    recipe = replace(TINY, tokens=60 * TINY.batch_tokens)
    model = train(recipe, stream, tmp_path / "model.safetensors")
    assert bits_per_byte(model, stream[:200], 200) < 0.8 * bits_per_byte(
        build(TINY), stream[:200], 200
    )
    train(recipe, stream, tmp_path / "pupil.safetensors", teacher=model)
    losses = [
        json.loads(line)["loss"] for line in (tmp_path / "pupil.jsonl").read_text().splitlines()
    ]
    assert losses[-1] < losses[0]


def test_bits_per_byte_of_a_uniform_model_are_those_of_its_vocabulary():
    model = build(TINY).eval()
    with torch.no_grad():
        model.lm_head.weight.zero_()
    assert bits_per_byte(model, STREAM[:101], 50) == pytest.approx(2 * np.log2(300), rel=1e-3)


def test_a_stream_without_one_batch_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a batch needs 257 tokens, the stream has 100"):
        train(TINY, STREAM[:100], tmp_path / "model.safetensors")


def test_the_whole_recipe_runs_at_tiny_size_and_loads(tmp_path, monkeypatch):
    monkeypatch.setattr(
        making,
        "RECIPES",
        {"target": TINY} | dict.fromkeys(("middle", "draft"), replace(TINY, taught_tokens=512)),
    )
    monkeypatch.setattr(making.corpus, "VOCABULARY", 300)
    monkeypatch.setattr(making, "KATZ_TOKENS", 1000)
    monkeypatch.setattr("specdec_lib.suite.ladder.sampling.LENGTH", 8)
    monkeypatch.setattr("specdec_lib.suite.ladder.sampling.ROWS", 16)
    monkeypatch.setattr(making, "make_prompts", lambda files, tokenizer, folder: {})
    monkeypatch.setattr(
        making.corpus,
        "source_files",
        lambda packages: [SourceFile(f"x/{i}.py", f"# file {i}\n" + MODULE * 5) for i in range(60)],
    )
    monkeypatch.setattr(
        making.corpus, "train_tokenizer", lambda texts: train_tokenizer(texts, vocabulary=300)
    )
    maker = Maker(tmp_path / "ladder", tmp_path / "cache")
    card = maker.make(packages=())
    ladder = load_ladder(folder=tmp_path / "ladder", device="cpu")
    assert ladder.card == json.loads(json.dumps(card)) and set(card["models"]) == {
        "target",
        "middle",
        "draft",
    }
    assert (
        card["models"]["draft"]["learns_from"] == "text, then the target's distribution"
        and ladder.katz.vocabulary == 300
    )
    (tmp_path / "ladder" / MATCH).write_text("[]")
    again = maker.make(packages=())
    assert (
        again["files"] == card["files"] and not (tmp_path / "ladder" / MATCH).exists()
    )  # match tables of other models are not kept
