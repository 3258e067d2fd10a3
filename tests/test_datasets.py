"""Prompts of published sets and of one's own, and what is wrong with a damaged file."""

import gzip
import json
import sys
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

from specdec_lib.workload import PUBLISHED, SPLITS, Prompt, load_prompts
from specdec_lib.workload.prompts import split_of
from specdec_lib.workload.schemas import QUESTIONS

SOLVED = {"canonical_solution": "    return a + b\n"}
SOLVED |= {"test": "def check(candidate):\n    assert candidate(1, 2) == 3\n"}
SETS = {  # three lines of each
    "humaneval": [
        {"task_id": f"HumanEval/{n}", "prompt": f'def add{n}(a, b):\n    """Add."""\n'}
        | {"entry_point": f"add{n}", **SOLVED}
        for n in range(3)
    ],
    "gsm8k": [
        {"question": f"Tom has {n} apples. How many?", "answer": f"He has {n}.\n#### {n}"}
        for n in range(3)
    ],
    "mmlu": [
        {"question": f"What is {n} + 1?", "subject": "elementary_mathematics", "answer": n}
        | {"choices": ["1", "2", "3", "None"]}
        for n in range(3)
    ],
    "spec-bench": [
        {"question_id": 81, "category": "writing", "turns": ["Write a post.", "Shorter."]},
        {"question_id": 161, "category": "translation", "turns": ["Translate: Guten Tag"]},
        {"question_id": 321, "category": "math_reasoning", "turns": ["2 + 2?"], "reference": ["4"]},
    ],
}
GSM8K = SETS["gsm8k"]
CHOICES = (
    "The following is a multiple choice question (with answer) about elementary mathematics.\n\n"
    "What is 1 + 1?\nA. 1\nB. 2\nC. 3\nD. None\nAnswer:"
)
TEXTS = {  # name, text and domain of the second
    "humaneval": ("HumanEval/1", 'def add1(a, b):\n    """Add."""\n', "humaneval"),
    "gsm8k": ("gsm8k/1", "Question: Tom has 1 apples. How many?\nAnswer:", "gsm8k"),
    "mmlu": ("mmlu/elementary_mathematics/1", CHOICES, "mmlu"),
    "spec-bench": ("spec-bench/161", "Translate: Guten Tag", "spec-bench/translation"),
}
HUB = {  # what `datasets` is asked for
    "humaneval": ("openai/openai_humaneval", {"name": "openai_humaneval", "split": "test"}),
    "gsm8k": ("openai/gsm8k", {"name": "main", "split": "test"}),
    "mmlu": ("cais/mmlu", {"name": "all", "split": "test"}),
    "spec-bench": ("json", {"data_files": QUESTIONS, "split": "train"}),
}


def written(path, lines, ending="\n"):
    path.write_text("".join(json.dumps(line) + ending for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_set_is_read_from_its_file(tmp_path, name):
    path = written(tmp_path / "test.jsonl", SETS[name])
    found = load_prompts(str(path), "all")
    assert len(found) == 3 and (found[1].name, found[1].text, found[1].domain) == TEXTS[name]
    assert found[1].origin == f"{path}, line 2"
    assert all(prompt.split == split_of(prompt.name) for prompt in found)


@pytest.fixture
def hub(monkeypatch):
    """In the place of the hub: sets by name, and a list of what was asked for."""
    asked, sets = [], dict(SETS)

    def load_dataset(repository, **options):
        asked.append((repository, options))
        return sets[next(name for name, (there, _) in HUB.items() if there == repository)]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setattr("specdec_lib.workload.schemas.why_offline", lambda endpoint=None: "")
    return asked, sets


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_set_is_read_by_name_through_datasets(hub, name):
    found = load_prompts(name, "all", 2)
    assert (found[1].name, found[1].text, found[1].domain) == TEXTS[name] and len(found) == 2
    assert hub[0] == [HUB[name]] and found[1].origin.endswith("row 2")


def test_the_rows_of_the_hub_are_checked_like_those_of_a_file(hub):
    hub[1]["gsm8k"] = [GSM8K[0], GSM8K[1] | {"question": None}]
    with pytest.raises(ValueError, match=r"openai/gsm8k, main, test, row 2: question: .* got None"):
        load_prompts("gsm8k")


def test_what_keeps_a_set_from_being_had_by_name_is_said(hub, monkeypatch):
    unreachable = "specdec_lib.workload.schemas.why_offline"
    monkeypatch.setattr(unreachable, lambda endpoint=None: f"{endpoint} cannot be reached")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(ValueError, match=rf"spec-bench .*: {QUESTIONS} cannot be reached"):
        load_prompts("spec-bench")
    assert hub[0] == []  # nothing was waited for
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    del hub[1]["humaneval"]  # `datasets` finds none: any error of its own
    with pytest.raises(ValueError, match=r"humaneval .*openai/openai_humaneval.* local file"):
        load_prompts("humaneval")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r'`datasets`: `pip install -e "\.\[hub\]"`; or give'):
        load_prompts("gsm8k")


def test_the_split_of_a_name_never_changes():
    golden = [SPLITS[bit] for bit in (1, 0, 1, 0, 1, 1)]
    assert [split_of(f"gsm8k/{number}") for number in range(6)] == golden


PLAIN = "\n".join(map(json.dumps, GSM8K)) + "\n"


@pytest.mark.parametrize(
    "name, text",
    [
        ("x.jsonl", PLAIN),
        ("x.jsonl.gz", PLAIN),
        ("x.json", json.dumps(GSM8K)),
        ("x.json.gz", json.dumps(GSM8K)),
        ("x.jsonl", "\ufeff" + PLAIN),
        ("x.jsonl", PLAIN + "\n \n"),
        ("x.jsonl", PLAIN.replace("\n", "\r\n")),
    ],
)
def test_a_file_may_be_packed_or_come_from_another_system(tmp_path, name, text):
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    found = [prompt.text for prompt in load_prompts(str(tmp_path / name), "all")]
    assert found == [f"Question: {line['question']}\nAnswer:" for line in GSM8K]


def test_prompts_of_ones_own_need_a_text_alone_and_are_taken_whole(tmp_path):
    told = {"name": "g", "domain": "code", "split": "development", "origin": "me"}
    more = [{"text": f"prompt {number}"} for number in range(8)]
    path = written(tmp_path / "mine.jsonl", [{"text": "def f("}, {"text": "def g("} | told, *more])
    first, second, *others = load_prompts(path)
    own = ("mine.jsonl/0", "mine.jsonl", f"{path}, line 1")
    assert (first.name, first.domain, first.origin) == own and len(others) == 8
    assert second == Prompt(text="def g(", **told)
    assert second in load_prompts(path, "development") and load_prompts(path, "all", 1) == [first]
    assert {prompt.split for prompt in load_prompts(path, "held-out")} == {"held-out"}


DAMAGED = {
    '{"text": "a"}\n{"text": "b"\n{"text": "c"}\n': "line 2: .*Expecting ',' delimiter",
    '{"text": "a"}\n\n{"text": "c"}\n': "line 2: it is not JSON",
    '{"text": "a"}\n{"name": "b"}\n': "line 2: text: .*required",
    '{"text": "a"}\n{"text": true}\n': r"line 2: text: .* got True",
    '{"text": "a"}\n{"text": " \\n"}\n': r"line 2: text: .* got ' \\n'",
    '{"text": "a", "name": "x"}\n{"text": "b", "name": "x"}\n': r"line 2: .*'x' .*\(line 1\)",
    '{"text": "a", "split": "test"}\n': "line 1: split: .*'development' or 'held-out', got 'test'",
    '{"text": "a"}\n{"text": "b", "nmae": "x"}\n': r"line 2: nmae: ",
    '{"prompt": "a"}\n': r"line 1: .*text: .*required",
    "": "is empty",
    '{"text": "a"}\n{"text": "\xff"}\n': "line 2: it is not UTF-8",
}


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_line_is_named(tmp_path, content):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"mine\.jsonl.*{DAMAGED[content]}"):
        load_prompts(path, "all")


@pytest.mark.parametrize(
    "name,change,complaint",
    [
        ("humaneval", {"entry_point": None}, "entry_point: .* got None"),
        ("gsm8k", {"answer": 5}, "answer: .* got 5"),
        ("mmlu", {"choices": ["1", "2", "3"]}, "choices: .* at least 4 items"),
        ("mmlu", {"answer": 4}, "answer: .* less than or equal to 3, got 4"),
        ("spec-bench", {"turns": []}, "turns: .* at least 1 item"),
        ("spec-bench", {"question_id": 81}, "the name 'spec-bench/81' was there before"),
    ],
)
def test_a_damaged_line_of_a_published_set_is_named(tmp_path, name, change, complaint):
    path = written(tmp_path / "x.jsonl", [SETS[name][0], SETS[name][1] | change])
    with pytest.raises(ValueError, match=f"line 2: {complaint}"):
        load_prompts(path)


def test_a_damaged_prompt_file_of_ours_names_the_line(tmp_path):
    good = {"name": "a", "text": "def f(", "domain": "code", "split": "held-out", "origin": "x.py"}
    for change, complaint in ({"name": "b", "text": 7}, "text: .* got 7"), ({}, "the name 'a' was"):
        written(tmp_path / "code.jsonl", [good, good | change])
        with pytest.raises(ValueError, match=rf"code\.jsonl .*line 2: {complaint}.*restore"):
            load_prompts("code", folder=tmp_path)


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        (("humanevil",), "prompt sets are chat, code, summary, math, docstring, humaneval, gsm8k"),
        (("nothing.jsonl",), r"there is no file nothing\.jsonl"),
        (("gsm8k", "test"), "splits development, held-out, all; got 'gsm8k' and 'test'"),
        (("code", "held-out", 0), "limit of load_prompts must be .* of 1 or more or None, got 0"),
    ],
)
def test_what_is_no_set_file_split_or_limit_is_refused(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        load_prompts(*wrong)


def test_a_split_that_holds_nothing_is_refused_and_not_empty(tmp_path):
    path = written(tmp_path / "mine.jsonl", [{"text": "a", "split": "development"}])
    with pytest.raises(ValueError, match='holds 1 prompts and none is held-out; split="all" takes'):
        load_prompts(path, "held-out")
