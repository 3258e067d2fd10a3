"""The encoder-decoder pair: what it is trained on, how it is made and loaded, and that its output
is the target's own.
"""

import json
import shutil
from collections import Counter
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.models.loading import load_seq2seq
from specdec_lib.suite.ladder import Recipe, pair, pairing
from specdec_lib.suite.ladder.corpus import SourceFile
from specdec_lib.suite.ladder.training import _step as one_step
from specdec_lib.workload import Pair, load_pair, load_prompts

MODULE = '''
class A:
    def mean(self, values):
        """The mean  of
        the values.

        It is %d.
        """
        total = sum(values)
        return total / len(values)

    async def wait(
        self, seconds
    ):
        "Wait for so many seconds, number %d."
        done = seconds + %d
        return done
'''
FILES = [
    SourceFile(f"x/{i}.py", f"# file {i}\n" + MODULE.replace("values", f"values_{i}") % (i, i, i))
    for i in range(60)
]
TINY = Recipe(
    layers=1, width=16, heads=2, tokens=8 * 512, positions=pair.WINDOW, batch_tokens=2 * pair.WINDOW
)


@pytest.fixture(scope="module")
def loaded() -> Pair:
    """The embedded pair in float32 on the CPU."""
    return load_pair(device="cpu")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(DATA / "ladder" / "tokenizer.json"))


def test_a_source_is_a_function_without_its_docstring_and_the_answer_its_first_paragraph():
    source, answer = pairing.asked(
        'def f(x):\n    """Twice\n    of x.\n\n    More.\n    """\n    y = 2 * x\n    return y\n'
    )
    assert (source, answer) == ("def f(x):\n    y = 2 * x\n    return y", "Twice of x.")
    assert (
        pairing.asked("async def g(\n    x,\n):\n    'One.'\n    y = x\n    return y")[0]
        == "async def g(\n    x,\n):\n    y = x\n    return y"
    )


def test_examples_are_within_their_limits_and_an_answer_ends_unless_it_was_cut(tokenizer):
    long = SourceFile(
        "x/y.py",
        f'def f(x):\n    """{"many words here " * 60}"""\n'
        f"    y = {'[' + '1, ' * 300 + ']'}\n    return y\n",
    )
    function, copied = pairing.examples([long], tokenizer)
    assert (len(function.source), len(function.answer), len(copied.source)) == (
        192,
        64,
        192,
    ) and function.answer[-1] != pairing.END
    assert copied.source[:60] == copied.answer[:60]
    short = pairing.examples(FILES[:1], tokenizer)
    assert len(short) == 2 and all(
        one.answer[-1] == pairing.END not in one.answer[:-1] for one in short
    )
    assert (
        len(pairing.examples([*FILES[:1]] * 3, tokenizer)) == 2
    )  # the same again teaches nothing new


def test_each_example_comes_once_per_epoch_padded_little(tokenizer):
    examples = pairing.examples(FILES, tokenizer)[:96]
    seen = Counter()
    for step in range(16):
        found = pairing.batch(examples, 6, 0, step)
        seen.update(
            tuple(row[sees].tolist()) for row, sees in zip(found.source, found.sees, strict=True)
        )
        assert (
            found.before.shape == found.after.shape == found.counts.shape
            and (found.before[:, 0] == pairing.END).all()
        )
        assert (
            found.before[:, 1:][found.counts[:, 1:]] == found.after[:, :-1][found.counts[:, 1:]]
        ).all()
    assert set(seen.values()) == {1} and len(seen) == 96
    assert (
        pairing.batch(examples, 6, 0, 3).source == pairing.batch(examples, 6, 0, 3).source
    ).all()


def test_the_prompts_are_whole_and_of_files_that_were_not_trained_on(loaded):
    data = loaded.card["data"]
    for split, files in (("development", "development_files"), ("held-out", "held_out_files")):
        prompts = load_prompts("docstring", split)
        assert len(prompts) == 80 and len({prompt.name for prompt in prompts}) == 80
        assert {prompt.origin for prompt in prompts} <= set(data[files])
        assert all(
            len(loaded.tokenizer.encode(prompt.text)) < 192 and prompt.domain == "docstring"
            for prompt in prompts
        )


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A maker of a tiny pair, and its folder."""
    monkeypatch.setattr(
        pair,
        "RECIPES",
        {"target": TINY, "draft": replace(TINY, width=8, heads=1, taught_tokens=4 * 512)},
    )
    monkeypatch.setattr(pairing, "PROMPTS", 2)
    monkeypatch.setattr(pair.corpus, "source_files", lambda packages: FILES)
    return pair.PairMaker(tmp_path / "pair", tmp_path / "cache")


def test_the_whole_recipe_runs_at_tiny_size_and_loads(tiny):
    card = tiny.make(packages=())
    found = load_pair(folder=tiny.folder, device="cpu")
    assert found.card == json.loads(json.dumps(card)) and set(card["models"]) == {"target", "draft"}
    assert (
        card["models"]["draft"]["learns_from"] == "answers, then the target's distribution"
        and card["models"]["draft"]["examples_seen"] == 24
    )
    assert 8 < card["models"]["target"]["held_out_bits_per_answer_token"] < 14
    assert len(load_prompts("docstring", "held-out", folder=tiny.folder.parent / "prompts")) == 2
    assert tiny.make(packages=())["files"] == card["files"]


def test_an_interrupted_run_ends_like_an_uninterrupted_one(tiny, tokenizer, tmp_path, monkeypatch):
    examples = pairing.examples(FILES, tokenizer)
    whole = tiny.model("target", examples)
    tiny = pair.PairMaker(tiny.folder, tmp_path / "parts")

    def stop_at(*arguments, **named):
        if stopped.append(1) or len(stopped) == 5:
            raise KeyboardInterrupt
        return one_step(*arguments, **named)

    stopped: list[int] = []
    monkeypatch.setattr("specdec_lib.suite.ladder.training._step", stop_at)
    monkeypatch.setattr(
        "specdec_lib.suite.ladder.training.time.monotonic", lambda: 1000 * len(stopped)
    )
    with pytest.raises(KeyboardInterrupt):
        tiny.model("target", examples)
    monkeypatch.undo()
    monkeypatch.setattr(pair, "RECIPES", {"target": TINY})
    parts = tiny.model("target", examples)
    assert len(stopped) == 5
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_prompt_is_the_source_and_the_decoder_begins_alone(loaded):
    prompt = load_prompts("docstring")[0]
    context = loaded.encode(prompt)
    assert (
        loaded.tokenizer.decode(context.source) == prompt.text
        and context.tokens == (0,)
        and context.prompt_tokens == 1
    )
    assert len(loaded.encode("x = 1\n" * 200).source) > 192  # nothing is cut in silence
    assert (
        loaded.max_gram.propose(context.extended(context.source[:2]), Chance(0)).tokens[1:4]
        == context.source[2:5]
    )


@torch.no_grad()
def generated(loaded: Pair, source: tuple[int, ...], length: int) -> tuple[int, ...]:
    given = torch.tensor([source])
    made = loaded.target.model.generate(
        given, attention_mask=torch.ones_like(given), do_sample=False, max_new_tokens=length
    )
    return tuple(made[0, 1:].tolist())


def test_greedy_output_is_that_of_generate_on_held_out_prompts(loaded):
    draft = ChainDraft(loaded.draft, length=4)
    for prompt in load_prompts("docstring", "held-out", 10):
        context = loaded.encode(prompt)
        made = decode(
            loaded.target,
            draft,
            context,
            Chance(0),
            max_new_tokens=48,
            stop_tokens=loaded.stop_tokens,
        )
        assert made.tokens == generated(loaded, context.source, 48)


@pytest.fixture
def stored(tmp_path):
    """A copy of the stored pair."""
    return shutil.copytree(DATA / "pair", tmp_path / "pair")


NAMES = ("card.json", "tokenizer.json", "target/model.safetensors", "draft/config.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_or_damaged_file_is_refused(stored, name):
    whole = (stored / name).read_bytes()
    (stored / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        load_pair(folder=stored)
    (stored / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        load_pair(folder=stored)


def test_a_card_that_lists_too_little_is_refused(stored):
    card = (stored / "card.json").read_text()
    (stored / "card.json").write_text(card.replace('"draft/model.safetensors"', '"draft/other"'))
    with pytest.raises(ValueError, match=r"does not list draft/model\.safetensors"):
        load_pair(folder=stored)


def test_a_folder_or_type_that_is_no_encoder_decoder_model_is_refused(tmp_path):
    for folder in (tmp_path, DATA / "ladder" / "draft"):
        with pytest.raises(ValueError, match="cannot be read as a model"):
            load_seq2seq(folder, "target", device="cpu")
    with pytest.raises(ValueError, match="float32, float64, bfloat16"):
        load_seq2seq(DATA / "pair" / "draft", "draft", dtype="int8")
