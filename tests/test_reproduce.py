import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from toys import GOOD, write_toy

from specdec_lib.core.files import file_digest
from specdec_lib.suite.gallery.manifest import Made, Manifest, read_manifest
from specdec_lib.suite.reproduce import command, plan, running
from specdec_lib.suite.reproduce.command import main
from specdec_lib.suite.reproduce.plan import check_value


def test_a_run_takes_parameters_writes_its_manifest_and_resumes(toys, figures, capsys):
    path = write_toy(toys, "00_toy", GOOD)
    before = path.read_bytes()
    assert main(["--set", "width=3"], notebooks=toys) == 0
    assert (figures / "00_toy.csv").read_text() == "3" and path.read_bytes() == before
    told = json.loads((figures / "runs" / "00_toy.json").read_text())
    assert told["parameters"] == {"width": 3} and told["state"] == "finished"
    assert told["figures"] == {"00_toy.csv": file_digest(figures / "00_toy.csv")}
    said = capsys.readouterr()
    assert "finished" in said.out.splitlines()[-1]
    assert f"--set: figures in {figures} are written over; --out FOLDER" in said.err
    apart = ["--set", "width=3", "--out", str(figures.parent / "apart")]
    assert main(apart, notebooks=toys) == 0 and "written over" not in capsys.readouterr().err
    assert main(["--set", "width=3"], notebooks=toys) == 0
    said = capsys.readouterr()
    assert "00_toy: unchanged since its last run, skipped" in said.err
    assert "unchanged" in said.out.splitlines()[-1]


def test_a_failing_notebook_is_named_and_the_others_finish(toys, figures, capsys):
    """Outputs are stored without a trace of the run; a notebook that fails stays as it was."""
    bad = write_toy(toys, "00_bad", "zero = 0\nwidth / zero")
    before, good = bad.read_bytes(), write_toy(toys, "01_good", GOOD)
    assert main(["--jobs", "2", "--refresh"], notebooks=toys) == 1
    said, kept = capsys.readouterr(), figures / "runs" / "00_bad.ipynb"
    for part in (
        "error: 00_bad.ipynb, code cell 2 of 2 (In [2]), which begins 'zero = 0':"
        " ZeroDivisionError: division by zero",
        "parameters: all as in the notebook",
        "| ----> 2 width / zero",
        f"the run is kept in {kept}",
    ):
        assert part in said.err
    assert kept.exists() and (figures / "01_toy.csv").exists() and bad.read_bytes() == before
    states = [line.split()[:2] for line in said.out.splitlines()[1:]]
    assert states == [["00_bad", "failed"], ["01_good", "finished"]]
    stored = json.loads(good.read_text())
    printed = {"name": "stdout", "output_type": "stream", "text": ["2\n"]}
    assert stored["cells"][2]["outputs"] == [printed]
    assert [cell.get("execution_count") for cell in stored["cells"]] == [None, 1, 2]
    assert [cell["metadata"] for cell in stored["cells"]] == [{}, {"tags": ["parameters"]}, {}]
    assert set(stored["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ("--set widht=3", "a parameter 'widht' (is 'width' meant?); there are width"),
        ("--set width=2.0", "00_toy declares width: int, got 2.0"),
        ("--set width", "--set takes name=value, got 'width'"),
        ("--set width=3 width=4", "--set takes each name once, got width=3, width=4"),
        ("--only 07", "--only 07 names no notebook; there are 00_toy"),
        ("--profile full", "the profile full of 00_toy cannot be read"),
        ("--refresh --set width=3", "--refresh stores what the defaults give"),
        ("--jobs 0", "--jobs counts from 1, got 0"),
        ("--check --refresh", "not allowed with argument"),
        ("--out /proc/nowhere", "the folder /proc/nowhere cannot be written to"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(toys, figures, arguments, reason):
    write_toy(toys, "00_toy", GOOD)
    with pytest.raises(ValueError, match=re.escape(reason)):
        main(arguments.split(), notebooks=toys)
    assert not figures.exists()


def test_list_shows_parameters_and_runs_nothing(toys, figures, capsys):
    write_toy(toys, "00_toy", GOOD)
    assert main(["--list", "--only", "00"], notebooks=toys) == 0
    assert capsys.readouterr().out == "00_toy\n    width: int = 2  branches per level\n"
    assert not figures.exists()


def test_the_full_profile_is_read_and_checked_and_a_setting_wins(toys, figures):
    path = write_toy(toys, "00_toy", GOOD)
    full = toys / "full" / "00.yml"
    full.parent.mkdir()
    full.write_text("width: 9\n")
    for settings, width in ([], 9), (["width=4"], 4):
        (run,) = plan.plan_runs([path], figures, profile="full", settings=settings)
        assert run.parameters == {"width": width}
    for wrong, reason in (
        ("widht: 9\n", "sets parameters of 00_toy, width; got"),
        ("width: nine\n", "declares width: int, got 'nine'"),
    ):
        full.write_text(wrong)
        with pytest.raises(ValueError, match=reason):
            plan.plan_runs([path], figures, profile="full")


def test_the_fingerprint_follows_cells_and_parameters_not_outputs(toys, figures):
    path = write_toy(toys, "00_toy", GOOD)
    first = plan.NotebookRun(path, figures).fingerprint
    path.write_text(path.read_text().replace('"execution_count": null', '"execution_count": 7'))
    assert plan.NotebookRun(path, figures).fingerprint == first
    assert plan.NotebookRun(path, figures, parameters={"width": 3}).fingerprint != first
    path.write_text(path.read_text().replace("print(width)", "print(width + 1)"))
    assert plan.NotebookRun(path, figures).fingerprint != first


@pytest.mark.parametrize(
    "value, annotation, right",
    [
        (1, "int", True),
        (True, "int", False),
        (1, "float", True),
        ([1, "2"], "list[int]", False),
        ({"a": [1.5]}, "dict[str, list[float]]", True),
        ("x", "Path", False),
        (1, "None", False),
    ],
)
def test_a_value_fits_its_annotation(value, annotation, right):
    with nullcontext() if right else pytest.raises(ValueError, match="declares size"):
        check_value("size", value, annotation, Path("00_toy.ipynb"))


def keep(run: plan.NotebookRun, state: str) -> None:
    """The manifest of a run that made 00_toy.csv."""
    run.manifest.parent.mkdir(parents=True, exist_ok=True)
    (run.figures / "00_toy.csv").write_text("2")
    files = {"00_toy.csv": file_digest(run.figures / "00_toy.csv")}
    Manifest("smoke", {}, run.fingerprint, state, Made.now(), 1.0, files).write(run.manifest)


def test_what_is_unchanged_is_skipped_and_what_is_not_says_why(toys, figures, capsys):
    run = plan.NotebookRun(write_toy(toys, "00_toy", GOOD), figures)
    assert run.why() == "never run in this folder"
    keep(run, "finished")
    assert run.why() == "" and running.run_notebook(run).state == "unchanged"
    for more, said in (
        ([], "unchanged, would be skipped"),
        (["--set", "width=3"], "would run: changed since its last run: parameters; with width=3"),
    ):
        assert main(["--dry-run", *more], notebooks=toys) == 0
        assert capsys.readouterr().out == f"00_toy: {said}\n"
    (figures / "00_toy.csv").write_text("3")
    assert run.why() == "not as the last run left it: 00_toy.csv"
    (figures / "00_toy.csv").unlink()
    assert run.why() == "not as the last run left it: 00_toy.csv"
    for state, reason in ("failed", "failed"), ("running", "was interrupted"):
        keep(run, state)
        assert run.why() == f"its last run {reason}"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"state": "finished"}', '{"notebook": "x", "figures": ["a.csv"]}']
)
def test_a_damaged_manifest_means_never_run(toys, figures, text):
    run = plan.NotebookRun(write_toy(toys, "00_toy", GOOD), figures)
    keep(run, "finished")
    run.manifest.write_text(text)
    assert read_manifest(run.manifest) is None and run.why() == "never run in this folder"


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_up_fails_one_notebook_and_not_the_rest(toys, figures, monkeypatch):
    monkeypatch.setattr(Manifest, "write", full)
    result = running.run_notebook(plan.NotebookRun(write_toy(toys, "00_toy", GOOD), figures))
    assert result.state == "failed" and "00_toy.ipynb" in result.error
    assert "No space left on device" in result.error


RUNNER = (
    "import sys; from pathlib import Path; from specdec_lib.suite.reproduce.command import main;"
    "main([], notebooks=Path(sys.argv[1]))"
)


def test_a_run_that_is_killed_is_resumed_and_swept_up(toys, figures, capsys):
    body = "import os, time\nif os.environ.get('SLOW'): time.sleep(120)\n" + GOOD
    slow = plan.NotebookRun(write_toy(toys, "01_slow", body), figures)
    command = [sys.executable, "-c", RUNNER, str(toys)]
    process = subprocess.Popen(command, env=os.environ | {"SLOW": "1"}, stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and not list(figures.glob("runs/.01_slow*.partial.ipynb")):
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert slow.why() == "its last run was interrupted"
    (figures / f".a.csv.{process.pid}.partial").write_text("cut o")
    assert main([], notebooks=toys) == 0
    said = capsys.readouterr().err
    assert "half-written by a run that was killed" in said
    assert "01_slow: finished" in said
    assert not [path for path in figures.rglob(".*")] and slow.kept.exists()


def test_an_interrupt_stops_the_rest_and_keeps_what_is_finished(toys, figures, capsys, monkeypatch):
    def interrupted(run: plan.NotebookRun, **_: object) -> running.Outcome:
        if run.name == "01_toy":
            raise KeyboardInterrupt
        return running.Outcome(run.name, "finished", 1.0)

    for name in ("00_toy", "01_toy", "02_toy"):
        write_toy(toys, name, GOOD)
    monkeypatch.setattr(command, "run_notebook", interrupted)
    assert main([], notebooks=toys) == 130
    said = capsys.readouterr()
    assert "the same command goes on from here" in said.err
    assert [line.split()[0] for line in said.out.splitlines()] == ["notebook", "00_toy"]
    assert (figures / "index.html").exists()
