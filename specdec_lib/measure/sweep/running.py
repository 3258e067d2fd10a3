"""The sweep itself: kept rows are read, missing ones are decoded here or on a cluster."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.kinds import checked
from specdec_lib.measure.sweep import cluster
from specdec_lib.measure.sweep.grid import Job, Setting
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.texts import Texts
from specdec_lib.workload import Ladder, Pair, Prompt


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
    client: str | None = None,
) -> pd.DataFrame:
    """Decode every prompt under every setting, the settings interleaved within a prompt.

    settings, ladder, texts    see `grid.Job`
    keep        a folder where the rows of each finished prompt are kept, for sweeps of the same
                settings, models, seed, length and code; a damaged file is decoded again
    client      the address of a Dask scheduler, whose workers decode; None takes that in
                SPECDEC_SCHEDULER, and decodes here if it is not set

    The columns are: draft, temperature, top_k, top_p, rule, prompt; tokens, rounds, proposed,
    accepted, tried, repetition, stop; per model its passes, its rows, and the length up to the
    round's root summed over its passes; seconds (in all, of the prefill, overhead, per model).
    All but the seconds is the same whether the sweep was interrupted or not and on any number of
    workers, which use one thread each: another number of threads may round differently.
    """
    if not prompts:
        raise ValueError("a sweep needs prompts, got none")
    job = Job(settings, ladder, seed, max_new_tokens, tuple(texts))
    address = client or os.environ.get(cluster.SCHEDULER)
    with cluster.connect(address) if address else nullcontext() as connection:
        fingerprint = ""
        if connection is not None:
            fingerprint = cluster.remote_fingerprint(connection, job)
        elif keep:
            fingerprint = job.fingerprint()
        kept = Kept(Path(keep) / fingerprint if keep else None)
        found = list(map(kept.read, prompts))
        missing = [number for number, rows in enumerate(found) if rows is None]
        asked = [prompts[number] for number in missing]
        made = (
            enumerate(map(job.rows, asked))
            if connection is None
            else cluster.finished_rows(connection, job, asked, fingerprint)
        )
        for place, rows in tqdm(made, "sweep", len(missing), disable=not progress, mininterval=1):
            found[missing[place]] = rows
            kept.write(prompts[missing[place]], rows)
    return pd.DataFrame([row for rows in found for row in rows])
