"""Prompts of published sets and of one's own: small files in the published form, made here, and
what is wrong with a damaged one.
"""

import gzip
import json
import sys
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

from specdec_lib.workload import PUBLISHED, SPLITS, load_prompts
from specdec_lib.workload.prompts import split_of

HUMANEVAL = [
    {
        "task_id": f"HumanEval/{number}",
        "prompt": f'def add{number}(a, b):\n    """Add."""\n',
        "entry_point": f"add{number}",
        "canonical_solution": "    return a + b\n",
        "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
    }
    for number in range(3)
]
GSM8K = [
    {
        "question": f"Tom has {number} apples. How many?",
        "answer": f"He has {number}.\n#### {number}",
    }
    for number in range(3)
]
MMLU = [
    {
        "question": f"What is {number} + 1?",
        "subject": "elementary_mathematics",
        "choices": ["1", "2", "3", "None"],
        "answer": number,
    }
    for number in range(3)
]
SPEC_BENCH = [
    {
        "question_id": 81,
        "category": "writing",
        "turns": ["Write a post.", "Begin each sentence with A."],
        "reference": [],
    },
    {"question_id": 161, "category": "translation", "turns": ["Translate: Guten Tag"]},
    {
        "question_id": 321,
        "category": "math_reasoning",
        "turns": ["What is 2 + 2?"],
        "reference": ["4"],
    },
]
SETS = {"humaneval": HUMANEVAL, "gsm8k": GSM8K, "mmlu": MMLU, "spec-bench": SPEC_BENCH}
TEXTS = {
    "humaneval": ("HumanEval/1", 'def add1(a, b):\n    """Add."""\n', "humaneval"),
    "gsm8k": ("gsm8k/1", "Question: Tom has 1 apples. How many?\nAnswer:", "gsm8k"),
    "mmlu": (
        "mmlu/elementary_mathematics/1",
        "The following is a multiple choice question (with answer) about elementary mathematics."
        "\n\n"
        "What is 1 + 1?\nA. 1\nB. 2\nC. 3\nD. None\nAnswer:",
        "mmlu",
    ),
    "spec-bench": ("spec-bench/161", "Translate: Guten Tag", "spec-bench/translation"),
}


def written(path, lines, ending="\n"):
    path.write_text("".join(json.dumps(line) + ending for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("told", ["by its name", "by its fields"])
def test_a_published_set_is_read_from_its_file(tmp_path, name, told):
    path = written(tmp_path / "test.jsonl", SETS[name])
    found = (
        load_prompts(name, "all", source=path)
        if told == "by its name"
        else load_prompts(str(path), "all")
    )
    assert [len(found), (found[1].name, found[1].text, found[1].domain)] == [3, TEXTS[name]]
    assert found[1].origin == f"{path}, line 2" and all(
        prompt.split == split_of(prompt.name) for prompt in found
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_set_is_read_by_name_through_datasets(monkeypatch, name):
    asked = []

    def load_dataset(*given, **named):
        asked.append((given, named))
        return [dict(line) for line in SETS[name]]

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setattr("specdec_lib.workload.hub_sets.why_offline", lambda endpoint=None: "")
    found = load_prompts(name, "all", 2)
    assert (found[1].name, found[1].text, found[1].domain) == TEXTS[name] and len(found) == 2
    repository = {
        "humaneval": "openai/openai_humaneval",
        "gsm8k": "openai/gsm8k",
        "mmlu": "cais/mmlu",
        "spec-bench": "json",
    }[name]
    [(given, named)] = asked
    assert given == (repository,) and named["split"] == (
        "train" if name == "spec-bench" else "test"
    )
    assert named.get("name") == {
        "humaneval": "openai_humaneval",
        "gsm8k": "main",
        "mmlu": "all",
    }.get(name)
    assert (
        found[1].origin.endswith("row 2")
        and ("question.jsonl" if name == "spec-bench" else repository) in found[1].origin
    )


def test_the_rows_of_the_hub_are_checked_like_those_of_a_file(monkeypatch):
    damaged = [GSM8K[0], GSM8K[1] | {"question": None}]
    monkeypatch.setitem(
        sys.modules, "datasets", SimpleNamespace(load_dataset=lambda *given, **named: damaged)
    )
    monkeypatch.setattr("specdec_lib.workload.hub_sets.why_offline", lambda endpoint=None: "")
    with pytest.raises(
        ValueError, match="openai/gsm8k, main, test, row 2: 'question' is a text, got null"
    ):
        load_prompts("gsm8k")


def test_without_the_package_a_name_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        ValueError,
        match=r'gsm8k .*`datasets`: `pip install -e "\.\[hub\]"`; or give a local file',
    ):
        load_prompts("gsm8k")


def test_without_a_hub_a_name_says_why_it_cannot_be_had(monkeypatch):
    def load_dataset(*given, **named):
        raise ConnectionError("no answer")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        ValueError, match=r"humaneval .*openai/openai_humaneval.*HF_HUB_OFFLINE=1.*source=…"
    ):
        load_prompts("humaneval")


def test_a_set_that_cannot_be_reached_is_not_waited_for(monkeypatch):
    monkeypatch.setitem(
        sys.modules,
        "datasets",
        SimpleNamespace(load_dataset=lambda *given, **named: pytest.fail("requested all the same")),
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        "specdec_lib.workload.hub_sets.why_offline",
        lambda endpoint=None: f"{endpoint or 'the hub'} cannot be reached",
    )
    with pytest.raises(
        ValueError,
        match=r"spec-bench .*https://.*question\.jsonl: https://.* cannot be reached",
    ):
        load_prompts("spec-bench")


def test_mmlu_as_it_was_first_published_is_read(tmp_path):
    path = tmp_path / "elementary_mathematics_test.csv"
    path.write_text('What is 0 + 1?,1,2,3,None,A\n"What is\n1 + 1, say?",1,2,3,None,B\n')
    for found in (load_prompts("mmlu", "all", source=path), load_prompts(path, "all")):
        assert found[1].text.endswith(
            "about elementary mathematics.\n\n"
            "What is\n1 + 1, say?\nA. 1\nB. 2\nC. 3\nD. None\nAnswer:"
        )
        assert found[1].name == "mmlu/elementary_mathematics/1" and found[1].origin.endswith(
            "line 3"
        )
    for letters in ("BC", ""):
        path.write_text(f"What is 0 + 1?,1,2,3,None,{letters}\n")
        with pytest.raises(
            ValueError, match=rf"line 1: a row of MMLU has .*; got 6 columns, last \['{letters}'\]"
        ):
            load_prompts("mmlu", source=path)
    path.write_text("What is 0 + 1?,1,2,3,None,A\nWhat?,1,2,3,E\n")
    with pytest.raises(
        ValueError,
        match=r"line 2: .*4 choices and a letter, A to D; got 5 columns, last \['E'\]",
    ):
        load_prompts("mmlu", source=path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_two_splits_share_no_prompt_and_leave_none_out(tmp_path, name):
    lines = [
        line | ({"task_id": f"HumanEval/{n}"} if name == "humaneval" else {})
        for n, line in enumerate(SETS[name] * 20)
    ]
    lines = [
        line | ({"question_id": n} if name == "spec-bench" else {}) for n, line in enumerate(lines)
    ]
    path = written(tmp_path / "x.jsonl", lines)
    whole, *parts = (
        {prompt.name for prompt in load_prompts(name, split, source=path)}
        for split in ("all", *SPLITS)
    )
    assert parts[0] | parts[1] == whole and not parts[0] & parts[1] and min(map(len, parts)) > 15


def test_the_split_of_a_name_never_changes():
    assert [split_of(f"gsm8k/{number}") for number in range(6)] == [SPLITS[bit] for bit in GOLDEN]


GOLDEN = (1, 0, 1, 0, 1, 1)


@pytest.mark.parametrize(
    "kind",
    [
        "jsonl",
        "jsonl.gz",
        "json",
        "json.gz",
        "with a byte order mark",
        "with empty lines at the end",
        "CRLF",
    ],
)
def test_a_file_may_be_packed_or_come_from_another_system(tmp_path, kind):
    text = (
        json.dumps(GSM8K)
        if kind.startswith("json") and "l" not in kind
        else "\n".join(map(json.dumps, GSM8K)) + "\n"
    )
    path = tmp_path / f"x.{kind if kind.startswith('json') else 'jsonl'}"
    text = (
        "\ufeff" + text
        if "mark" in kind
        else text + "\n \n"
        if "empty" in kind
        else text.replace("\n", "\r\n")
        if kind == "CRLF"
        else text
    )
    path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    assert [prompt.text for prompt in load_prompts(str(path), "all")] == [
        f"Question: {line['question']}\nAnswer:" for line in GSM8K
    ]


def test_prompts_of_ones_own_need_a_text_alone(tmp_path):
    path = written(
        tmp_path / "mine.jsonl",
        [
            {"text": "def f("},
            {
                "text": "def g(",
                "name": "g",
                "domain": "code",
                "split": "development",
                "origin": "me",
            },
        ],
    )
    first, second = load_prompts(path, "all")
    assert (first.name, first.domain, first.origin) == (
        "mine.jsonl/0",
        "mine.jsonl",
        f"{path}, line 1",
    )
    assert (second.name, second.domain, second.split, second.origin) == (
        "g",
        "code",
        "development",
        "me",
    )
    assert load_prompts(path, "development")[-1] == second and load_prompts(path, "all", 1) == [
        first
    ]


DAMAGED = {
    '{"text": "a"}\n{"text": "b"\n{"text": "c"}\n': "line 2: .*Expecting ',' delimiter",
    '{"text": "a"}\n\n{"text": "c"}\n': "line 2: it is empty, and more lines follow",
    '{"text": "a"}\n["b"]\n': "line 2: a line is a JSON object, got a list",
    '{"text": "a"}\n{"name": "b"}\n': "line 2: the field 'text' is missing; there are 'name'",
    '{"text": "a"}\n{"text": 5}\n': r"line 2: 'text' is a text, got a whole number \(5\)",
    '{"text": "a"}\n{"text": true}\n': r"line 2: 'text' is a text, got true or false \(true\)",
    '{"text": "a"}\n{"text": " \\n"}\n': "line 2: 'text' is an empty text",
    '{"text": "a", "name": "x"}\n{"text": "b", "name": "x"}\n': r"line 2: .*'x' .*\(line 1\)",
    '{"text": "a", "split": "test"}\n': "line 1: .*development, held-out, got 'test'",
    '{"text": "a"}\n{"text": "b", "nmae": "x"}\n': r"line 2: .*; got \['nmae'\]",
    '{"prompt": "a"}\n': r"line 1: a prompt of your own has the field 'text'.*; got \['prompt'\]",
    "": "is empty",
    "\n\n": "is empty",
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
        ("humaneval", {"entry_point": None}, "'entry_point' is a text, got null"),
        ("gsm8k", {"answer": 5}, r"'answer' is a text, got a whole number \(5\)"),
        ("mmlu", {"choices": ["1", "2", "3"]}, "'choices' has at least 4 entries, got 3"),
        (
            "mmlu",
            {"choices": ["1", "2", "3", 4]},
            r"'choices\[3\]' is a text, got a whole number \(4\)",
        ),
        (
            "mmlu",
            {"answer": 4},
            "there are 4 choices and the answer is the number of one, 0 to 3; got 4 and 4",
        ),
        ("mmlu", {"answer": "B"}, r"'answer' is a whole number, got a text"),
        ("spec-bench", {"turns": []}, "'turns' has at least 1 entry, got 0"),
        ("spec-bench", {"turns": "Write."}, "'turns' is a list, got a text"),
        ("spec-bench", {"question_id": 81}, "the name 'spec-bench/81' was there before"),
    ],
)
def test_a_damaged_line_of_a_published_set_is_named(tmp_path, name, change, complaint):
    path = written(tmp_path / "x.jsonl", [SETS[name][0], SETS[name][1] | change])
    with pytest.raises(ValueError, match=f"line 2: {complaint}"):
        load_prompts(name, source=path)


def test_a_missing_field_of_a_published_set_is_named(tmp_path):
    path = written(
        tmp_path / "x.jsonl",
        [{key: value for key, value in HUMANEVAL[0].items() if key != "prompt"}],
    )
    with pytest.raises(
        ValueError,
        match="line 1: the field 'prompt' is missing; there are 'task_id', 'entry_point'",
    ):
        load_prompts("humaneval", source=path)


def test_a_damaged_prompt_file_of_ours_names_the_line(tmp_path):
    good = {"name": "a", "text": "def f(", "domain": "code", "split": "held-out", "origin": "x.py"}
    path = written(tmp_path / "code.jsonl", [good, good | {"name": "b", "text": 7}])
    with pytest.raises(
        ValueError,
        match=r"code\.jsonl .*line 2: 'text' is a text, got a whole number \(7\)\); restore",
    ):
        load_prompts("code", folder=tmp_path)
    written(path, [good, good])
    with pytest.raises(ValueError, match="line 2: the name 'a' was there before"):
        load_prompts("code", folder=tmp_path)


@pytest.mark.parametrize(
    "wrong,complaint",
    [
        (
            {"domain": "humanevil"},
            "prompt sets are code, math, prose, docstring, humaneval, gsm8k, mmlu, spec-bench, or"
            " a file",
        ),
        ({"domain": "nothing.jsonl"}, r"there is no file nothing\.jsonl"),
        (
            {"domain": "code", "source": "x.jsonl"},
            "a source is a file of humaneval, gsm8k, mmlu, spec-bench, got one for code",
        ),
        (
            {"domain": "gsm8k", "split": "test"},
            "splits development, held-out, all; got 'gsm8k' and 'test'",
        ),
    ],
)
def test_what_is_no_set_file_or_split_is_refused(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        load_prompts(**wrong)


def test_a_split_that_holds_nothing_is_refused_and_not_empty(tmp_path):
    path = written(tmp_path / "mine.jsonl", [{"text": "a", "split": "development"}])
    with pytest.raises(
        ValueError, match=r'holds 1 prompts and none is held-out; split="all" takes them all'
    ):
        load_prompts(path, "held-out")


def test_a_file_of_ones_own_is_taken_whole_unless_a_split_is_asked_for(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "".join(f'{{"text": "prompt {number}"}}\n' for number in range(8)), encoding="utf-8"
    )
    whole, held_out = load_prompts(path), load_prompts(path, "held-out")
    assert (
        len(whole) == 8
        and 0 < len(held_out) < 8
        and {prompt.split for prompt in held_out} == {"held-out"}
    )
