"""`specdec reproduce`: notebooks run once, resume, and say what they do and why; what is stored."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from toys import GOOD, write_toy

from specdec_lib.core.files import file_digest
from specdec_lib.suite import notebook
from specdec_lib.suite.command import main as specdec
from specdec_lib.suite.gallery.manifest import Manifest, made_here, read_manifest
from specdec_lib.suite.notebook import NOTEBOOKS
from specdec_lib.suite.reproduce import plan, running
from tests.verbs import reproduce


def test_a_run_takes_parameters_writes_its_manifest_and_resumes(toys, figures, capsys):
    path = write_toy(toys, "00_toy", GOOD)
    before = path.read_bytes()
    assert reproduce(["--set", "width=3"], toys) == 0
    assert (figures / "00_toy.csv").read_text() == "3" and path.read_bytes() == before
    told = json.loads((figures / "runs" / "00_toy.json").read_text())
    assert told["parameters"] == {"width": 3} and told["state"] == "finished"
    assert told["figures"] == {"00_toy.csv": file_digest(figures / "00_toy.csv")}
    said = capsys.readouterr()
    assert said.out == "00_toy: runs, never run in this folder; with width=3\n"
    assert "00_toy: finished after " in said.err
    assert reproduce(["--set", "width=3"], toys) == 0
    said = capsys.readouterr()
    assert said.out == "00_toy: unchanged since its last run; with width=3\n"
    assert said.err == f"all figures: {figures / 'index.html'}\n"


def test_a_failing_notebook_is_named_and_the_others_finish(toys, figures, capsys):
    """Outputs are stored without a trace of the run; a notebook that fails stays as it was."""
    bad = write_toy(toys, "00_bad", "zero = 0\nwidth / zero")
    before, good = bad.read_bytes(), write_toy(toys, "01_good", GOOD)
    assert reproduce(["--refresh"], toys) == 1
    said, kept = capsys.readouterr().err, figures / "runs" / "00_bad.ipynb"
    failed = "error: 00_bad.ipynb, code cell In [2], which begins 'zero = 0': ZeroDivisionError"
    assert failed in said and f"the run is kept in {kept}" in said
    assert kept.exists() and (figures / "01_toy.csv").exists() and bad.read_bytes() == before
    stored = json.loads(good.read_text())
    printed = {"name": "stdout", "output_type": "stream", "text": ["2\n"]}
    assert stored["cells"][2]["outputs"] == [printed]
    assert [cell.get("execution_count") for cell in stored["cells"]] == [None, 1, 2]
    assert [cell["metadata"] for cell in stored["cells"]] == [{}, {"tags": ["parameters"]}, {}]
    assert set(stored["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ("--set widht=3", "--set widht: no chosen notebook has it; there are width"),
        (
            "--set width=2.0",
            "--set width: Input should be a valid integer, got 2.0; 00_toy",
        ),
        ("--set width=0", "--set width: counts from 1, got 0"),
        ("--set width", "--set takes name=value, each name once, got 'width'"),
        ("--set width=3 width=4", "--set takes name=value, each name once, got 'width=4'"),
        ("--only 07", "--only 07 names no notebook; there are 00_toy"),
        ("--refresh --set width=3", "--refresh stores what the defaults give"),
        ("--check --refresh", "does not go with"),
        ("--jobs 0", "--jobs counts from 1, got 0"),
        ("--jobs 2 --grid grid.yml", "--jobs does not go with --grid"),
        ("--out /proc/nowhere", "the folder /proc/nowhere cannot be written to"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(toys, figures, arguments, reason):
    write_toy(toys, "00_toy", GOOD)
    with pytest.raises(ValueError, match=re.escape(reason)):
        reproduce(arguments.split(), toys)
    assert not figures.exists()


LIMITED = """max_new_tokens: int = 4
temperatures: list[float] = [0.0]
domains: list[str] = ["chat"]
runtime: str = "fast"
seed: int = 0
stored: bool = True
verdicts: list[str] = []"""


@pytest.mark.parametrize(
    "given, reason",
    [
        ("max_new_tokens=0", "--set max_new_tokens: counts from 1, got 0"),
        (
            "max_new_tokens=x",
            "--set max_new_tokens: Input should be a valid integer, got 'x'; ",
        ),
        ("temperatures=[0.5,-1]", "--set temperatures: a temperature is 0 or more, got -1"),
        (
            "domains=['chta']",
            "--set domains: one of chat, code, summary, math, humaneval, gsm8k, mmlu, spec-bench,"
            " or a file that ends in .jsonl, got 'chta'",
        ),
        ("domains=[]", "--set domains: a list of one or more is allowed, got []"),
        ("runtime=quick", "--set runtime: one of reference, fast, int8, auto, got 'quick'"),
        ("seed=-1", "--set seed: counts from 0, got -1"),
    ],
)
def test_a_value_out_of_its_limits_is_refused_by_the_parameters_name_and_no_kernel_starts(
    figures, capsys, monkeypatch, given, reason
):
    """Through the command, whose line names no option that it lacks."""
    monkeypatch.setattr(running, "run_notebook", lambda *_, **__: pytest.fail("a kernel starts"))
    with pytest.raises(SystemExit, match="2"):
        specdec(["reproduce", "--set", *given.split()])
    said = capsys.readouterr().err
    assert said.startswith(f"specdec reproduce: {reason}") and "--max-new-tokens" not in said
    assert not figures.exists()


def test_the_least_values_and_empty_lists_that_are_allowed_are_taken(toys, figures):
    path = write_toy(toys, "00_toy", "print(seed)", LIMITED)
    given = "seed=0 stored=False verdicts=[] max_new_tokens=1 temperatures=[0]"
    given += " domains=['math','gsm8k','mine.jsonl']"
    (run,) = plan.plan_runs([path], figures, settings=given.split())
    wanted = {"seed": 0, "stored": False, "verdicts": [], "max_new_tokens": 1}
    domains = ["math", "gsm8k", "mine.jsonl"]  # all that `load_prompts` reads for a ladder
    assert run.parameters == wanted | {"temperatures": [0], "domains": domains}


def test_list_shows_parameters_and_runs_nothing(toys, figures, capsys):
    write_toy(toys, "00_toy", GOOD)
    write_toy(toys, "01_toy", GOOD, "width = 2")
    write_toy(toys, "02_toy", GOOD, "").with_name("03_other.ipynb").write_text("[]")
    assert reproduce(["--list", "--only", "00", "01_toy", "02"], toys) == 0
    shown = "00_toy\n    width: int = 2  branches per level\n01_toy\n    width: None = 2\n02_toy\n"
    assert capsys.readouterr().out == shown and not figures.exists()
    with pytest.raises(ValueError, match="is no notebook"):
        reproduce(["--list"], toys)


def test_the_full_profile_is_read_and_checked_and_a_setting_wins(toys, figures):
    path = write_toy(toys, "00_toy", GOOD)
    full = toys / "full" / "00.yml"
    full.parent.mkdir()
    full.write_text("width: 9\n")
    for settings, width in ([], 9), (["width=4"], 4):
        (run,) = plan.plan_runs([path], figures, profile="full", settings=settings)
        assert run.parameters == {"width": width}
    full.write_text("widht: 9\nwidth: nine")
    reason = "full/00.yml width: .* got 'nine'; widht: Extra .*, got 9; 00_toy declares width: int"
    with pytest.raises(ValueError, match=reason):
        plan.plan_runs([path], figures, profile="full")


@pytest.mark.parametrize(
    "text, annotation, right",
    [
        ("1", "int", True),
        ("True", "int", False),
        ("1", "float", True),
        ("nan", "float", False),
        ("[1, '2']", "list[int]", False),
        ("{'a': [1.5]}", "dict[str, list[float]]", True),
        ("x", "str", True),
        ("[" * 5000, "int", False),
    ],
)
def test_a_value_fits_its_annotation_or_is_refused_in_a_short_line(text, annotation, right):
    size = {"size": plan.parse_value(text, annotation)}
    try:
        plan.check_parameters(size, {"size": annotation}, Path("00_toy.ipynb"), "--set")
        assert right
    except ValueError as refused:
        said = rf"--set size.*Input .*declares size: {re.escape(annotation)}"
        assert not right and re.fullmatch(said, str(refused)) and len(str(refused)) < 250


def keep(run: plan.NotebookRun, state: str) -> None:
    """The manifest of a run that made 00_toy.csv."""
    run.manifest.parent.mkdir(parents=True, exist_ok=True)
    (run.figures / "00_toy.csv").write_text("2")
    files = {"00_toy.csv": file_digest(run.figures / "00_toy.csv")}
    Manifest("smoke", {}, run.fingerprint, state, made_here(), 1.0, files).write(run.manifest)


def test_what_is_unchanged_is_skipped_and_what_is_not_says_why(toys, figures, capsys):
    path = write_toy(toys, "00_toy", GOOD)
    run = plan.NotebookRun(path, figures)
    keep(run, "finished")
    path.write_text(path.read_text().replace('"execution_count": null', '"execution_count": 7'))
    for more, said in (
        ([], "unchanged since its last run"),
        (["--fresh"], "runs, asked to run again"),
        (["--set", "width=3"], "runs, changed since its last run: parameters; with width=3"),
    ):
        assert reproduce(["--dry-run", *more], toys) == 0
        assert capsys.readouterr().out == f"00_toy: {said}\n"
    (figures / "00_toy.csv").write_text("3")
    assert run.why() == "not as the last run left it: 00_toy.csv"
    path.write_text(path.read_text().replace("print(width)", "print(width + 1)"))
    assert plan.NotebookRun(path, figures).why() == "changed since its last run: cells"
    for state, reason in ("failed", "failed"), ("running", "was interrupted"):
        keep(run, state)
        assert run.why() == f"its last run {reason}"
    for damaged in ("", "[]", '{"state": "finished"}'):
        run.manifest.write_text(damaged)
        assert read_manifest(run.manifest) is None and run.why() == "never run in this folder"


RUNNER = (
    "import sys; from pathlib import Path; from tests.verbs import reproduce;"
    "reproduce([], Path(sys.argv[1]))"
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
    assert reproduce([], toys) == 0
    said = capsys.readouterr().err
    assert "half-written by a run that was killed" in said and "01_slow: finished" in said
    assert not [path for path in figures.rglob(".*")] and slow.kept.exists()


def test_an_interrupt_stops_the_rest_and_keeps_what_is_finished(toys, figures, capsys, monkeypatch):
    def interrupted(run: plan.NotebookRun, *, refresh: bool) -> str:
        if run.name == "01_toy":
            raise KeyboardInterrupt
        return f"{run.name} failed"

    for name in ("00_toy", "01_toy", "02_toy"):
        write_toy(toys, name, GOOD)
    monkeypatch.setattr(running, "run_notebook", interrupted)
    assert reproduce([], toys) == 130
    said = capsys.readouterr().err
    assert "the same command goes on from here" in said and "error: 00_toy failed" in said
    assert (figures / "index.html").exists() and "02_toy" not in said


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_in_git_is_stored_anew_byte_for_byte(path, tmp_path):
    """In whatever lines it was written before, which is the control."""
    stored = tmp_path / "stored.ipynb"
    notebook.store_outputs(path, stored)
    assert stored.read_bytes() == path.read_bytes()
    nbformat.validate(nbformat.read(stored, as_version=4))
    dense = tmp_path / "dense.ipynb"
    dense.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))))
    assert dense.read_bytes() != path.read_bytes()
    notebook.store_outputs(dense, stored)
    assert stored.read_bytes() == path.read_bytes()


def test_outputs_with_quotes_stay_and_views_of_widgets_do_not(tmp_path):
    nasty = {"application/vnd.plotly.v1+json": {"x": '"}\\1\\g<0>'}, "text/plain": ["\\1 é"]}
    table, view = {"text/html": ['<td class="a">\\1</td>\n', "é"]}, {notebook.WIDGET: {}}
    shown = {"text/plain": ["<Figure at 0x7f8b>\n", "at 0x7f"]}
    outputs = [
        {"output_type": "display_data", "data": data, "metadata": {"isolated": True}}
        for data in (nasty, view | {"text/plain": ["H"]}, table, shown, view)
    ]
    kept = {"cell_type": "code", "execution_count": 1, "id": "a", "source": ["1\n", "2"]}
    cell = kept | {"metadata": {"papermill": {}, "tags": []}, "outputs": outputs}
    version = {"nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "toy.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {"widgets": {}}} | version))
    notebook.store_outputs(path, path)
    told = json.loads(path.read_text(encoding="utf-8"))
    (made,) = told.pop("cells")
    left = {"text/plain": ["<Figure>\n", "at 0x7f"]}
    assert [one["data"] for one in made.pop("outputs")] == [nasty, table, left]
    assert made == kept | {"metadata": {}}
    assert told["metadata"].keys() == {"kernelspec", "language_info"}
