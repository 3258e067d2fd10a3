"""Prompts of published sets and of one's own, and what is wrong with a damaged file."""

import json
import sys
from types import SimpleNamespace

import pytest
from fakes import assert_refused

from specdec_lib.core.files import DATA
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
    assert found[0].split == split_of(found[0].name) != found[1].split
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=rf'{name} cannot be had .*`pip install -e "\.\[hub\]"`'):
        load_prompts(name)


def test_the_split_of_a_name_never_changes():
    golden = [SPLITS[bit] for bit in (1, 0, 1, 0, 1, 1)]
    assert [split_of(f"gsm8k/{number}") for number in range(6)] == golden


@pytest.mark.parametrize("begin", ["", "\ufeff", "\n\n", "\ufeff \t\n"])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\r", "\n\n", "\r\n \r\n\t\r\n"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n", " \n"])
def test_what_an_editor_leaves_in_a_file_is_read(tmp_path, begin, between, end):
    path = tmp_path / "x.jsonl"
    line = '{"text": "a\u2028\\r\\n"}'  # line separators within a text are its own
    path.write_bytes((begin + line + between + '{"text": "b"}' + end).encode())
    found = load_prompts(str(path))
    assert [prompt.text for prompt in found] == ["a\u2028\r\n", "b"]
    assert [prompt.name for prompt in found] == ["x.jsonl/0", "x.jsonl/1"]
    before = (begin + between).replace("\r\n", "\n").replace("\r", "\n")
    assert found[1].origin == f"{path}, line {1 + before.count(chr(10))}"


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_in_utf_16_is_called_so(tmp_path, coding):
    path = tmp_path / "x.jsonl"
    path.write_bytes('{"text": "a"}\n'.encode(coding))
    with pytest.raises(ValueError, match=r"x\.jsonl is in UTF-16, or no text: save it as UTF-8"):
        load_prompts(path)


def test_lines_without_a_split_are_divided_evenly_and_once_for_all(tmp_path):
    lines = [{"text": f"prompt {number}"} for number in range(40)]
    for name in "abcdefgh":
        path = tmp_path / f"{name}.jsonl"
        before = []
        for count in (2, 3, 10, 11, 40):
            splits = [prompt.split for prompt in load_prompts(written(path, *lines[:count]))]
            assert splits[: len(before)] == before  # what is added changes no earlier line's
            assert abs(2 * splits.count("held-out") - count) <= 1
            before = splits
        first = {*zip(before[::2], before[1::2], strict=True)}
        assert first == {SPLITS, SPLITS[::-1]}  # which of a pair comes first is left to a hash
    lines[1:3] = [one | {"split": "held-out"} for one in lines[1:3]]  # a line may say so itself
    splits = [prompt.split for prompt in load_prompts(written(path, *lines[:4]))]
    assert splits[1:3] == ["held-out"] * 2 and {splits[0], splits[3]} == {*SPLITS}


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
    '{"text": "a"}\r\n\r\n\n{"text": \r\n': r"line 4: it is not JSON \(EOF [\w ]* at column \d+\)",
    "": r"is empty: a file of prompts has a line \{\"text\": …\} for each",
    " \r\n\n": "is empty",
    '{"text": "a"}\n\r\n{"text": "\xff"}\n': "line 3: it is not UTF-8",
}


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_line_is_named(tmp_path, content):
    for name in ("mine.jsonl", "code.jsonl"):
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"mine\.jsonl.*{DAMAGED[content]}"):
        load_prompts(tmp_path / "mine.jsonl", "all")
    with pytest.raises(ValueError, match=rf"damaged .*code\.jsonl.*{DAMAGED[content]}.*restore"):
        load_prompts("code", folder=tmp_path)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: load_prompts("humanevil"),
            "prompt sets are chat, code, summary, math, docstring, hum",
        ),
        (lambda: load_prompts("nothing.jsonl"), r"there is no file nothing\.jsonl .*No such file"),
        (lambda: load_prompts(DATA), "there is no file .*data that can be read .*Is a directory"),
        (lambda: load_prompts("code", ""), "held-out, all; got 'code' and ''"),
        (lambda: load_prompts("gsm8k", "test"), "held-out, all; got 'gsm8k' and 'test'"),
        (lambda: load_prompts("code", "held-out", 0), "limit of .* of 1 or more or None, got 0"),
    ],
)
def test_what_is_no_set_file_split_or_limit_is_refused(call, said):
    assert_refused(call, said)
