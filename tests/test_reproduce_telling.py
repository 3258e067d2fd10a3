"""What a run says, compares, reads and stores."""

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import nbformat
import pytest
from toys import GOOD, write_toy

from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce import command, storing
from specdec_lib.suite.reproduce.command import main

TIMED = (
    "import time\nfrom pathlib import Path\nimport os\n"
    "table = 'width,build_seconds\\n%d,%r\\n' % (width, time.time())\n"
    "Path(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv').write_text(table)"
)


def test_check_compares_tables_but_for_seconds(toys, figures, capsys):
    write_toy(toys, "00_toy", TIMED)
    write_toy(toys, "01_toy", TIMED)
    assert main(["--only", "00"], notebooks=toys) == 0
    table = figures / "00_toy.csv"
    before = table.read_text()
    (figures / "01_toy.csv").write_text(before.replace("\n2,", "\n3,"))
    assert main(["--check", "--jobs", "2"], notebooks=toys) == 1
    said = '01_toy.csv: DataFrame.iloc[:, 0] (column name="width") are different'
    told = capsys.readouterr().out
    assert said in told and "00_toy.csv" not in told and table.read_text() == before


TIMES = ("seconds", "lookup_microseconds", "tokens_per_second", "ms_per_token")
TABLES = [
    ("a,b\n1,2\n", "a,b\n1,2\n", ""),
    *((f"a,{name}\n1,2\n", f"a,{name}\n1,3\n", "") for name in TIMES),
    ("a,second_guess\n1,2\n", "a,second_guess\n1,3\n", 'column name="second_guess".*2.*3'),
    ("a,b\n1,2\n", "a,c\n1,2\n", "columns are different"),
    ("a\n1\n", "a\n1\n2\n", "shape mismatch"),
]


@pytest.mark.parametrize("before, after, found", TABLES)
def test_tables_are_compared(tmp_path, before, after, found):
    one, other = tmp_path / "before", tmp_path / "after"
    for folder, text in ((one, before), (other, after)):
        folder.mkdir()
        (folder / "00_toy.csv").write_text(text)
    differences = "".join(command.table_differences(one, other, "00"))
    assert re.fullmatch(f"00_toy.csv: .*{found}.*" if found else "", differences)
    (other / "00_toy.csv").unlink()
    assert [*command.table_differences(one, other, "00")] == [f"00_toy.csv is only in {one}"]


@pytest.mark.parametrize(
    "parameters, found",
    [
        ("width: int = 2  # branches", {"width": ("int", "2", "branches")}),
        ("width = 2", {"width": ("None", "2", "")}),
        ("", {}),
    ],
)
def test_parameters_are_read_with_their_types_and_comments(toys, parameters, found):
    path = write_toy(toys, "00_{toy}", GOOD, parameters)
    names = "inferred_type_name", "default", "help"
    read = read_parameters(path).items()
    assert {name: tuple(one[part] for part in names) for name, one in read} == found
    path.write_text("[]")
    with pytest.raises(ValueError, match="is no notebook"):
        read_parameters(path)


NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
PLOTLY = "application/vnd.plotly.v1+json"


def notebook(*data: dict, metadata: Mapping = MappingProxyType({})) -> dict:
    outputs = [{"output_type": "display_data", "data": one, "metadata": {}} for one in data]
    cell = {"cell_type": "code", "id": "a", "execution_count": 1, "metadata": {**metadata}}
    cell |= {"source": ["x = 1\n", "x"], "outputs": outputs}
    return {"cells": [cell], "metadata": {"widgets": {}}, "nbformat": 4, "nbformat_minor": 5}


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_text_is_the_same_notebook_and_shorter(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    told = storing.format_notebook(copy.deepcopy(stored))
    assert json.loads(told) == stored
    nbformat.validate(nbformat.reads(told, as_version=4))
    assert len(told) < 0.9 * len(json.dumps(stored, indent=1, ensure_ascii=False))


def test_an_output_with_quotes_and_backslashes_stays_what_it_is():
    nasty = notebook(
        {PLOTLY: {"x": '"}\\1\\g<0>'}, "text/plain": ["\\1 é"]},
        {"text/html": ['<td class="a">\\1</td>\n', "é"]},
    )
    assert json.loads(storing.format_notebook(copy.deepcopy(nasty))) == nasty


def test_widget_views_are_not_stored():
    view, shown = {storing.WIDGET: {}, "text/plain": "HBox()"}, {"text/plain": ["4"]}
    made = notebook(view, shown, metadata={"papermill": {}, "tags": []})
    (cell,) = storing.without_run(made)["cells"]
    assert [output["data"] for output in cell["outputs"]] == [shown] and cell["metadata"] == {}
