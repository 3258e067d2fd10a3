"""The sweep itself: kept rows are read, missing ones are decoded here or on a cluster."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.kinds import checked
from specdec_lib.measure.sweep import cluster
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.jobs import Job
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import Ladder, Pair, Prompt

if TYPE_CHECKING:
    from distributed import Client
    from pandas import DataFrame


@checked
def sweep(
    settings: Sequence[Setting] | Recipe,
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair | Recipe,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    texts: Sequence[Texts] = (),
    progress: bool = True,
    keep: str | Path | None = None,
    client: "Client | str | None" = None,
) -> "DataFrame":
    """Decode every prompt under every setting, the settings interleaved within a prompt.

    settings    or a recipe that makes them from the ladder
    texts       of the target, which settings are replayed along: see `grid.decode_prompt`
    ladder      or an encoder-decoder pair; or a recipe of either
    keep        a folder where the rows of each finished prompt are kept; a sweep of the same
                settings, models, seed, length and code does not decode them again, whatever its
                other prompts. A damaged file is decoded again
    client      of Dask's scheduler, or its address, "tcp://…"; None takes the address in
                SPECDEC_SCHEDULER, and decodes here if that is not set. Settings and ladder are then
                recipes, made once per worker; see `local_cluster`

    The columns are: draft, temperature, top_k, top_p, rule, match, prompt; tokens, rounds,
    proposed, accepted, tried, repetition, stop; per model its passes, its rows, and the length up
    to the round's root summed over its passes; seconds (in all, prefill apart, overhead, and per
    model). Rows stand in the order of the grid. All but the seconds is the same whether the sweep
    was interrupted or not and on any number of workers, which use one thread each: another number
    of threads may round differently.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    if not prompts:
        raise ValueError("a sweep needs prompts, got none")
    job = Job(settings, ladder, seed, max_new_tokens, tuple(texts))
    with cluster.connect(client) as connection:
        if connection is None:
            count, fingerprint = len(job.stage()[0]), job.fingerprint() if keep else ""
        else:
            count, fingerprint = cluster.describe_remotely(connection, job)
        kept = Kept(Path(keep) / fingerprint, count) if keep else None
        found = [kept.read(prompt) if kept else None for prompt in prompts]
        missing = [number for number, rows in enumerate(found) if rows is None]
        made = _made(job, [prompts[number] for number in missing], connection, fingerprint)
        for place, rows in tqdm(made, "sweep", len(missing), disable=not progress, mininterval=1):
            found[missing[place]] = rows
            if kept:
                kept.write(prompts[missing[place]], rows)
    return pd.DataFrame([row for rows in found for row in rows])


def _made(
    job: Job, prompts: Sequence[Prompt], client: "Client | None", fingerprint: str
) -> Iterator[tuple[int, list[Row]]]:
    """The number of each prompt and its rows, as soon as they are done."""
    if client is not None:
        return cluster.finished_rows(client, job, prompts, fingerprint)
    return ((number, job.rows(prompt)) for number, prompt in enumerate(prompts))
