"""The sweep itself: kept rows are read, missing ones are decoded here or on a cluster."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.measure.sweep import cluster
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.runs import Run
from specdec_lib.workload import Ladder, Pair, Prompt

if TYPE_CHECKING:
    from distributed import Client
    from pandas import DataFrame
    from tqdm import tqdm


def sweep(
    settings: Sequence[Setting] | Recipe,
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair | Recipe,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    progress: bool = True,
    keep: str | Path | None = None,
    client: "Client | str | None" = None,
) -> "DataFrame":
    """Decode every prompt under every setting, the settings interleaved within a prompt.

    settings    or a recipe that makes them from the ladder
    ladder      or an encoder-decoder pair; or a recipe of either
    keep        a folder where the rows of each finished prompt are kept; a sweep of the same
                settings, models, seed, length and code does not decode them again, whatever its
                other prompts. A damaged file is decoded again
    client      of Dask's scheduler, or its address, "tcp://…"; None takes the address in
                SPECDEC_SCHEDULER, and decodes here if that is not set. Settings and ladder are then
                recipes, made once per worker; see `local_cluster`

    The columns are: draft, temperature, top_k, top_p, rule, match, prompt; counts (tokens, rounds,
    proposed, accepted, tried, and per model its passes, its rows, and the length up to the round's
    root summed over its passes); repetition, stop; seconds (in all, prefill apart, overhead, and
    per model). Rows stand in the order of the grid. All but the seconds is the same whether the
    sweep was interrupted or not and on any number of workers (which use one thread each: another
    number of threads may round differently). Seconds are those of whichever process decoded the
    prompt, beside whatever else ran there: settings can be compared within a prompt, and absolute
    values need one process on a quiet machine.
    Raises ValueError if there is no setting or prompt, two settings have the same name, sampler and
    rule, settings cannot be told apart or sent, workers differ, or no scheduler answers.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    if not prompts:
        raise ValueError("a sweep needs prompts, got none")
    run = Run(settings, ladder, seed, max_new_tokens)
    with (
        cluster.connect(client) as connection,
        tqdm(desc="sweep", disable=not progress, mininterval=1) as bar,
    ):
        rows = _rows(run, prompts, Path(keep) if keep else None, connection, bar)
    return pd.DataFrame([row for group in rows for row in group])


def _rows(
    run: Run, prompts: Sequence[Prompt], keep: Path | None, client: "Client | None", bar: "tqdm"
) -> list[list[Row]]:
    """The rows of every prompt, in order: kept ones, and then the others, which are kept as soon as
    they are done.
    """
    if client is None:
        count, fingerprint = len(run.stage()[0]), run.fingerprint() if keep else ""
    else:
        count, fingerprint = cluster.describe_remotely(client, run)
    kept = Kept(keep / fingerprint, count) if keep else None
    found = {
        number: rows
        for number, prompt in enumerate(prompts)
        if kept and (rows := kept.read(prompt))
    }
    bar.reset(total=count * len(prompts))
    bar.initial = count * len(found)
    bar.update(bar.initial)
    missing = [number for number in range(len(prompts)) if number not in found]
    rest = [prompts[number] for number in missing]
    for number, rows in (
        _here(run, rest, bar) if client is None else _there(client, run, rest, fingerprint, bar)
    ):
        if kept:
            kept.write(rest[number], rows)
        found[missing[number]] = rows
    return [found[number] for number in range(len(prompts))]


def _here(run: Run, prompts: Sequence[Prompt], bar: "tqdm") -> Iterator[tuple[int, list[Row]]]:
    for number, prompt in enumerate(prompts):
        yield number, run.rows(prompt, bar.update)


def _there(
    client: "Client", run: Run, prompts: Sequence[Prompt], fingerprint: str, bar: "tqdm"
) -> Iterator[tuple[int, list[Row]]]:
    for number, rows in cluster.finished_rows(client, run, prompts, fingerprint):
        yield number, rows
        bar.update(len(rows))
