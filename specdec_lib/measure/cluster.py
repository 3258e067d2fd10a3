"""A measurement on the workers of a Dask client, prompt by prompt, with the rows of one machine.

Prompts go out and rows come back. Finished rows are kept at once, and those of a worker that was
lost are measured again by another. A worker whose code, package versions or weights are not the
client's is refused. Addresses, certificates and time-outs are Dask's own, and so is how functions
travel: Dask pickles them, so a scheduler has to be one's own. Seconds of other machines are no
comparison: races do not take a cluster.
"""

import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import torch
from tqdm.auto import tqdm

from specdec_lib.core.files import DATA
from specdec_lib.measure.fingerprints import identity
from specdec_lib.measure.row_cache import Row, RowCache
from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
from specdec_lib.workload import Ladder, Pair, load_ladder

if TYPE_CHECKING:
    from distributed import Client, Future

INSTALL = "pip install 'specdec[cluster]'"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ONE_AT_A_TIME = threading.Lock()  # the threads of a worker share its models and their counts
PATIENCE = 10  # seconds in which a scheduler has to answer
Make = Callable[..., list[Row]]  # make(ladder, item, **arguments) gives the rows of an item


@dataclass(frozen=True)
class LadderRecipe:
    """How every worker loads the client's models: arguments of `load_ladder`, names and folders
    that are the same on all machines.

    folder         of an embedded ladder; None for data/ladder
    int8_drafts    whether drafts of the fast runtime are in the int8 edition (`with_int8_drafts`)
    """

    target: str | None = None
    draft: str | None = None
    middle: str | None = None
    tokenizer: str | None = None
    device: str = "cpu"
    dtype: str = "float32"
    runtime: str = "fast"
    folder: str | None = None
    int8_drafts: bool = False

    def load(self, *, warn: bool = True) -> Ladder:
        """The models; for `warn` see `load_ladder`."""
        found = load_ladder(
            self.target,
            self.draft,
            self.middle,
            tokenizer=self.tokenizer,
            device=self.device,
            dtype=self.dtype,
            runtime=self.runtime,
            folder=DATA / "ladder" if self.folder is None else Path(self.folder),
            warn=warn,
        )
        return with_int8_drafts(found) if self.int8_drafts else found


@dataclass(frozen=True)
class Cluster:
    """Workers that measure: a Dask client, and how each of them loads the models, if it does."""

    client: "Client"
    recipe: LadderRecipe | None = LadderRecipe()


@contextmanager
def opened(address: str | None, recipe: LadderRecipe | None) -> Iterator[Cluster | None]:
    """The cluster of the scheduler at an address, closed in the end; None without an address."""
    if address is None:
        yield None
        return
    with connect(address) as client:
        yield Cluster(client, recipe)


class Refusal(NamedTuple):
    """What a worker answers that is not like the client: its address and what differs."""

    worker: str
    differing: tuple[str, ...]


def connect(address: str) -> "Client":
    """A client of the scheduler at an address: on this machine, or "tls://HOST:PORT" with the
    certificates of Dask's configuration.

    Raises ValueError for another address, if nobody answers there within 10 seconds, or if Dask
    is not installed.
    """
    given = urlsplit(address if "://" in address else f"tcp://{address}")
    if given.scheme != "tls" and not (given.scheme == "tcp" and given.hostname in LOOPBACK):
        raise ValueError(
            f"a scheduler is on this machine (tcp://127.0.0.1:PORT) or has certificates"
            f" (tls://HOST:PORT), since Dask runs what it is sent; got {address}"
        )
    try:
        from distributed import Client
    except ImportError as problem:
        raise ValueError(f"a scheduler needs Dask: {INSTALL}") from problem
    try:
        return Client(given.geturl(), timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise ValueError(f"no scheduler answers at {address}: {reason}") from problem


def spread_rows(
    make: Make,
    items: Sequence[tuple[str, object]],
    ladder: Ladder | Pair | None,
    arguments: Mapping[str, object],
    cache: RowCache,
    *,
    cluster: Cluster | None = None,
    label: str = "prompts",
    progress: bool = True,
) -> list[Row]:
    """The rows of `make(ladder, item, **arguments)` for every item, in the items' order.

    make       a function of a module; it is called where the models are
    ladder     None where `make` needs no models
    items      with the keys under which their finished rows are kept; what has the same key is
               measured once, and has its rows at each of its places
    cluster    workers that measure; without, this process does

    What `make` raises is raised here, and ends the measurement; what was finished is kept.
    """
    by_key = dict(items)
    found = {key: cache.read(key) for key in by_key}
    waiting = {key: by_key[key] for key, rows in found.items() if not rows}
    bar = tqdm(total=len(by_key), desc=label, disable=not progress, mininterval=1)
    bar.update(len(by_key) - len(waiting))
    with bar:
        if cluster is None:
            answers = ((key, make(ladder, item, **arguments)) for key, item in waiting.items())
        else:
            answers = _answers(cluster, ladder, make, waiting, arguments)
        for key, rows in answers:
            cache.write(key, rows)
            found[key] = rows
            bar.update()
    return [row for key, _ in items for row in found[key]]


def _answers(
    cluster: Cluster,
    ladder: Ladder | Pair | None,
    make: Make,
    items: Mapping[str, object],
    arguments: Mapping[str, object],
) -> Iterator[tuple[str, list[Row]]]:
    """The rows that workers made, as they come; what a refused worker had goes to another."""
    from distributed import KilledWorker, as_completed

    recipe = None if ladder is None else cluster.recipe
    call = (recipe, identity(ladder), make, arguments)
    refused: dict[str, tuple[str, ...]] = {}
    keys: dict[Future, str] = {}
    try:
        for key, item in items.items():
            keys[_send(cluster.client, call, item, refused)] = key
        coming = as_completed([*keys], loop=cluster.client.loop)  # it need not be the default one
        for future in coming:
            key = keys[future]
            try:
                answer = future.result()
            except KilledWorker as problem:
                raise ValueError(
                    f"every worker that measured {key} died: {problem.last_worker.address} last;"
                    " its memory may be too small"
                ) from problem
            if not isinstance(answer, Refusal):
                yield key, answer
                continue
            if answer.worker not in refused:
                refused[answer.worker] = answer.differing
                warnings.warn(
                    f"the worker {answer.worker} is refused: it has {_listed(answer.differing)}"
                    " than this client",
                    stacklevel=2,
                )
            again = _send(cluster.client, call, items[key], refused)
            keys[again] = key
            coming.add(again)
    finally:
        cluster.client.cancel([*keys])


def _send(
    client: "Client", call: tuple, item: object, refused: Mapping[str, tuple[str, ...]]
) -> "Future":
    """An item on its way to a worker that is not refused; raises ValueError if there is none."""
    known = client.scheduler_info(n_workers=-1)["workers"]
    allowed = [worker for worker in known if worker not in refused]
    if refused and not allowed:
        said = "; ".join(f"{one} has {_listed(what)}" for one, what in refused.items())
        raise ValueError(f"no worker is like this client: {said}")
    workers = allowed if refused else None
    return client.submit(_measure, *call, item, pure=False, workers=workers)


def _listed(differing: tuple[str, ...]) -> str:
    return f"other {' and '.join(differing)}"


def _measure(
    recipe: LadderRecipe | None,
    expected: Mapping[str, str],
    make: Make,
    arguments: Mapping[str, object],
    item: object,
) -> list[Row] | Refusal:
    """Run on a worker, with one thread of PyTorch: the rows of an item, unless it differs."""
    from distributed import get_worker

    with ONE_AT_A_TIME:
        torch.set_num_threads(1)
        ladder, own = _loaded(recipe)
        differing = tuple(name for name, value in expected.items() if own[name] != value)
        if differing:
            return Refusal(get_worker().address, differing)
        return make(ladder, item, **arguments)


@functools.lru_cache(maxsize=2)
def _loaded(recipe: LadderRecipe | None) -> tuple[Ladder | None, dict[str, str]]:
    """The models of a worker process, loaded once, and what they and the code are."""
    ladder = None if recipe is None else recipe.load()
    return ladder, identity(ladder)
