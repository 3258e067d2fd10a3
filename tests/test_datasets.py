"""Prompts of published sets and of one's own, and what is wrong with a damaged file."""

import json
import sys
from types import SimpleNamespace

import pytest
from fakes import refusals

from specdec_lib.workload import SPLITS, Prompt, load_prompts
from specdec_lib.workload.prompts import PUBLISHED, QUESTIONS, split_of

MMLU = {"question": "What is 1 + 1?", "subject": "mathematics", "choices": ["1", "2", "3", "None"]}
CHOICES = (
    "The following is a multiple choice question (with answer) about mathematics.\n\n"
    "What is 1 + 1?\nA. 1\nB. 2\nC. 3\nD. None\nAnswer:"
)
SETS = {  # what `datasets` is asked for, a line, and its prompt
    "humaneval": ("openai/openai_humaneval", {"prompt": "def f(a):\n"}, "def f(a):\n"),
    "gsm8k": ("openai/gsm8k", {"question": "How {many}?"}, "Question: How {many}?\nAnswer:"),
    "mmlu": ("cais/mmlu", MMLU, CHOICES),
    "spec-bench": ("json", {"turns": ["Write a post.", "Shorter."]}, "Write a post."),
}


def written(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_set_is_read_by_name_through_datasets(monkeypatch, name):
    where, line, text = SETS[name]
    asked = []

    def load_dataset(**options):
        asked.append(options)
        return [line] * 3

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    found = load_prompts(name, "all", 2)
    assert (found[1].name, found[1].text, found[1].domain) == (f"{name}/1", text, name)
    assert len(found) == 2 and found[1].origin.endswith("row 2")
    assert asked[0]["path"] == where and asked[0].get("data_files") in (None, QUESTIONS)
    assert all(prompt.split == split_of(prompt.name) for prompt in found)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=rf'{name} cannot be had .*`pip install -e "\.\[hub\]"`'):
        load_prompts(name)


def test_the_split_of_a_name_never_changes():
    golden = [SPLITS[bit] for bit in (1, 0, 1, 0, 1, 1)]
    assert [split_of(f"gsm8k/{number}") for number in range(6)] == golden


@pytest.mark.parametrize("begin, end", [("", "\n"), ("\ufeff", "\n"), ("", "\r\n")])
def test_a_file_may_come_from_another_system(tmp_path, begin, end):
    text = begin + '{"text": "a"}' + end + '{"text": "b"}' + end + " \n"
    (tmp_path / "x.jsonl").write_bytes(text.encode())
    assert [prompt.text for prompt in load_prompts(str(tmp_path / "x.jsonl"))] == ["a", "b"]


def test_prompts_of_ones_own_need_a_text_alone_and_are_taken_whole(tmp_path):
    told = {"name": "g", "domain": "code", "split": "development", "origin": "me"}
    more = [{"text": f"prompt {number}"} for number in range(8)]
    path = written(tmp_path / "mine.jsonl", {"text": "def f("}, {"text": "def g("} | told, *more)
    first, second, *others = load_prompts(path)
    own = ("mine.jsonl/0", "mine.jsonl", f"{path}, line 1")
    assert (first.name, first.domain, first.origin) == own and len(others) == 8
    assert second == Prompt(text="def g(", **told)
    assert second in load_prompts(path, "development") and load_prompts(path, "all", 1) == [first]
    assert {prompt.split for prompt in load_prompts(path, "held-out")} == {"held-out"}
    written(path, {"text": "a", "split": "development"})
    with pytest.raises(ValueError, match='holds 1 prompts and none is held-out; split="all" takes'):
        load_prompts(path, "held-out")


DAMAGED = {
    '{"text": "a"}\n{"text": "b"\n{"text": "c"}\n': "line 2: .*EOF while parsing",
    '{"text": "a"}\n{"name": "b"}\n': "line 2: text: .*required",
    '{"text": "a"}\n{"text": true}\n': r"line 2: text: .* got True",
    '{"text": "a"}\n{"text": " \\n"}\n': r"line 2: text: .* got ' \\n'",
    '{"text": "a", "name": "x"}\n{"text": "b", "name": "x"}\n': "line 2: .*'x' was there before",
    '{"text": "a", "split": "test"}\n': "line 1: split: .*'development' or 'held-out', got 'test'",
    '{"text": "a"}\n{"text": "b", "nmae": "x"}\n': r"line 2: nmae: ",
    "[1]": "line 1: the line: ",
    "": "it is not JSON",
    '{"text": "a"}\n{"text": "\xff"}\n': "it is not UTF-8",
}


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_line_is_named(tmp_path, content):
    for name in ("mine.jsonl", "code.jsonl"):
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"mine\.jsonl.*{DAMAGED[content]}"):
        load_prompts(tmp_path / "mine.jsonl", "all")
    with pytest.raises(ValueError, match=rf"damaged .*code\.jsonl.*{DAMAGED[content]}.*restore"):
        load_prompts("code", folder=tmp_path)


test_what_is_no_set_file_split_or_limit_is_refused = refusals(
    (
        lambda: load_prompts("humanevil"),
        "prompt sets are chat, code, summary, math, docstring, hum",
    ),
    (lambda: load_prompts("nothing.jsonl"), r"there is no file nothing\.jsonl"),
    (lambda: load_prompts("gsm8k", "test"), "held-out, all; got 'gsm8k' and 'test'"),
    (lambda: load_prompts("code", "held-out", 0), "limit of .* of 1 or more or None, got 0"),
)
