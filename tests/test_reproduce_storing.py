import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import nbformat
import pytest

from specdec_lib.suite.reproduce import storing

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
    told = storing.format_notebook(stored)
    assert json.loads(told) == stored
    nbformat.validate(nbformat.reads(told, as_version=4))
    assert len(told) < 0.9 * len(json.dumps(stored, indent=1, ensure_ascii=False))


def test_an_output_with_quotes_and_backslashes_stays_what_it_is():
    nasty = notebook(
        {PLOTLY: {"x": '"}\\1\\g<0>'}, "text/plain": ["\\1 é"]},
        {"text/html": ['<td class="a">\\1</td>\n', "é"]},
    )
    assert json.loads(storing.format_notebook(nasty)) == nasty


def test_a_notebook_too_large_to_store_is_refused(tmp_path):
    large = notebook({"text/plain": "x" * storing.LARGEST_BYTES})
    (tmp_path / "run.ipynb").write_text(json.dumps(large))
    with pytest.raises(ValueError, match="allowed are 300000"):
        storing.store_outputs(tmp_path / "run.ipynb", tmp_path / "00_toy.ipynb")
    assert not (tmp_path / "00_toy.ipynb").exists()


def test_widget_views_are_not_stored():
    view, shown = {storing.WIDGET: {}, "text/plain": "HBox()"}, {"text/plain": ["4"]}
    made = notebook(view, shown, metadata={"papermill": {}, "tags": []})
    (cell,) = storing.without_run(made)["cells"]
    assert [output["data"] for output in cell["outputs"]] == [shown] and cell["metadata"] == {}
