"""The four tables of notebook 05, measured here or read as they were stored: curves, where the time
goes, speeds, and sweeps.

What is compared is timed in turn, so that a slow machine slows all of it.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import DATA
from specdec_lib.measure.latency.curves import CONTEXTS, ROWS, curves, runtime_of
from specdec_lib.measure.latency.ledger import ledger, shares
from specdec_lib.measure.latency.machine import machine_name, measured_machine, with_roofline
from specdec_lib.measure.latency.speeds import (
    Kinded,
    compared,
    few,
    grid,
    measured,
    raced,
    speed_ups,
)
from specdec_lib.workload import DOMAINS, Ladder, load_prompts, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

PLACE = DATA / "measured"
TABLES = ("latency", "ledger", "speeds", "sweeps")

Settings = Callable[[Ladder, Sampler], Mapping[str, Kinded]]


@dataclass(frozen=True)
class Ranges:
    """What to measure over.

    rows, contexts    of the curves, and `repeats` passes per place
    temperatures      of the sweeps; the ledger and the speeds are at 0 and 1
    domains           of the sweeps; all else is on code prompts
    prompts           of each split, for the speeds; half of them for the sweeps, a quarter for the
                      ledger
    max_new_tokens    per prompt
    settings          (ladder, sampler) to the drafts whose speeds are predicted and measured
    """

    rows: Sequence[int] = ROWS
    contexts: Sequence[int] = CONTEXTS
    repeats: int = 25
    temperatures: Sequence[float] = (0.0, 0.5, 1.0, 1.5)
    domains: Sequence[str] = DOMAINS
    prompts: int = 40
    max_new_tokens: int = 64
    settings: Settings = grid
    seed: int = 0

    def samplers(self) -> tuple[Sampler, Sampler]:
        """Greedy, and as the target's law is."""
        return Sampler(0.0), Sampler(1.0)


def all_measured(
    ladders: Mapping[str, Ladder], ranges: Ranges = Ranges(), *, progress: bool = True
) -> "dict[str, DataFrame]":
    """The tables "latency", "ledger", "speeds" and "sweeps".

    ladders    by the name of their runtime; the last one's speeds are measured and swept
    """
    runtime, ladder = list(ladders.items())[-1]
    return {
        "latency": timed_curves(ladders, ranges, progress=progress),
        "ledger": timed_ledger(ladders, ranges, progress=progress),
        "speeds": timed_speeds(ladder, ranges, progress=progress).assign(runtime=runtime),
        "sweeps": timed_sweeps(ladder, ranges, progress=progress).assign(runtime=runtime),
    }


def timed_curves(
    ladders: Mapping[str, Ladder], ranges: Ranges = Ranges(), *, progress: bool = True
) -> "DataFrame":
    """`curves` of every model of every ladder, with the roofline: `runtime` is the ladder's name,
    `ran` what that was in the model's words.
    """
    models = [
        (name, model)
        for name, ladder in ladders.items()
        for model in (ladder.target, ladder.middle, ladder.draft)
    ]
    whose = {(model.name, runtime_of(model)): name for name, model in models}
    every, machine = [model for _, model in models], measured_machine()
    table = with_roofline(
        curves(every, ranges.rows, ranges.contexts, repeats=ranges.repeats, progress=progress),
        every,
        machine,
    )
    ran = table.runtime.fillna("")
    peaks = {
        "bytes_per_second": machine.bytes_per_second,
        "flops_per_second": machine.flops_per_second,
        "machine": machine.name,
    }
    return table.assign(
        runtime=[whose[key] for key in zip(table.model, ran, strict=True)], ran=ran, **peaks
    )


def timed_ledger(
    ladders: Mapping[str, Ladder], ranges: Ranges = Ranges(), *, progress: bool = True
) -> "DataFrame":
    """`shares` of one setting of each kind on development prompts, per runtime."""
    import pandas as pd

    found, asked = [], load_prompts("code", "development", max(1, ranges.prompts // 4))
    for name, ladder in ladders.items():
        for sampler in ranges.samplers():
            chances = [Chance(one, sampler) for one in seeds(asked, ranges.seed)]
            drafts = {label: one.draft for label, one in few(ladder, sampler).items()}
            limits = {
                "max_new_tokens": ranges.max_new_tokens,
                "stop_tokens": ladder.stop_tokens,
                "progress": progress,
            }
            table = ledger(
                ladder.target,
                drafts,
                [ladder.encode(prompt) for prompt in asked],
                chances,
                **limits,
            )
            found.append(shares(table).assign(runtime=name))
    return pd.concat(found, ignore_index=True)


def timed_speeds(
    ladder: Ladder, ranges: Ranges = Ranges(), *, progress: bool = True
) -> "DataFrame":
    """Predicted and measured tokens per second of every setting under each sampler."""
    import pandas as pd

    found = []
    for sampler in ranges.samplers():
        development, held_out = (
            load_prompts("code", split, ranges.prompts) for split in ("development", "held-out")
        )
        limits = {
            "seed": ranges.seed,
            "max_new_tokens": ranges.max_new_tokens,
            "progress": progress,
        }
        foresight, rows = raced(
            ladder, ranges.settings(ladder, sampler), sampler, development, held_out, **limits
        )
        found.append(compared(foresight, rows).assign(temperature=sampler.temperature))
    return pd.concat(found, ignore_index=True)


def timed_sweeps(
    ladder: Ladder, ranges: Ranges = Ranges(), *, progress: bool = True
) -> "DataFrame":
    """Speed-ups of one setting of each kind at every temperature in every domain, on held-out
    prompts.
    """
    import pandas as pd

    found = []
    for domain in ranges.domains:
        prompts = load_prompts(domain, "held-out", max(1, ranges.prompts // 2))
        for temperature in ranges.temperatures:
            sampler = Sampler(temperature)
            limits = {
                "seed": ranges.seed,
                "max_new_tokens": ranges.max_new_tokens,
                "progress": progress,
            }
            rows = measured(ladder, few(ladder, sampler), sampler, prompts, **limits)
            found.append(speed_ups(rows).assign(temperature=temperature, domain=domain))
    return pd.concat(found, ignore_index=True)


def store(table: "DataFrame", name: str, *, folder: Path = PLACE) -> Path:
    """The table under its name and this machine's, written whole or not at all.

    Raises ValueError for another name.
    """
    if name not in TABLES:
        raise ValueError(f"a table is one of {', '.join(TABLES)}, got {name!r}")
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{name}_{machine_name()}.csv"
    partial = place.with_suffix(".partial")
    table.to_csv(partial, index=False, float_format="%.7g")
    os.replace(partial, place)
    return place


def stored(machine: str = "", *, folder: Path = PLACE) -> "dict[str, DataFrame]":
    """The four tables of a machine as they were stored; "" takes the first machine by name that has
    all four.

    Raises ValueError if a table of that machine is missing, or no machine has all.
    """
    import pandas as pd

    having = [
        {path.stem.partition("_")[2] for path in folder.glob(f"{name}_*.csv")} for name in TABLES
    ]
    known = sorted(set.intersection(*having))
    if not known or (machine and machine not in known):
        raise ValueError(
            f"no measurements of {machine or 'any machine'} in {folder}, there are"
            f" {', '.join(known) or 'none'}; see specdec_lib.measure.latency"
        )
    return {
        name: pd.read_csv(folder / f"{name}_{machine or known[0]}.csv", keep_default_na=True)
        for name in TABLES
    }
