"""A draft of somebody's own in the bench: found, checked, raced, and its row among the records."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tiny import tiny_ladder

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees import TreeDraft
from specdec_lib.measure import bench, own_race, target_text
from specdec_lib.measure.bench import SMOKE
from specdec_lib.measure.own_draft import find_own
from specdec_lib.measure.own_race import prompts_of_record
from specdec_lib.measure.record_table import (
    checked_row,
    entered_rows,
    fastest_methods,
    records_page,
)
from specdec_lib.workload import DOMAINS
from tests.verbs import run

pytestmark = pytest.mark.usefixtures("unchecked")
GREEDY = Sampler(0)
DRAFTS = """
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees import TreeDraft


class Echo:
    def propose(self, context, chance):
        parents = range(len(context.tokens[-3:]))
        scores = [0.5 ** (depth + 1) for depth in parents]
        root = TokenTree.rooted(context)
        return root.grown(context.tokens[-3:], parents, source="echo", scores=scores)


copies = MaxGram(None, 4)


def of_models(ladder, sampler):
    return TreeDraft(ladder.draft, budget=4, match=ladder.match("draft", sampler))


class Yielding(TokenTree):
    def child(self, node, token):
        return next(iter(self.children(node)), None)


class Cheat:
    # its tree claims that whatever it guesses is what the target chose
    def propose(self, context, chance):
        more = {"parents": (-1, 0), "sources": ("context", "cheat")}
        last = context.tokens[-1]
        return Yielding(len(context) - 1, (last, 5), **more, scores=(1.0, 0.5), rows=(None, None))
"""
BROKEN = """
class NoMethod:
    pass


class OtherArguments:
    def propose(self, context):
        return None


class Fields:
    def __init__(self, length, width=2):
        pass

    def propose(self, context, chance):
        return None


class Tokens(Fields):
    def __init__(self):
        pass

    def propose(self, context, chance):
        return [3, 1]


class Fails(Tokens):
    def propose(self, context, chance):
        return context.tokens[-2]


class Elsewhere(Tokens):
    def propose(self, context, chance):
        from specdec_lib.core.tree import TokenTree

        return TokenTree(len(context), (context.tokens[-1],))


class Beyond(Tokens):
    def propose(self, context, chance):
        from specdec_lib.core.tree import TokenTree

        return TokenTree.rooted(context).grown([10**9], [0], source="", scores=[0.5])


def unmade():
    raise RuntimeError("no\\nweights")


number = 3
"""
REFUSED = {
    "NoMethod": "it is <broken_drafts.NoMethod .*, and a draft has a method propose",
    "OtherArguments": r"propose takes other arguments \(too many positional arguments\); a draft",
    "Fields": "it takes length without a default; give defaults, or name a function",
    "Tokens": r"propose returned \[3, 1\] after 1 token; a draft has .*TokenTree\.rooted",
    "Fails": "propose after 1 token raised IndexError: tuple index out of range",
    "Elsewhere": "proposes after 1 token does not fit: a tree is rooted at its context's last",
    "Beyond": "does not fit: the tokens of the target must be below",
    "unmade": "making it raised RuntimeError: no weights",
    "number": "it is 3, and a draft has a method propose",
    "Nothing": "broken_drafts has no Nothing, it has NoMethod, OtherArguments, ",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with drafts and with what is none."""
    (tmp_path / "own_drafts.py").write_text(DRAFTS)
    (tmp_path / "broken_drafts.py").write_text(BROKEN)
    (tmp_path / "unread_drafts.py").write_text("import nothing_of_this_name\n")
    (tmp_path / "json.py").write_text("class Echo: pass\n")
    (tmp_path / "time.py").write_text("class Echo: pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("own_drafts", "broken_drafts"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_draft_is_refused_in_one_line_that_says_why(name, folder):
    named = f"broken_drafts:{name}"
    with pytest.raises(ValueError, match=f"^--mine {named}: .*{REFUSED[name]}") as said:
        find_own(named).draft(tiny_ladder(), GREEDY)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(
    "named, said",
    [
        ("own_drafts", "--mine is MODULE:NAME, such as my_draft:MyDraft"),
        ("own_drafts:", "--mine is MODULE:NAME"),
        ("own drafts:Echo", "--mine is MODULE:NAME"),
        ("../own_drafts:Echo", "--mine is MODULE:NAME"),
        ("absent:Echo", r"--mine absent:Echo: there is no absent\.py in "),
        ("torch.nn:Module", r"there is no torch/nn\.py in "),
        ("unread_drafts:Echo", "importing unread_drafts raised ModuleNotFoundError: No module"),
        ("time:Echo", "time is also a part of Python, which was imported; give your file"),
        ("json:Echo", "json is also .*, which was imported; give your file a name of its own"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(named, said, folder):
    with pytest.raises(ValueError, match=said):
        find_own(named)


def test_an_object_a_class_and_a_function_make_a_draft(folder):
    ladder = tiny_ladder()
    drafts = {
        name: find_own(f"own_drafts:{name}").draft(ladder, GREEDY)
        for name in ("Echo", "copies", "of_models")
    }
    assert isinstance(drafts["copies"], MaxGram) and drafts["copies"].length == 4
    match = ladder.match("draft", GREEDY)
    assert drafts["of_models"] == TreeDraft(ladder.draft, budget=4, match=match)
    assert type(drafts["Echo"]).__name__ == "Echo"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The race runs the tiny ladder on two prompts of one domain."""
    monkeypatch.setattr(target_text, "DOMAINS", DOMAINS[:1])
    monkeypatch.setattr(bench, "SMOKE", replace(SMOKE, prompts=(2, 1, 1), tokens=8))
    monkeypatch.setattr(own_race, "racing_ladder", lambda edition: tiny_ladder())


@pytest.mark.parametrize("name, exact", [("Echo", True), ("Cheat", False)])
def test_a_draft_races_beside_ours_and_the_last_line_is_its_row(name, exact, folder, small, capsys):
    """The control is a tree that lies about what the target chose."""
    status = run("bench", "--mine", f"own_drafts:{name}", "--smoke", "--edition", "int8")
    shown = capsys.readouterr().out
    assert status == int(not exact) and shown.count(f"own_drafts:{name} ÷ ours, ") == 2
    assert "greedy, 2 prompts" in shown and "T = 1, top-k 50, 1 prompts" in shown
    fastest = fastest_methods(own_race._race_of_ideas("int8"))
    assert "autoregressive" in shown and all(method in shown for method in fastest)
    said, _, row = shown.splitlines()[-1].partition(": ")
    assert said == "no record, for it stands on other numbers of prompts than ours"
    assert f"| int8 | `own_drafts:{name}` | 1 embedded |" in row
    if exact:
        assert checked_row(row) == row
    else:
        with pytest.raises(ValueError, match="only a draft that passed the exactness test"):
            checked_row(row)


def test_nothing_is_timed_for_what_is_no_draft(folder, small, monkeypatch):
    monkeypatch.setattr(own_race, "race_prompts", lambda *_, **__: pytest.fail("timed"))
    with pytest.raises(ValueError, match="--mine broken_drafts:Tokens: propose returned"):
        run("bench", "--mine", "broken_drafts:Tokens", "--smoke")


@pytest.mark.parametrize("option", ["--out x", "--others 2", "--settings 3"])
def test_options_of_the_whole_bench_are_refused(option):
    with pytest.raises(ValueError, match="--mine takes no --out, --others or --settings"):
        run("bench", "--mine", "a:B", *option.split())


def test_a_record_stands_on_as_many_prompts_as_ours():
    stored = pd.read_csv(own_race.ideas_file(own_race.RACED))
    assert prompts_of_record("exact") * len(DOMAINS) == stored.prompt.nunique()


def test_entered_rows_stay_and_stand_in_their_place():
    table = records_page(())
    ours = table.splitlines()[2]
    machine, target, _, prompts, _, drawn, exact, date = ours.strip("| ").split(" | ")
    cells = [machine, target, "`a:B`", prompts, "0.50", drawn, exact, date]
    entered = f"| {' | '.join(cells)} |"
    page = f"<!-- records: begin -->\n{table}\n{entered}\n<!-- records: end -->"
    assert entered_rows(page) == [entered]
    both = records_page(entered_rows(page)).splitlines()
    assert both.index(entered) == 2 and len(both) == len(table.splitlines()) + 1
    wrongs = (
        entered.replace("0.50", "fast"),
        entered.replace("| `a:B`", ""),
        entered.replace("embedded", "mine.jsonl"),
        entered.replace(f"| {target} |", "| bfloat16 |"),
        entered.replace(drawn, "–"),
    )
    for wrong in wrongs:
        with pytest.raises(ValueError, match="a record"):
            records_page([wrong])
    with pytest.raises(ValueError, match="needs the marks"):
        entered_rows("nothing")
