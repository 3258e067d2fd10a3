"""Sweeps on the workers of a Dask scheduler that is running somewhere."""

import gc
import ipaddress
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import torch

from specdec_lib.measure.sweep.grid import Job
from specdec_lib.measure.sweep.kept import Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.workload import Prompt

if TYPE_CHECKING:
    from distributed import Client

SCHEDULER, INSECURE = "SPECDEC_SCHEDULER", "SPECDEC_SCHEDULER_INSECURE"
PLAIN = ("", "tcp", "ws")  # protocols that neither encrypt nor ask who calls
PATIENCE = 10  # seconds until a scheduler must have answered
_ONE = threading.Lock()  # models remember and count, so a worker decodes one prompt at a time


@contextmanager
def connect(address: str) -> Iterator["Client"]:
    """A client of the scheduler at an address.  Raises ValueError if none answers there, or whoever
    reaches it could run code: another machine without TLS, unless SPECDEC_SCHEDULER_INSECURE=1.
    """
    protocol, _, place = address.rpartition("://")
    host = urlsplit(f"//{place}").hostname or ""
    with suppress(ValueError):
        host = "localhost" if ipaddress.ip_address(host).is_loopback else host
    if protocol in PLAIN and host != "localhost" and os.environ.get(INSECURE) != "1":
        raise ValueError(
            f"{address!r} is a scheduler on another machine without TLS: whoever reaches it can run"
            " code. Take tls://, or an SSH tunnel to tcp://127.0.0.1 (docs/guide.md shows both), or"
            f" set {INSECURE}=1"
        )
    from distributed import Client

    failed = ""
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, TypeError, ValueError) as error:  # TypeError without certificates of TLS
        failed = str(error) or "no reason given"
    if failed:
        gc.collect()  # ends the thread of the client that failed, in which another would hang
        wanted = f'`client` and {SCHEDULER} are addresses such as "tls://host:8786"'
        raise ValueError(f"no scheduler answers at {address!r} ({failed}); {wanted}")
    with client:
        yield client


def remote_fingerprint(client: "Client", job: Job) -> str:
    """A job's fingerprint, as a worker finds it.  Raises ValueError if it cannot be sent."""
    if not isinstance(job.ladder, Recipe):
        given = ", ".join(type(one).__name__ for one in (job.settings, job.ladder))
        wanted = f"give a Recipe of each, or leave out `client` and {SCHEDULER} to run here"
        raise ValueError(f"on a cluster settings and ladder are recipes, got {given}; {wanted}")
    return client.submit(_fingerprint, job, pure=False).result()


def finished_rows(
    client: "Client", job: Job, prompts: Sequence[Prompt], fingerprint: str
) -> Iterator[tuple[int, list[Row]]]:
    """The number of each prompt and its rows, as workers finish them; another worker repeats what a
    lost one had not delivered. What a worker raises comes through, and the rest is cancelled.
    """
    from distributed import as_completed

    futures = client.map(_rows, prompts, job=job, expected=fingerprint, pure=False)
    numbers = {future.key: number for number, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            yield numbers[future.key], future.result()
            future.release()
    finally:
        client.cancel([future for future in futures if not future.done()])


def _fingerprint(job: Job) -> str:
    with _ONE:
        torch.set_num_threads(1)
        return job.fingerprint()


def _rows(prompt: Prompt, job: Job, expected: str) -> list[Row]:
    """The rows of one prompt.  Raises ValueError unless this worker's fingerprint is that of the
    first: its rows could differ too.
    """
    if (found := _fingerprint(job)) != expected:
        differ = "workers differ in models, code, versions or kind of device"
        raise ValueError(f"{differ}: fingerprints {expected} and {found}")
    with _ONE:
        return job.rows(prompt)
