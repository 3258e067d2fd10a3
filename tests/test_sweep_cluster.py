"""The same sweep on Dask's workers: the same table, also when one is lost, and over TLS."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import pandas as pd
import pytest
from distributed import Client
from distributed.utils import get_mp_context
from sweeps import LENGTH, same, settings
from tiny import tiny_ladder

from specdec_lib.measure.sweep import cluster
from specdec_lib.measure.sweep.cluster import SCHEDULER
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.running import sweep

pytestmark = pytest.mark.usefixtures("unchecked")
IMPORTED = (
    "distributed",
    "transformers.models.llama.modeling_llama",
    "specdec_lib.suite.distil.finishing",
    "specdec_lib.measure.sweep.running",
)
SETTINGS = Recipe("sweeps:settings")


def noted(log):
    """The ladder, after this process was written down."""
    with open(log, "a") as file:
        file.write(f"{os.getpid()}\n")
    return tiny_ladder()


def unlike(log):
    """The ladder in float32, but for the second process that asks."""
    noted(log)
    first = Path(log).read_text().split()[0] == str(os.getpid())
    return tiny_ladder("float32" if first else "float64")


def processes(ladder):
    """Who loaded the ladder, in order."""
    return [int(line) for line in Path(ladder.arguments["log"]).read_text().split()]


def noting(folder):
    return Recipe("test_sweep_cluster:noted", {"log": str(folder / "log")})


@pytest.fixture(scope="module")
def two():
    """A client of two workers, forked from a process that has imported what takes them long."""
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload([*IMPORTED])
        with Client(**local, memory_limit=None) as client:
            client.wait_for_workers(2, timeout=60)
            yield client


@pytest.fixture(scope="module")
def there(two):
    """Where their scheduler is."""
    return two.scheduler.address


@pytest.fixture(scope="module")
def noted_ladder(tmp_path_factory):
    """A recipe of the ladder that notes who loads it; one for all tests, so loaded once."""
    return noting(tmp_path_factory.mktemp("ladder"))


@pytest.fixture(scope="module")
def undisturbed(ladder, prompts):
    return sweep(settings(ladder), prompts[:8], ladder, **LENGTH)


def test_two_workers_and_none_give_the_same_table(
    two, there, undisturbed, ladder, prompts, noted_ladder, tmp_path
):
    """And each loads the ladder once; what is kept here is kept there."""
    same(sweep(SETTINGS, prompts[:8], noted_ladder, client=there, **LENGTH), undisturbed)
    here = sweep(settings(ladder), prompts[:2], ladder, keep=tmp_path, **LENGTH)
    kept = sweep(SETTINGS, prompts[:4], noted_ladder, client=there, keep=tmp_path, **LENGTH)
    same(kept, undisturbed[:12])
    pd.testing.assert_frame_equal(kept[:6][list(here)], here)  # with its seconds
    again = sweep(settings(ladder), prompts[:4], ladder, keep=tmp_path, **LENGTH)
    pd.testing.assert_frame_equal(again, kept)
    assert sorted(processes(noted_ladder)) == sorted(two.run(os.getpid).values())


def test_a_variable_names_the_place(there, undisturbed, ladder, prompts, noted_ladder, monkeypatch):
    monkeypatch.setenv(SCHEDULER, there)
    same(sweep(SETTINGS, prompts[:2], noted_ladder, **LENGTH), undisturbed[:6])
    assert os.getpid() not in processes(noted_ladder)
    with pytest.raises(ValueError, match=r"recipes, got list, Ladder; .*SPECDEC_SCHEDULER"):
        sweep(settings(ladder), prompts[:2], ladder, **LENGTH)
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    for nowhere in ("tcp://127.0.0.1:9", "127.0.0.1:no port", "tls://127.0.0.1:9"):
        monkeypatch.setenv(SCHEDULER, nowhere)
        with pytest.raises(ValueError, match=f"no scheduler answers at '{nowhere}'"):
            sweep(SETTINGS, prompts[:2], noted_ladder, **LENGTH)
    monkeypatch.delenv(SCHEDULER)
    same(sweep(SETTINGS, prompts[:1], noted_ladder, **LENGTH), undisturbed[:3])
    assert processes(noted_ladder)[-1] == os.getpid()


OPEN = "tcp://10.0.0.7:1 there:1 ws://there:1 tcp://0.0.0.0:1 tcp://localhost.evil.org:1".split()
PRIVATE = "tcp://127.0.0.1:1 tcp://[::1]:1 localhost:1 tls://there:1 inproc://1.2.3.4/5/6".split()


@pytest.mark.parametrize("address", OPEN + PRIVATE)
def test_a_scheduler_that_others_can_reach_needs_tls(address, monkeypatch):
    def opened(address, **_):
        raise OSError("nobody is asked")

    monkeypatch.setattr("distributed.Client", opened)
    asked = "no scheduler answers"
    for insecure, said in ("", "without TLS" if address in OPEN else asked), ("1", asked):
        monkeypatch.setenv(cluster.INSECURE, insecure)
        with pytest.raises(ValueError, match=said), cluster.connect(address):
            pass


def test_what_a_worker_refuses_comes_through(there, prompts, noted_ladder):
    with pytest.raises(ValueError, match="cannot be imported here"):
        sweep(Recipe("no_such:settings"), prompts[:1], noted_ladder, client=there, **LENGTH)


def test_workers_that_differ_are_refused(there, prompts, tmp_path):
    unlike = Recipe("test_sweep_cluster:unlike", {"log": str(tmp_path / "log")})
    with pytest.raises(ValueError, match="workers differ in models, code, versions"):
        sweep(SETTINGS, prompts[:8], unlike, client=there, **LENGTH)


def killer(worker, folder, seen):
    """Kills a worker as soon as two of eight prompts are kept, and writes down how many were."""
    deadline = time.monotonic() + 60
    while len(list(folder.glob("*/*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(worker, signal.SIGKILL)
    seen.append(len(list(folder.glob("*/*.json"))))


def test_a_worker_that_is_killed_loses_no_row(
    two, there, undisturbed, prompts, noted_ladder, tmp_path
):
    seen, lost = [], next(iter(two.run(os.getpid).values()))
    thread = threading.Thread(target=killer, args=(lost, tmp_path, seen))
    thread.start()
    asked = (SETTINGS, prompts[:8], noted_ladder)
    table = sweep(*asked, client=there, keep=tmp_path, **LENGTH)
    thread.join()
    same(table, undisturbed)
    assert 2 <= seen[0] < 8
    with pytest.raises(AssertionError, match="differ"):  # a lost row would be seen
        same(table.drop(index=13).reset_index(drop=True), undisturbed)
    two.wait_for_workers(2, timeout=60)
    assert lost not in two.run(os.getpid).values()
    again = sweep(*asked, client=there, keep=tmp_path, **LENGTH)
    pd.testing.assert_frame_equal(again, table)


def certificate(folder, name, signer=None):
    """A new key and its certificate, signed by itself or by another one's key."""
    place = str(folder / name)
    by = ["-CA", f"{signer}.pem", "-CAkey", f"{signer}.key"] if signer else []
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split()
    files = ["-keyout", f"{place}.key", "-out", f"{place}.pem", "-subj", f"/CN={name}"]
    command = ["openssl", "req", "-x509", *key, *files, *by]
    subprocess.run(command, check=True, capture_output=True)
    return place


def tls_of(authority, client):
    """What docs/guide.md sets by variables."""
    files = {"ca-file": f"{authority}.pem", "client.cert": f"{client}.pem"}
    files["client.key"] = f"{client}.key"
    return {f"distributed.comm.tls.{name}": file for name, file in files.items()}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_a_scheduler_with_tls_serves_who_has_a_certificate(ladder, prompts, tmp_path, monkeypatch):
    """As docs/guide.md shows it; a certificate of another authority is a control."""
    recipe = noting(tmp_path)
    ours, other = certificate(tmp_path, "ours"), certificate(tmp_path, "other")
    node, stranger = certificate(tmp_path, "node", ours), certificate(tmp_path, "stranger", other)
    options = ["--tls-ca-file", f"{ours}.pem", "--tls-cert", f"{node}.pem", "--tls-key"]
    dask_command = [str(Path(sys.executable).with_name("dask"))]
    scheduler, told = [*dask_command, "scheduler", *options, f"{node}.key"], tmp_path / "told.json"
    scheduler += ["--port", "0", "--scheduler-file", str(told), "--no-dashboard"]
    worker = [*dask_command, "worker", "--scheduler-file", str(told), *options, f"{node}.key"]
    worker += "--nthreads 1 --no-nanny --no-dashboard --local-directory".split()
    worker.append(str(tmp_path))
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", f"{here}:{here.parent}")
    both = [subprocess.Popen(one, stderr=subprocess.DEVNULL) for one in (scheduler, worker)]
    try:
        deadline = time.monotonic() + 60
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        assert address.startswith("tls://")
        with dask.config.set(tls_of(ours, node)):
            found = sweep(SETTINGS, prompts[:2], recipe, client=address, **LENGTH)
        same(found, sweep(settings(ladder), prompts[:2], ladder, **LENGTH))
        assert os.getpid() not in processes(recipe)
        monkeypatch.setattr(cluster, "PATIENCE", 1)
        refused = pytest.raises(ValueError, match="no scheduler answers at 'tls://")
        with dask.config.set(tls_of(ours, stranger)), refused:
            sweep(SETTINGS, prompts[:2], recipe, client=address, **LENGTH)
    finally:
        for one in reversed(both):
            one.terminate()
            one.wait(20)
