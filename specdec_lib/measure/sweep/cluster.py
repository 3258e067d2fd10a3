"""Sweeps on Dask's workers, of a scheduler that is running somewhere or of a local cluster."""

import ipaddress
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from specdec_lib.measure.sweep.grid import Job, fingerprint_of, rows_of
from specdec_lib.measure.sweep.kept import Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.workload import Prompt

if TYPE_CHECKING:
    from distributed import Client

SCHEDULER = "SPECDEC_SCHEDULER"
INSECURE = "SPECDEC_SCHEDULER_INSECURE"
PLAIN = ("", "tcp", "ws")  # protocols that neither encrypt nor ask who calls
PATIENCE = 10  # seconds until a scheduler must have answered


@contextmanager
def local_cluster(workers: int = 2) -> Iterator["Client"]:
    """So many worker processes of one thread on this machine; a lost one is started again."""
    from distributed import Client

    if workers < 1:
        raise ValueError(f"a cluster has at least 1 worker, got {workers}")
    with Client(
        n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=None
    ) as client:  # any free port
        yield client


def cluster_for(jobs: int) -> AbstractContextManager["Client | None"]:
    """A local cluster; None for a single process and where SPECDEC_SCHEDULER names a scheduler."""
    return nullcontext() if jobs == 1 or os.environ.get(SCHEDULER) else local_cluster(jobs)


@contextmanager
def connect(client: "Client | str | None") -> Iterator["Client | None"]:
    """The client itself, or one of the scheduler at an address; without either that of the variable
    SPECDEC_SCHEDULER, and None if that is not set.

    Raises ValueError if no scheduler answers, or the address is one that others can listen to.
    """
    address = os.environ.get(SCHEDULER) if client is None else client
    if not address or not isinstance(address, str):
        yield address or None
        return
    _check_private(address)
    from distributed import Client

    try:
        opened = Client(address, timeout=PATIENCE)
    except (OSError, TypeError, ValueError) as error:  # TypeError without certificates of TLS
        wanted = f'`client` and {SCHEDULER} are addresses such as "tls://host:8786"'
        raise ValueError(f"no scheduler answers at {address!r} ({error}); {wanted}") from error
    with closing(opened):
        yield opened


def _check_private(address: str) -> None:
    """Raises ValueError for a scheduler on another machine without TLS, unless it is asked for by
    SPECDEC_SCHEDULER_INSECURE=1: whoever reaches it runs code on its workers.
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


def remote_fingerprint(client: "Client", job: Job) -> str:
    """A job's fingerprint, as a worker finds it.  Raises ValueError if it cannot be sent."""
    if not isinstance(job.settings, Recipe) or not isinstance(job.ladder, Recipe):
        given = ", ".join(type(one).__name__ for one in (job.settings, job.ladder))
        wanted = f"give a Recipe of each, or leave out `client` and {SCHEDULER} to run here"
        raise ValueError(f"on a cluster settings and ladder are recipes, got {given}; {wanted}")
    return client.submit(fingerprint_of, job, pure=False).result()


def finished_rows(
    client: "Client", job: Job, prompts: Sequence[Prompt], fingerprint: str
) -> Iterator[tuple[int, list[Row]]]:
    """The number of each prompt and its rows, as workers finish them; another worker repeats what a
    lost one had not delivered. What a worker raises comes through, and the rest is cancelled.
    """
    from distributed import as_completed

    futures = client.map(rows_of, prompts, job=job, expected=fingerprint, pure=False)
    numbers = {future.key: number for number, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            yield numbers[future.key], future.result()
            future.release()
    finally:
        client.cancel([future for future in futures if not future.done()])
