"""`specdec reproduce --grid`: a notebook over combinations of parameters, here and on workers."""

from pathlib import Path

import pandas as pd
import pytest
from distributed import LocalCluster
from toys import write_toy

from specdec_lib.suite.reproduce import grid as grids
from tests.verbs import reproduce

TABLE = (
    "import os\nimport pandas as pd\nfrom pathlib import Path\n"
    "table = pd.DataFrame([{{'twice': 2 * width}}])\n"
    "table.to_csv(Path(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv'), index=False)"
)
PARAMETERS = "width: int = 2\nname: str = 'a'"


@pytest.fixture
def grid(tmp_path: Path, monkeypatch) -> Path:
    """A file with four combinations of parameters of the toy notebook; the cache is empty."""
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "grid.yml"
    file.write_text("width: [3, 4]\nname: [a, b]\n")
    return file


def run(grid: Path, toys: Path, out: Path, *more: str) -> int:
    return reproduce(["--only", "00", "--grid", str(grid), "--out", str(out), *more], toys)


def test_every_combination_is_run_and_the_tables_stand_side_by_side(grid, toys, tmp_path):
    write_toy(toys, "00_toy", TABLE, PARAMETERS)
    assert run(grid, toys, tmp_path / "out") == 0
    found = pd.read_csv(tmp_path / "out" / "00_toy.csv")
    assert [*zip(found.width, found.name, strict=True)] == [(3, "a"), (3, "b"), (4, "a"), (4, "b")]
    assert found.twice.tolist() == [6, 6, 8, 8]
    told = pd.read_csv(tmp_path / "out" / "grid.csv")
    assert told.error.isna().all() and (told.seconds > 0).all()
    kept = [*(tmp_path / "out" / "runs" / "00_toy").iterdir()]
    assert len(kept) == 4 and all((one / "runs" / "00_toy.ipynb").is_file() for one in kept)


def test_a_run_that_fails_is_told_and_tried_again_and_the_others_are_kept(
    grid, toys, tmp_path, capsys, monkeypatch
):
    write_toy(toys, "00_toy", TABLE.replace("table =", "assert width < 4\ntable ="), PARAMETERS)
    assert run(grid, toys, tmp_path / "out") == 1
    said = capsys.readouterr().err
    failed = tmp_path / "out" / "runs" / "00_toy" / "002_width=4_name=a"
    assert "AssertionError" in said and f"the run is kept in {failed}\n" in said
    assert said.count("the run is kept in") == 2 and (failed / "runs" / "00_toy.ipynb").is_file()
    told = pd.read_csv(tmp_path / "out" / "grid.csv")
    assert told.error.isna().tolist() == [True, True, False, False]
    again = []
    monkeypatch.setattr(grids, "run_notebook", lambda one: again.append(one.parameters) or "")
    assert run(grid, toys, tmp_path / "out") == 0
    assert again == [{"width": 4, "name": "a"}, {"width": 4, "name": "b"}]


@pytest.mark.parametrize(
    "content, said",
    [
        ("wide: [1]", "00_toy has no parameter wide; there are "),
        ("wide: [1]\n2: [1]", "00_toy has no parameter 2, wide; there are "),
        ("width: 3", "a list of values for each parameter"),
        ("width: []", "a list of values for each parameter"),
        ("- 3", "a list of values for each parameter"),
        ("width: [3, x]", "width: Input should be a valid integer, got 'x'"),
        ("width: [0]", "counts from 1, got 0"),
        ("width: [[", "cannot be read"),
        (f"width: {[*range(1, 1002)]}", "at most 1,000 runs, got 1,001"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_runs(content, said, toys, tmp_path, monkeypatch):
    write_toy(toys, "00_toy", TABLE, PARAMETERS)
    monkeypatch.setattr(grids, "run_notebook", lambda one: pytest.fail("ran"))
    (tmp_path / "grid.yml").write_text(content)
    with pytest.raises(ValueError, match=said):
        run(tmp_path / "grid.yml", toys, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_wrong_request_is_refused(grid, toys, tmp_path):
    for name in "00_toy", "01_toy":
        write_toy(toys, name, TABLE, PARAMETERS)
    with pytest.raises(ValueError, match="needs a folder --out"):
        reproduce(["--only", "00", "--grid", str(grid)], toys)
    with pytest.raises(ValueError, match="name it with --only, one of 00_toy, 01_toy"):
        reproduce(["--grid", str(grid), "--out", str(tmp_path / "out")], toys)
    with pytest.raises(ValueError, match="width is set for all runs too"):
        run(grid, toys, tmp_path / "out", "--set", "width=3")
    with pytest.raises(ValueError, match="--scheduler goes with --grid"):
        reproduce(["--scheduler", "tcp://127.0.0.1:1"], toys)


def test_workers_run_it_too(grid, toys, tmp_path, monkeypatch):
    write_toy(toys, "00_toy", TABLE, PARAMETERS)
    assert run(grid, toys, tmp_path / "here") == 0
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "other"))
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as local:
        address = local.scheduler_address
        assert run(grid, toys, tmp_path / "there", "--scheduler", address) == 0
    here, there = (tmp_path / place / "00_toy.csv" for place in ("here", "there"))
    assert here.read_bytes() == there.read_bytes()
