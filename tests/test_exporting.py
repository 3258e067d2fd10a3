"""The image exporter in its child process: it may hang, end, be killed, or be missing."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import plotly.graph_objects as go
import psutil
import pytest
from PIL import Image

from specdec_lib.show import exporting, saving
from specdec_lib.show.exporting import Exporter, draw_png, kaleido_command

# counts how often it was started; its answer is the line that it was asked, in base64
FAKE = """#!/bin/sh
echo >> {count}
starts=$(wc -l < {count})
{begin}
echo '{{"code": 0}}'
while read -r line; do
  {draw}
  printf '{{"code": 0, "result": "%s"}}\\n' $(printf "$line" | base64 -w 0)
done
"""
HANG = "if [ $starts -le {} ]; then sleep 600; fi"
Starts = Callable[[], int]
Fake = Callable[..., Starts]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Puts a script in kaleido's place, of which three are tried; how often it has started."""
    monkeypatch.setattr(exporting, "TRIES", 3)

    def put(begin: str = ":", draw: str = ":", patience: float = 30) -> Starts:
        script = tmp_path / "exporter"
        count = tmp_path / "count"
        script.write_text(FAKE.format(count=count, begin=begin, draw=draw))
        script.chmod(0o755)
        monkeypatch.setattr(exporting, "kaleido_command", lambda: [str(script)])
        monkeypatch.setattr(exporting, "PATIENCE", patience)
        return lambda: count.read_text().count("\n")

    return put


@pytest.fixture
def exporter() -> Exporter:
    made = Exporter()
    yield made
    made.close()


def group(leader: int) -> list[psutil.Process]:
    """The running processes of a group."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def until(true: Callable[[], object], seconds: float = 20) -> bool:
    """Whether something becomes true."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def test_one_child_draws_several_figures(fake, exporter):
    starts = fake()
    assert [exporter.draw(b"one\n"), exporter.draw(b"two\n")] == [b"one", b"two"]
    assert starts() == 1
    child = exporter._child.pid
    assert len(group(child)) == 2, "the guard and the exporter"
    exporter.close()
    assert until(lambda: not group(child))
    assert exporter.draw(b"three\n") == b"three" and starts() == 2


@pytest.mark.parametrize("where", ["begin", "draw"])
@pytest.mark.parametrize("hangs", [2, 3])
def test_an_exporter_that_hangs_is_killed_and_started_again(hangs, where, fake, exporter):
    """It is tried as often as `TRIES` allows, then it is an error; what hung before is gone."""
    starts = fake(**{where: HANG.format(hangs)}, patience=1)
    children = []
    begin = exporter._start

    def noted() -> None:
        begin()
        children.append(exporter._child.pid)

    exporter._start = noted
    if hangs < 3:
        assert exporter.draw(b"one\n") == b"one"
        assert group(children.pop()), "the control: the last one is still there"
    else:
        with pytest.raises(ValueError, match="hung 3 times for 1 s, and ended 0 times"):
            exporter.draw(b"one\n")
    assert starts() == 3
    assert until(lambda: not any(map(group, children)))


def test_a_large_figure_does_not_wait_for_an_exporter_that_reads_nothing(fake, exporter):
    """More than a pipe holds."""
    fake(begin=HANG.format(3), patience=1)
    with pytest.raises(ValueError, match="hung 3 times"):
        exporter.draw(b"x" * 2_000_000 + b"\n")


def test_an_exporter_that_ends_is_started_again_and_its_words_are_told(fake, exporter):
    starts = fake(begin="if [ $starts -le 2 ]; then exit 1; fi")
    assert exporter.draw(b"one\n") == b"one" and starts() == 3
    exporter.close()
    starts = fake(begin="echo no libnss3 >&2; exit 1")
    with pytest.raises(ValueError, match=r"ended 3 times without an image; .*: no libnss3"):
        exporter.draw(b"one\n")
    assert starts() == 6


def test_an_answer_that_is_cut_off_is_no_image(fake, exporter):
    cut = """if [ $starts = 1 ]; then printf '{"code": 0, "result": "b25'; exit; fi"""
    starts = fake(draw=cut)
    assert exporter.draw(b"one\n") == b"one" and starts() == 2


@pytest.mark.parametrize("begin", [True, False])
def test_what_the_exporter_refuses_is_an_error_at_once(begin, fake, exporter):
    said = """echo '{"code": 525, "message": "no such trace"}'; exit"""
    starts = fake(**{"begin" if begin else "draw": said})
    with pytest.raises(ValueError, match="cannot draw this: no such trace"):
        exporter.draw(b"one\n")
    assert starts() == 1


@pytest.mark.parametrize("killed", ["guard", "exporter"])
def test_a_child_that_is_killed_is_replaced(killed, fake, exporter):
    starts = fake()
    exporter.draw(b"one\n")
    child = exporter._child.pid
    (victim,) = [one for one in group(child) if (one.pid == child) == (killed == "guard")]
    victim.kill()
    assert exporter.draw(b"two\n") == b"two" and starts() == 2
    assert until(lambda: not group(child))


def test_the_exporter_may_kill_the_guard_as_it_draws(fake, exporter):
    starts = fake(draw="if [ $starts = 1 ]; then kill -9 $PPID; fi")
    assert exporter.draw(b"one\n") == b"one" and starts() == 2


def test_an_interrupted_caller_never_reads_the_answer_it_did_not_wait_for(fake, exporter):
    starts = fake(draw="if [ $line = late ]; then sleep 1; fi")
    assert exporter.draw(b"one\n") == b"one"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            exporter.draw(b"late\n")
    finally:
        signal.signal(signal.SIGALRM, before)
    time.sleep(1)
    assert exporter.draw(b"two\n") == b"two" and starts() == 2


def test_threads_get_their_own_images(fake, exporter):
    fake()
    found = {}

    def draw(name: str) -> None:
        for _ in range(20):
            found.setdefault(name, set()).add(exporter.draw(f"{name}\n".encode()))

    threads = [threading.Thread(target=draw, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"one": {b"one"}, "two": {b"two"}}


def test_a_forked_process_has_an_exporter_of_its_own():
    assert exporting._exporter_of(1) is exporting._exporter_of(1)
    assert exporting._exporter_of(1) is not exporting._exporter_of(2)


PARENT = """
import sys, threading, time
from specdec_lib.show import exporting
exporting.kaleido_command = lambda: [sys.argv[1]]
exporter = exporting._exporter_of(0)
threading.Thread(target=exporter.draw, args=(b"one\\n",), daemon=True).start()
while exporter._child is None: time.sleep(0.05)
print(exporter._child.pid, flush=True)
if sys.argv[2] == "kill": time.sleep(600)
"""


@pytest.mark.parametrize("end", ["kill", "exit"])
@pytest.mark.parametrize("where", ["begin", "draw", "idle"])
def test_no_child_outlives_its_parent(where, end, tmp_path, fake):
    """Be the parent killed or ended, the child hung or waiting for a figure."""
    fake(**({} if where == "idle" else {where: HANG.format(3)}))
    command = [sys.executable, "-c", PARENT, tmp_path / "exporter", end]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        if end == "kill":
            assert until(lambda: len(group(child)) > 1), "the control: it runs before"
            time.sleep(0.5)
            assert len(group(child)) > 1
            parent.kill()
    assert until(lambda: not group(child), 5)


def test_without_kaleido_there_is_no_image(monkeypatch):
    assert Image.open(io.BytesIO(draw_png(go.Figure(), 1))).size == (700, 500), "the control"
    monkeypatch.setitem(sys.modules, "kaleido.scopes.plotly", None)
    monkeypatch.setattr(exporting, "_exporter_of", lambda _: Exporter())
    with pytest.raises(ImportError, match="kaleido"):
        draw_png(go.Figure(), 1)
    assert not saving._exporter_works.__wrapped__()


def test_a_figure_that_is_no_figure_is_refused_by_kaleido_itself():
    with pytest.raises(ValueError, match="cannot draw this"):
        exporting._exporter_of(os.getpid()).draw(b'{"format": "png", "data": 5}\n')
    assert draw_png(go.Figure(), 1), "and then it draws on"


def test_the_exporter_asks_no_network():
    """Plotly tells it to fetch the script of formulas, which is the negative control."""
    script = "import plotly.io as pio; print(pio.kaleido.scope._build_proc_args())"
    bare = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "https://" in bare.stdout
    assert not any("http" in argument for argument in kaleido_command())
