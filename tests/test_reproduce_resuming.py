import os
import signal
import subprocess
import sys
import time

import pytest
from toys import GOOD, write_toy

from specdec_lib.core.files import file_digest
from specdec_lib.suite.gallery.manifest import Made, Manifest, read_manifest
from specdec_lib.suite.reproduce import command, plan, running
from specdec_lib.suite.reproduce.command import main


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
        while process.poll() is None and not (read_manifest(slow.manifest) and slow.kept.exists()):
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
