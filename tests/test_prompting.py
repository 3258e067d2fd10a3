"""The prompt sets of the drafts: requests chosen by their form, split by their files."""

import pytest

from specdec_lib.suite.distil.prompting import (
    FORMS,
    OPENING,
    PER_FILE,
    PER_SPLIT,
    WORDS,
    Request,
    chosen,
    from_files,
    opening,
    passage,
    source_files,
)
from specdec_lib.workload import SPLITS

PROSE = " ".join(f"word{number}" for number in range(70))


def function(name: str, *, about: str = PROSE, lines: int = 3, indent: str = "") -> str:
    """A documented function of so many lines of code."""
    body = "".join(f"{indent}    x = {number}\n" for number in range(lines - 1))
    return f'{indent}def {name}(x):\n{indent}    """{about}"""\n{body}{indent}    return x\n'


def test_an_opening_is_a_signature_with_its_docstring_and_none_of_the_code():
    about = "Return x, and say so at some length, because an opening has sixty characters."
    text = f"class A:\n{function('f', about=about, indent='    ')}"
    (found,) = from_files([("a/b.py", text)], opening)
    shown = f'def f(x):\n    """{about}"""'
    assert found == ("a/b.py:2", f"Complete this Python function:\n\n{shown}", "a/b.py")


@pytest.mark.parametrize(
    "text",
    [
        function("f", about="Too short."),
        function("f", about="long " * OPENING.stop),
        function("f", lines=1),
        function("f").replace('"""', "#"),
        "@wrapped\nasync " + function("f"),
        function("f") + "def broken(:\n",
    ],
)
def test_a_function_of_another_form_is_no_opening(text):
    assert not list(from_files([("a.py", text)], opening))


def test_a_passage_is_the_prose_of_a_docstring():
    whole = f"{PROSE}\n\n>>> example()\n\nColumns\n-------\nleft out".replace("\n", "\n    ")
    (found,) = from_files([("a.py", function("f", about=whole))], passage)
    name, asked, origin = found
    assert asked.endswith(PROSE) or f"\n\n{PROSE}\n\nQuestion: What is f for" in asked
    assert name.startswith("a.py#") and origin == "a.py"
    for words in (WORDS.start - 1, WORDS.stop):
        text = function("f", about="word " * words)
        assert not list(from_files([("a.py", text)], passage))


def test_of_both_kinds_of_question_there_are_some_and_few_per_file():
    files = [
        (f"{name}.py", "".join(function(f"f{one}", about=f"{PROSE} {name}{one}") for one in "abcd"))
        for name in "uvwxyz"
    ]
    for make in (opening, passage):
        found = list(from_files(files, make))
        assert len(found) == len(set(found)) == PER_FILE * len(files)
    assert {text.partition(" ")[0] for _, text, _ in found} == {"Summarize", "Read"}


def requests(count: int, origin: str = "file{}") -> list[Request]:
    return [(f"r{one}", f"text {one}", origin.format(one % 50)) for one in range(count)]


def test_a_file_is_of_one_split_and_order_and_repeats_do_not_matter():
    found = chosen("code", requests(400))
    assert found == chosen("code", [*reversed(requests(400)), *requests(9)])
    assert [one.split for one in found] == [SPLITS[0]] * PER_SPLIT + [SPLITS[1]] * PER_SPLIT
    one, other = ({each.origin for each in found if each.split == split} for split in SPLITS)
    assert one and other and one.isdisjoint(other)
    assert len({one.name for one in found}) == len(found) and found[0].name.startswith("code/r")
    assert {one.origin for one in chosen("chat", requests(400, ""))} == {"the target"}
    with pytest.raises(ValueError, match=f"{PER_SPLIT} development code prompts are wanted, got"):
        chosen("code", requests(20))


TAKEN = {
    "chat": ("How do I boil an egg?", "Write a poem\nabout rain."),
    "math": ("If 3 pens cost 1.50, what do 7 cost?", "A train goes 60 km in 2 hours.\nHow fast?"),
}
LEFT = {
    "chat": ("Why?", "How do I boil an egg", "Wie geht’s dir heute denn so?"),
    "math": ("How many pens are 3 pens?", "What is 12,5?", "Solve: 3 + 4 =", "Add 3 and 4 €s?"),
}


@pytest.mark.parametrize("domain", TAKEN)
def test_a_request_is_taken_by_its_form(domain):
    assert all(map(FORMS[domain].fullmatch, TAKEN[domain]))
    assert not any(map(FORMS[domain].fullmatch, LEFT[domain]))


def test_files_of_a_package_are_read_without_its_tests(tmp_path, monkeypatch):
    names = ("__init__.py", "b.py", "inner/c.py", "tests/test_b.py", "inner/test/d.py", "data.txt")
    for name in names:
        path = tmp_path / "made_up_package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x = '\xff'")
    monkeypatch.syspath_prepend(tmp_path)
    found = dict(source_files(["made_up_package"]))
    assert list(found) == [f"made_up_package/{name}" for name in names[:3]]
    assert set(found.values()) == {"x = '\ufffd'"}
