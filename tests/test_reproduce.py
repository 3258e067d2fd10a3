import json
from pathlib import Path

import pytest

from specdec_lib.reproduce import main, plan, running, storing

GOOD = "from pathlib import Path\nimport os\nPath(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv').write_text(str(width))\nprint(width)"


def write_toy(folder: Path, name: str, body: str, parameters: str = "width: int = 2  # branches per level") -> Path:
    """A notebook of a title, a parameters cell and one cell of code, as Lab would store it."""
    cells = [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": f"# {name}"},
        {"cell_type": "code", "id": "b", "metadata": {"tags": ["parameters"]}, "source": parameters, "execution_count": None, "outputs": []},
        {"cell_type": "code", "id": "c", "metadata": {}, "source": body.format(number=name[:2]), "execution_count": None, "outputs": []},
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}))
    return path


@pytest.fixture
def toys(tmp_path: Path) -> Path:
    return tmp_path / "notebooks"


def test_a_run_takes_parameters_writes_its_manifest_and_resumes(toys: Path, figures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_toy(toys, "00_toy", GOOD)
    before = path.read_bytes()
    assert main(["--set", "width=3"], notebooks=toys) == 0
    assert (figures / "00_toy.csv").read_text() == "3" and path.read_bytes() == before
    told = json.loads((figures / "runs" / "00_toy.json").read_text())
    assert told["parameters"] == {"width": 3} and told["figures"] == ["00_toy.csv"] and told["state"] == "finished"
    assert "finished" in capsys.readouterr().out.splitlines()[-1]
    assert main(["--set", "width=3"], notebooks=toys) == 0
    said = capsys.readouterr()
    assert "00_toy: unchanged since its last run, skipped" in said.err and "unchanged" in said.out.splitlines()[-1]


def test_a_failing_notebook_is_named_and_the_others_finish(toys: Path, figures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy(toys, "00_bad", "1 / 0")
    write_toy(toys, "01_good", GOOD)
    assert main(["--jobs", "2"], notebooks=toys) == 1
    said = capsys.readouterr()
    kept = figures / "runs" / "00_bad.ipynb"
    assert f"error: 00_bad.ipynb, cell In [2]: ZeroDivisionError: division by zero; the run is kept in {kept}" in said.err
    assert kept.exists() and (figures / "01_toy.csv").exists()
    assert [line.split()[:2] for line in said.out.splitlines()[1:]] == [["00_bad", "failed"], ["01_good", "finished"]]


def test_refresh_stores_outputs_and_no_trace_of_the_run(toys: Path) -> None:
    path = write_toy(toys, "00_toy", GOOD)
    assert main(["--refresh"], notebooks=toys) == 0
    stored = json.loads(path.read_text())
    assert stored["cells"][2]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["2\n"]}]
    assert [cell.get("execution_count") for cell in stored["cells"]] == [None, 1, 2]
    assert [cell["id"] for cell in stored["cells"]] == ["a", "b", "c"]
    assert [cell["metadata"] for cell in stored["cells"]] == [{}, {"tags": ["parameters"]}, {}]
    assert set(stored["metadata"]) == {"kernelspec", "language_info"} and "papermill" not in path.read_text()


def test_refresh_leaves_a_failing_notebook_as_it_was(toys: Path) -> None:
    path = write_toy(toys, "00_bad", "1 / 0")
    before = path.read_bytes()
    assert main(["--refresh"], notebooks=toys) == 1
    assert path.read_bytes() == before


def test_a_notebook_too_large_to_store_is_refused(tmp_path: Path) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "x" * storing.LARGEST_BYTES}
    executed = {"cells": [{"cell_type": "code", "metadata": {}, "source": "", "outputs": [output]}], "metadata": {}}
    (tmp_path / "run.ipynb").write_text(json.dumps(executed))
    with pytest.raises(ValueError, match="allowed are 300000"):
        storing.store(tmp_path / "run.ipynb", tmp_path / "00_toy.ipynb")
    assert not (tmp_path / "00_toy.ipynb").exists()


def test_widget_views_are_not_stored() -> None:
    view = {"output_type": "display_data", "data": {storing.WIDGET: {}, "text/plain": "HBox()"}, "metadata": {}}
    shown = {"output_type": "display_data", "data": {"text/plain": "4"}, "metadata": {"x": 1}}
    cell = {"cell_type": "code", "metadata": {"papermill": {}, "tags": []}, "source": "", "outputs": [view, shown]}
    tidy = storing.tidied({"cells": [cell], "metadata": {"widgets": {}}})
    assert tidy["cells"][0]["outputs"] == [{**shown, "metadata": {}}] and tidy["cells"][0]["metadata"] == {}


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["--set", "widht=3"], "no chosen notebook has a parameter 'widht'; there are width"),
        (["--set", "width=wide"], "00_toy declares width: int, got 'wide'"),
        (["--set", "width=2.0"], "00_toy declares width: int, got 2.0"),
        (["--set", "width"], "--set takes name=value, got 'width'"),
        (["--only", "07"], "--only 07 names no notebook; there are 00_toy"),
        (["--profile", "full"], "does not exist"),
        (["--refresh", "--set", "width=3"], "--refresh stores what the defaults give"),
        (["--jobs", "0"], "--jobs counts from 1, got 0"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(
    toys: Path, figures: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    write_toy(toys, "00_toy", GOOD)
    assert main(arguments, notebooks=toys) == 2
    assert reason in capsys.readouterr().err and not figures.exists()


def test_list_shows_parameters_and_runs_nothing(toys: Path, figures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_toy(toys, "00_toy", GOOD)
    assert main(["--list"], notebooks=toys) == 0
    assert capsys.readouterr().out.splitlines() == ["00_toy", "    width: int = 2  branches per level"]
    assert not figures.exists()


def test_the_full_profile_is_read_and_checked_and_a_setting_wins(toys: Path, figures: Path) -> None:
    path = write_toy(toys, "00_toy", GOOD)
    full = toys / "full" / "00.yml"
    full.parent.mkdir()
    full.write_text("width: 9\n")
    assert plan.planned([path], figures, profile="full")[0].parameters == {"width": 9}
    assert plan.planned([path], figures, profile="full", settings=["width=4"])[0].parameters == {"width": 4}
    for wrong, reason in (("widht: 9\n", "does not declare"), ("width: nine\n", "declares width: int, got 'nine'")):
        full.write_text(wrong)
        with pytest.raises(ValueError, match=reason):
            plan.planned([path], figures, profile="full")


def test_the_fingerprint_follows_cells_and_parameters_not_outputs(toys: Path, figures: Path) -> None:
    path = write_toy(toys, "00_toy", GOOD)
    first = plan.Run(path, figures).fingerprint
    path.write_text(path.read_text().replace('"execution_count": null', '"execution_count": 7'))
    assert plan.Run(path, figures).fingerprint == first
    assert plan.Run(path, figures, parameters={"width": 3}).fingerprint != first
    path.write_text(path.read_text().replace("print(width)", "print(width + 1)"))
    assert plan.Run(path, figures).fingerprint != first


def test_a_missing_figure_or_a_failed_run_is_run_again(toys: Path, figures: Path) -> None:
    run = plan.Run(write_toy(toys, "00_toy", GOOD), figures)
    figures.mkdir()
    run.manifest.parent.mkdir()
    (figures / "00_toy.csv").write_text("2")
    running._remember(run, run.fingerprint, running.Outcome("00_toy", "finished", 1.0, ("00_toy.csv",)))
    assert running.outcome(run).state == "unchanged"
    (figures / "00_toy.csv").unlink()
    assert running._earlier(run) is None
    running._remember(run, run.fingerprint, running.Outcome("00_toy", "failed", 1.0, (), "why"))
    assert running._earlier(run) is None


@pytest.mark.parametrize(
    "value, annotation, right",
    [
        (1, "int", True),
        (True, "int", False),
        (1, "float", True),
        ("1", "str", True),
        (None, "str", False),
        ([1, 2], "list[int]", True),
        ([1, "2"], "list[int]", False),
        ((1,), "list[int]", False),
        ({"a": [1.5]}, "dict[str, list[float]]", True),
        ({"a": 1}, "dict[str, str]", False),
    ],
)
def test_a_value_fits_its_annotation(value: object, annotation: str, right: bool) -> None:
    assert plan.fits(value, annotation) is right


def test_an_annotation_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(ValueError, match="got the annotation Path"):
        plan.fits("x", "Path")
