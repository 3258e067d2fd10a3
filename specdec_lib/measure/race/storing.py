"""The bench's three tables: ratios, the times behind them per prompt, and memory.

Each is written whole or not at all.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.contenders import Contender, Played
from specdec_lib.measure.race.memory import Peak
from specdec_lib.measure.race.running import Measured
from specdec_lib.measure.race.table import COLUMNS, RAW, Row, raw, rows, versions, write

USED = ("method", "runtime", "peak", "weights", "kv", "allowed", "tokens", "bytes")
Peaks = Mapping[tuple[str, str], Peak]


def store(found: Sequence[Measured], folder: Path, machine: str, peaks: Peaks) -> list[Row]:
    """The table of ratios, stored as bench_<machine>.csv, and beside it the times per prompt."""
    looping = {one.sampler.temperature: one.looping for one in found}
    chosen = {one.sampler.temperature: one.lineup.chosen for one in found}
    timings = [timing for one in found for timing in one.timings]
    where = {"machine": machine, "threads": torch.get_num_threads(), "versions": versions()}
    table = [row | where for row in rows(timings, looping, chosen=chosen, memory=_told(peaks))]
    write(folder / f"bench_{machine}.csv", table, COLUMNS)
    write(folder / f"bench_{machine}_prompts.csv", raw(timings), RAW)
    return table


def store_memory(
    folder: Path, machine: str, peaks: Peaks, long: Sequence[tuple[int, int]], method: str
) -> None:
    """bench_<machine>_memory.csv: a row per method with its peak, and a row per 1,000 tokens of a
    long run of one of them; all in bytes.
    """
    told = [
        {"method": name, "runtime": runtime, "allowed": peak.allowed} | asdict(peak)
        for (name, runtime), peak in peaks.items()
    ]
    told += [
        {"method": method, "runtime": "", "tokens": count, "bytes": used} for count, used in long
    ]
    write(folder / f"bench_{machine}_memory.csv", told, USED)


def restore(folder: Path, machine: str) -> tuple[list[Row], list[Contender]]:
    """A stored table, and its contenders by name only: enough for memory, which is measured in
    processes of their own.

    Raises ValueError if there is no such table.
    """
    path = folder / f"bench_{machine}.csv"
    if not path.is_file():
        raise ValueError(
            f"there is no {path}: memory is measured for the settings that a run has chosen; run"
            " `make bench` first"
        )
    with path.open(newline="", encoding="utf-8") as file:
        table: list[Row] = list(csv.DictReader(file))
    known = dict.fromkeys(
        (
            row["method"],
            row["runtime"],
            row["setting"],
            float(row["temperature"]),
            int(row["top_k"]),
        )
        for row in table
    )
    return table, [
        Contender(method, runtime, setting, Sampler(temperature, top_k=top_k or None), _unplayable)
        for method, runtime, setting, temperature, top_k in known
    ]


def with_peaks(folder: Path, machine: str, table: Sequence[Row], peaks: Peaks) -> None:
    """Write a restored table again, with these peaks."""
    told = _told(peaks)
    known = {
        key: dict(zip(("peak_bytes", "allowed_bytes"), sizes, strict=True))
        for key, sizes in told.items()
    }
    write(
        folder / f"bench_{machine}.csv",
        [row | known.get((row["method"], row["runtime"]), {}) for row in table],
        COLUMNS,
    )


def _told(peaks: Peaks) -> dict[tuple[str, str], tuple[int, int]]:
    return {key: (peak.peak, peak.allowed) for key, peak in peaks.items()}


def _unplayable(prompt: tuple[int, ...], count: int, seed: int) -> Played:
    raise ValueError("this contender was read from a table and is a name only")
