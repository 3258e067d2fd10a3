"""A sweep on a scheduler that others can reach: TLS as docs/guide.md sets it up."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import dask
import pytest
from sweeps import LENGTH, same, settings
from test_sweep_cluster import SETTINGS, noting, processes

from specdec_lib.measure.sweep import cluster
from specdec_lib.measure.sweep.running import sweep

pytestmark = pytest.mark.usefixtures("unchecked")


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
    there = noting(tmp_path)
    ours, other = certificate(tmp_path, "ours"), certificate(tmp_path, "other")
    node, stranger = certificate(tmp_path, "node", ours), certificate(tmp_path, "stranger", other)
    options = ["--tls-ca-file", f"{ours}.pem", "--tls-cert", f"{node}.pem", "--tls-key"]
    dask_command = [str(Path(sys.executable).with_name("dask"))]
    scheduler, told = [*dask_command, "scheduler", *options, f"{node}.key"], tmp_path / "told.json"
    scheduler += ["--port", "0", "--scheduler-file", str(told), "--no-dashboard"]
    worker = [*dask_command, "worker", "--scheduler-file", str(told), *options, f"{node}.key"]
    worker += "--nthreads 1 --no-nanny --no-dashboard --local-directory".split()
    worker.append(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    both = [subprocess.Popen(one, stderr=subprocess.DEVNULL) for one in (scheduler, worker)]
    try:
        deadline = time.monotonic() + 60
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(told.read_text())["address"]
        assert address.startswith("tls://")
        with dask.config.set(tls_of(ours, node)):
            found = sweep(SETTINGS, prompts[:2], there, client=address, **LENGTH)
        same(found, sweep(settings(ladder), prompts[:2], ladder, **LENGTH))
        assert os.getpid() not in processes(there)
        monkeypatch.setattr(cluster, "PATIENCE", 1)
        refused = pytest.raises(ValueError, match="no scheduler answers at 'tls://")
        with dask.config.set(tls_of(ours, stranger)), refused:
            sweep(SETTINGS, prompts[:2], there, client=address, **LENGTH)
    finally:
        for one in reversed(both):
            one.terminate()
            one.wait(20)
