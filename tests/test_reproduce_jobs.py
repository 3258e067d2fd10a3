"""`specdec reproduce --jobs`: notebooks at once, those that time this machine alone."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from toys import GOOD, write_toy

from specdec_lib.suite.gallery.manifest import read_manifest
from specdec_lib.suite.notebook import NOTEBOOKS, numbered
from specdec_lib.suite.reproduce import running
from specdec_lib.suite.reproduce.running import RunRequest
from specdec_lib.suite.reproduce.side_by_side import TIMED, usual_jobs
from tests.verbs import reproduce, run

MEET = """from pathlib import Path
import time
here = Path({place!r})
(here / "{own}").touch()
until = time.monotonic() + {seconds}
while not (here / "{other}").exists():
    assert time.monotonic() < until, "the other one does not run"
    time.sleep(0.05)
"""


def write_pair(toys: Path, place: Path, seconds: int) -> None:
    """Two notebooks, each of which waits for the other to have begun."""
    for own, other in ("00_one", "01_two"), ("01_two", "00_one"):
        body = MEET.format(place=str(place), own=own, other=other, seconds=seconds)
        write_toy(toys, own, body + GOOD)


def test_two_notebooks_run_at_once_and_their_figures_are_kept(toys, figures, tmp_path, capfd):
    write_pair(toys, tmp_path, 60)
    assert reproduce(["--jobs", "2", "--set", "width=3"], toys) == 0
    assert [(figures / f"0{n}_toy.csv").read_text() for n in (0, 1)] == ["3", "3"]
    said = capfd.readouterr().err
    assert "00_one: finished after " in said and "01_two: finished after " in said
    assert reproduce(["--jobs", "2", "--set", "width=3"], toys) == 0
    assert "finished after" not in capfd.readouterr().err


def test_with_one_job_they_do_not_meet_which_is_the_control(toys, figures, tmp_path, capsys):
    write_pair(toys, tmp_path, 1)
    assert reproduce(["--jobs", "1"], toys) == 1
    said = capsys.readouterr().err
    assert re.search(r"error: 00_one.ipynb, .*: AssertionError: the other one does not run", said)
    assert "error: 01_two" not in said  # the first one left its mark


def test_a_notebook_that_times_the_machine_runs_alone(toys, figures, tmp_path):
    """Before the others, which then run at once."""
    write_pair(toys, tmp_path, 60)
    body = f"from pathlib import Path\nassert not list(Path({str(tmp_path)!r}).glob('0*_*'))\n"
    path = write_toy(toys, "02_timed", body + GOOD)
    cells = json.loads(path.read_text())
    cells["cells"][2]["metadata"] = {"tags": [TIMED]}
    path.write_text(json.dumps(cells))
    assert reproduce(["--jobs", "3"], toys) == 0
    path.write_text(json.dumps(cells).replace(TIMED, "other"))
    assert reproduce(["--jobs", "3", "--only", "02"], toys) == 1, "the control: they had begun"


def test_the_cell_that_measures_latency_is_tagged_as_timed_and_no_other():
    found = {}
    for path in numbered(NOTEBOOKS):
        cells = json.loads(path.read_text())["cells"]
        tagged = [one for one in cells if TIMED in one["metadata"].get("tags", ())]
        if tagged:
            found[path.stem] = ["".join(one["source"]) for one in tagged]
    assert list(found) == ["05_latency_sweep"]
    assert re.search(r"\bMeasuring\(", *found["05_latency_sweep"])


def test_a_process_that_dies_is_told_of_and_the_others_finish(toys, figures, capsys):
    body = f"import os, signal\nassert os.getppid() != {os.getpid()}\n"
    write_toy(toys, "00_dead", body + "os.kill(os.getppid(), signal.SIGKILL)")
    for other in ("01_other", "02_more"):
        write_toy(toys, other, GOOD)
    assert reproduce(["--jobs", "2"], toys) == 1
    said = capsys.readouterr().err
    told = [line for line in said.splitlines() if line.startswith("error: ")]
    assert told == [
        "error: 00_dead.ipynb: its process ended with status -9; --jobs 1 takes less memory"
    ]
    states = [read_manifest(figures / "runs" / f"{one}.json").state for one in NAMES]
    assert states == ["running", "finished", "finished"]


NAMES = ("00_dead", "01_other", "02_more")
RUNNER = """import signal, sys
from pathlib import Path
from tests.verbs import reproduce
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    sys.exit(reproduce(["--jobs", "2"], Path(sys.argv[1])))
"""


def begun(toys: Path, place: Path) -> tuple[subprocess.Popen, list[psutil.Process]]:
    """A command with two notebooks that run for minutes, and all processes below it."""
    for own in ("00_one", "01_two", "02_three"):
        mark = f"Path({str(place)!r}, '{own}').touch()"
        write_toy(toys, own, f"from pathlib import Path\nimport time\n{mark}\ntime.sleep(120)")
    script = place / "runner.py"
    script.write_text(RUNNER)
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join([root, str(Path(root) / "tests"), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, str(script), str(toys)],
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while len(list(place.glob("0*_*"))) < 2:
        if process.poll() is not None or time.monotonic() > until:
            process.kill()  # and what it started ends with it
            pytest.fail("the notebooks do not begin")
        time.sleep(0.1)
    return process, psutil.Process(process.pid).children(recursive=True)


@pytest.mark.parametrize("sent", ["kill -INT", "Ctrl-C", "kill", "kill -9"])
def test_whatever_ends_the_command_ends_all_that_it_started(toys, figures, tmp_path, sent):
    """Ctrl-C goes to every process of the terminal. What is finished stays, what ran is due."""
    signals = {"kill": signal.SIGTERM, "kill -9": signal.SIGKILL}
    process, below = begun(toys, tmp_path)
    try:
        assert len(below) >= 4, "two processes, and a kernel each"
        (os.killpg if sent == "Ctrl-C" else os.kill)(process.pid, signals.get(sent, signal.SIGINT))
        _, said = process.communicate(timeout=60)
        assert not psutil.wait_procs(below, timeout=20)[1]
    finally:
        for one in below:
            if one.is_running():
                one.kill()
        process.kill()
    assert "02_three" not in said and "Traceback" not in said
    if sent not in signals:
        assert process.returncode == 130 and "the same command goes on from here" in said
    states = [read_manifest(figures / "runs" / f"{own}.json") for own in ("00_one", "01_two")]
    assert [one.state for one in states] == ["running", "running"]


def test_fewer_jobs_than_one_are_refused():
    with pytest.raises(ValueError, match="jobs counts from 1, got 0"):
        RunRequest(jobs=0)


def test_two_run_at_once_unless_a_number_is_given(toys, monkeypatch):
    found = []
    for cores in (1, 2, 64):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, c=cores: {*range(c)}, raising=False)
        found.append(usual_jobs())
    assert found == [1, 2, 2]
    asked = []
    monkeypatch.setattr(running, "reproduce_figures", lambda one: asked.append(one) or 0)
    run("reproduce", "--notebooks", str(toys))
    assert [one.jobs for one in asked] == [2]
