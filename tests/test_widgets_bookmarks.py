"""The text that brings a setting back: papermill takes its parameters, and Python its line."""

import ast
import json
import re
import shlex

import pytest
import yaml
from test_widgets_explorers import EXPLORERS, places

from specdec_lib.core.files import REPOSITORY
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce.plan import check_parameters

AT = {"budget": 3, "width": 2, "text": 'a "b" # c\nd'}
MADE_BY = re.compile(r"(?m)^(\w+) = widgets\.(\w+)\(")


def parts(text: str) -> tuple[str, dict, str, dict]:
    """Notebook and parameters of papermill's line; the variable of Python's, and what it turns."""
    place, parameters, variable, turned = "", {}, "explorer", {}
    for line in text.splitlines():
        if line.startswith("papermill "):
            _, place, _, option, content = shlex.split(line)
            assert option == "-y"
            parameters = yaml.safe_load(content)
        else:
            [statement] = ast.parse(line).body
            called = statement.value
            variable = called.func.value.id
            assert called.func.attr == "turn" and not called.args
            turned = {one.arg: ast.literal_eval(one.value) for one in called.keywords}
    return place, parameters, variable, turned


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """A machine that was not timed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECDEC_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def boxes(ladder, prompts, cache):
    return {name: make(ladder, prompts[:2]) for name, make in EXPLORERS.items()}


@pytest.mark.parametrize("name", EXPLORERS)
def test_what_is_shown_names_parameters_of_the_notebook_and_its_explorer(name, boxes, unchecked):
    box = boxes[name]
    place, parameters, variable, turned = parts(box.setting.value)
    notebook = REPOSITORY / f"notebooks/{box._bookmark.notebook}.ipynb"
    assert place in ("", str(notebook.relative_to(REPOSITORY)))
    kinds = {key: one["inferred_type_name"] for key, one in read_parameters(notebook).items()}
    check_parameters(parameters, kinds, notebook, "the explorer")
    assert set(turned) <= set(box.values())
    code = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    made = [name for cell in code for name, _ in MADE_BY.findall("".join(cell["source"]))]
    assert variable in made


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_setting_comes_back_by_its_text(name, boxes, ladder, prompts, unchecked):
    """Every knob is turned somewhere; then a new explorer gets what the text says."""
    box = boxes[name]
    for knob in box.values():
        before = box.values()
        for value in places(box.knobs[knob]):
            box.turn(**{knob: value})
            if "alert" not in box.words.value:
                break
            box.turn(**before)
    _, parameters, _, turned = parts(box.setting.value)
    again = EXPLORERS[name](ladder, prompts[:2])
    first = again.values()
    if "prompt" in parameters:  # a number there, a name here
        parameters["prompt"] = [*prompts][parameters["prompt"]].name
    known = {key: value for key, value in parameters.items() if key in first}
    again.turn(**known | turned)
    assert again.values() == box.values() != first
    assert again.words.value == box.words.value
    assert again.setting.value == box.setting.value


def test_a_knob_without_a_parameter_is_turned_by_python_where_it_is_not_at_its_start():
    mark = Bookmark("01_x", "it", ("budget",), lambda at: {"domain": "chat"}, always=("width",))
    place, parameters, variable, turned = parts(mark.text(AT, AT))
    assert (place, variable) == ("notebooks/01_x.ipynb", "it")
    assert parameters == {"budget": 3, "domain": "chat"} and turned == {"width": 2}
    *_, turned = parts(mark.text(AT, AT | {"text": ""}))
    assert turned == {"width": 2, "text": AT["text"]}
    assert parts(Bookmark("05_x").text(AT, AT)) == ("", {}, "explorer", {})
    assert parts(Bookmark().text(AT, {}))[3] == AT


def test_a_parameter_that_the_notebook_lacks_is_found():
    """The negative control of the test over all explorers."""
    notebook = REPOSITORY / "notebooks" / "01_tree_construction.ipynb"
    kinds = {key: one["inferred_type_name"] for key, one in read_parameters(notebook).items()}
    for wrong in ({"scout": "none"}, {"budget": 1.5}, {"domain": "poetry"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            check_parameters(wrong, kinds, notebook, "the explorer")
