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
from specdec_lib.suite.reproduce.running import RunRequest
from specdec_lib.suite.reproduce.side_by_side import TIMED, usual_jobs
from tests.verbs import reproduce

MEET = """from pathlib import Path
import time
here = Path({place!r})
(here / "{own}").touch()
until = time.monotonic() + {seconds}
while not (here / "{other}").exists():
    assert time.monotonic() < until, "the other one does not run"
    time.sleep(0.05)
"""
NOTE = """import time
with open({log!r}, "a") as log:
    print("begins {own}", file=log)
time.sleep(0.5)
with open({log!r}, "a") as log:
    print("ends {own}", file=log)
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
    log = tmp_path / "log"
    for own in ("00_a", "01_b", "02_c"):
        path = write_toy(toys, own, NOTE.format(log=str(log), own=own))
    cells = json.loads(path.read_text())
    cells["cells"][2]["metadata"] = {"tags": [TIMED]}
    path.write_text(json.dumps(cells))
    assert reproduce(["--jobs", "3"], toys) == 0
    lines = log.read_text().splitlines()
    assert lines[:2] == ["begins 02_c", "ends 02_c"]
    assert sorted(lines[2:4]) == ["begins 00_a", "begins 01_b"]  # the others at once


def test_a_cell_is_tagged_as_timed_where_it_measures_and_nowhere_else():
    for path in numbered(NOTEBOOKS):
        for cell in json.loads(path.read_text())["cells"]:
            times = re.search(r"\bMeasuring\(", "".join(cell["source"])) is not None
            assert (TIMED in cell["metadata"].get("tags", ())) == times, path.stem


def test_a_process_that_dies_is_told_of_and_what_it_ran_is_due_again(toys, figures, capsys):
    write_toy(toys, "00_dead", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)")
    write_toy(toys, "01_other", "import time\ntime.sleep(60)")
    assert reproduce(["--jobs", "2"], toys) == 1
    said = capsys.readouterr().err
    assert "error: 00_dead.ipynb: A process in the process pool was terminated abruptly" in said
    assert read_manifest(figures / "runs" / "00_dead.json").state == "running"


RUNNER = """import signal, sys
from pathlib import Path
from tests.verbs import reproduce
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    sys.exit(reproduce(["--jobs", "2"], Path(sys.argv[1])))
"""


@pytest.mark.parametrize("group", [False, True])
def test_an_interrupt_stops_all_of_them_and_leaves_no_process(toys, figures, tmp_path, group):
    """As `kill -INT` sends it, or as Ctrl-C does, to every process of the terminal."""
    for own in ("00_one", "01_two", "02_three"):
        begun_file = f"Path({str(tmp_path)!r}, '{own}').touch()"
        write_toy(
            toys, own, f"from pathlib import Path\nimport time\n{begun_file}\ntime.sleep(120)"
        )
    script = tmp_path / "runner.py"
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
    begun = time.monotonic()
    try:
        while len(list(tmp_path.glob("0*_*"))) < 2:
            assert process.poll() is None and time.monotonic() - begun < 120
            time.sleep(0.1)
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= 4  # two processes, and a kernel each
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and "the same command goes on from here" in said
    assert "02_three" not in said and "Traceback" not in said
    assert not psutil.wait_procs(below, timeout=20)[1], "kernels too are gone"
    states = [read_manifest(figures / "runs" / f"{own}.json") for own in ("00_one", "01_two")]
    assert [one.state for one in states] == ["running", "running"]


def test_fewer_jobs_than_one_are_refused():
    with pytest.raises(ValueError, match="jobs counts from 1, got 0"):
        RunRequest(jobs=0)


def test_two_run_at_once_unless_a_number_is_given(monkeypatch):
    found = []
    for cores in (1, 2, 64, None):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        found.append(usual_jobs())
    assert found == [1, 2, 2, 1]
