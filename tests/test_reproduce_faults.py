"""Faults that meet `specdec reproduce`: two runs at once, a full disk, a clock, a
broken parameters cell.
"""

import os
from pathlib import Path

import pytest
from toys import GOOD, write_toy

from specdec_lib.core.files import write_together
from specdec_lib.core.locking import only_process
from specdec_lib.suite.gallery.manifest import Manifest, read_manifest
from specdec_lib.suite.reproduce import plan, running
from tests.verbs import reproduce


def test_a_second_run_into_one_folder_is_refused_and_told_who_runs(toys, figures):
    """Control: the name that a killed process left behind holds nothing, and is replaced."""
    write_toy(toys, "00_toy", GOOD)
    (figures / "runs").mkdir(parents=True)
    owner = figures / "runs" / "lock.owner"
    with only_process(figures / "runs"):
        said = rf"runs is being written to by process {os.getpid()} on .+, since 2\d{{3}}-.* --out"
        with pytest.raises(ValueError, match=said):
            reproduce([], toys)
        assert not (figures / "00_toy.csv").exists()
    owner.write_text("process 1")
    with only_process(figures / "runs"):
        assert owner.read_text().startswith(f"process {os.getpid()} on ")
    assert not owner.exists()


def test_braces_in_a_folder_are_no_template(toys, tmp_path, monkeypatch):
    write_toy(toys, "00_toy", GOOD)
    folder = tmp_path / "a{width}b}{{{x}}"
    assert reproduce(["--out", str(folder)], toys) == 0
    assert (folder / "runs" / "00_toy.ipynb").is_file()


def test_the_figures_of_a_run_are_those_it_wrote_by_any_clock(toys, figures, monkeypatch):
    def write(run: plan.NotebookRun) -> str:
        write_together({figures / "00_new.csv": b"1", figures / "00_again.csv": b"1"})
        os.utime(figures / "00_new.csv", (1, 1))
        return ""

    figures.mkdir()
    for name in "00_again.csv", "00_other.csv":
        (figures / name).write_bytes(b"1")
    os.utime(figures / "00_other.csv", (4e9, 4e9))
    monkeypatch.setattr(running, "_papermill", write)
    run = plan.NotebookRun(write_toy(toys, "00_toy", GOOD), figures)
    assert running.run_notebook(run) == ""
    assert set(read_manifest(run.manifest).figures) == {"00_new.csv", "00_again.csv"}
    assert run.why() == ""


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_up_leaves_every_file_of_a_figure_as_it_was(tmp_path, monkeypatch):
    def fill(path: Path, content: bytes) -> None:
        path.touch()
        if path.name.startswith(".b"):
            full()

    files = {tmp_path / "a.html": b"new", tmp_path / "b.png": b"new"}
    for path in files:
        path.write_bytes(b"old")
    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(OSError, match="No space"):
        write_together(files)
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == [b"old", b"old"]


@pytest.mark.parametrize("place", ["papermill.execute_notebook", Manifest])
def test_a_full_disk_fails_one_notebook_and_leaves_what_was_kept(
    toys, figures, monkeypatch, capsys, place
):
    run = plan.NotebookRun(write_toy(toys, "00_toy", GOOD), figures)
    run.kept.parent.mkdir(parents=True)
    run.kept.write_text("earlier")
    monkeypatch.setattr(*((place, "write") if place is Manifest else (place,)), full)
    assert reproduce([], toys) == 1
    assert "00_toy.ipynb: OSError: [Errno 28] No space left" in capsys.readouterr().err
    assert run.kept.read_text() == "earlier"


@pytest.mark.parametrize("annotation", ["it", "list[int", "tuple[int]", "3", "dict[str]"])
@pytest.mark.parametrize("settings", [[], ["width=3"]])
def test_an_annotation_that_is_none_is_refused_by_notebook_and_cell(toys, annotation, settings):
    path = write_toy(toys, "00_toy", GOOD, f"depth: int = 1\nwidth: {annotation} = 2")
    with pytest.raises(ValueError) as refused:
        plan.plan_runs([path], toys, settings=settings)
    assert str(refused.value) == (
        f"00_toy.ipynb, parameters cell: width has the annotation {annotation!r}; allowed are int,"
        " float, str, bool, list, dict, list[…] and dict[…, …] of them"
    )
