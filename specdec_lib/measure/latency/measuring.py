"""`specdec measure latency`: measures seconds per pass, per round and per setting, into four tables
of data/measured: latency, ledger, speeds and sweeps, each with the name of the machine.

What is compared is timed in turn, so that a slow machine slows all of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA, check_output, write_whole
from specdec_lib.measure.latency import speeds
from specdec_lib.measure.latency.ledger import method_ledger
from specdec_lib.measure.latency.passes import (
    CONTEXTS,
    ROWS,
    curves,
    fit_lines,
    machine_name,
    measure_machine,
    time_passes,
    with_roofline,
)
from specdec_lib.measure.race.harness import race_drafts
from specdec_lib.measure.sweep.ratios import without_few
from specdec_lib.models.loading import RUNTIMES
from specdec_lib.workload import DOMAINS, SPLITS, Ladder, load_ladder, load_prompts

PLACE = DATA / "measured"
SHOWN = ["draft", "temperature", "predicted", "measured", "error", "speed_up"]
Ladders = Mapping[str, Ladder]  # by the name of their runtime


@dataclass(frozen=True)
class Ranges:
    """What to measure over.

    rows, contexts    of the curves, and `repeats` passes per place
    temperatures      of the first domain's sweep; the other domains are swept at the first one
    domains           of the sweeps; all else is on prompts of the first
    prompts           of each split, for speeds; half of them for sweeps, a quarter for the ledger
    settings          the drafts whose speeds are predicted and measured
    """

    rows: Sequence[int] = ROWS
    contexts: Sequence[int] = CONTEXTS
    repeats: int = 25
    temperatures: Sequence[float] = (0.0, 0.5, 1.0, 1.5)
    domains: Sequence[str] = DOMAINS
    prompts: int = 40
    max_new_tokens: int = 64
    settings: Callable[[Ladder, Sampler], Mapping[str, speeds.Kinded]] = speeds.grid
    seed: int = 0
    samplers: Sequence[Sampler] = (Sampler(0.0), Sampler(1.0))

    @property
    def limits(self) -> dict[str, int]:
        return {"seed": self.seed, "tokens": self.max_new_tokens}


def measure_all(
    ladders: Ladders, ranges: Ranges = Ranges(), *, progress: bool = True
) -> dict[str, pd.DataFrame]:
    """The tables "latency", "ledger", "speeds" and "sweeps", the last two in the last runtime."""
    return {name: measure_table(name, ladders, ranges, progress) for name in MEASURES}


def measure_table(
    name: str, ladders: Ladders, ranges: Ranges, progress: bool = True
) -> pd.DataFrame:
    """One of the tables of `measure_all`."""
    return pd.concat(MEASURES[name](ladders, ranges, progress), ignore_index=True)


def _curves(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """`curves` of every model with the roofline; `ran` is the runtime in the model's own words."""
    models = [(name, model) for name, ladder in ladders.items() for model in ladder.models]
    names = {(model.name, model.runtime): name for name, model in models}
    every, machine = [model for _, model in models], measure_machine()
    options = {"repeats": ranges.repeats, "progress": progress}
    table = curves(time_passes(every, ranges.rows, ranges.contexts, **options))
    table = with_roofline(table, every, machine).assign(ran=table.runtime)
    table["runtime"] = [names[key] for key in zip(table.model, table.ran, strict=True)]
    peaks = {name: getattr(machine, name) for name in ("bytes_per_second", "flops_per_second")}
    yield table.assign(**peaks, machine=machine.name)


def _ledgers(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """`shares` of one setting of each kind on development prompts, per runtime."""
    prompts = load_prompts(ranges.domains[0], "development", max(1, ranges.prompts // 4))
    options = ranges.limits | {"progress": progress}
    for (name, ladder), sampler in product(ladders.items(), ranges.samplers):
        drafts = {label: draft for label, (_, draft) in speeds.few(ladder, sampler).items()}
        yield method_ledger(ladder, sampler, drafts, prompts, **options).assign(runtime=name)


def _speeds(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """Tokens per second of every setting, predicted and measured, in the last runtime."""
    runtime, ladder = list(ladders.items())[-1]
    splits = [load_prompts(ranges.domains[0], name, ranges.prompts) for name in SPLITS]
    limits = ranges.limits | {"rows": ranges.rows, "progress": progress}
    for sampler in ranges.samplers:
        drafts = ranges.settings(ladder, sampler)
        table = speeds.race_predictions(ladder, drafts, sampler, *splits, **limits)
        yield table.assign(temperature=sampler.temperature, runtime=runtime)


def _sweeps(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """Speed-ups of `few` on held-out prompts of the first domain at every temperature, and of every
    other domain at the first one, in the last runtime.
    """
    runtime, ladder = list(ladders.items())[-1]
    first, *others = ranges.domains
    places = [(first, temperature) for temperature in ranges.temperatures]
    for domain, temperature in places + [(domain, ranges.temperatures[0]) for domain in others]:
        prompts = load_prompts(domain, "held-out", max(1, ranges.prompts // 2))
        bar = tqdm(prompts, "clock", disable=not progress, mininterval=1)
        sampler = Sampler(temperature)
        timings = race_drafts(ladder, speeds.few(ladder, sampler), sampler, bar, **ranges.limits)
        table = speeds.measured_speed_ups(pd.DataFrame(map(vars, chain.from_iterable(timings))))
        yield table.assign(temperature=temperature, domain=domain, runtime=runtime)


MEASURES = {"latency": _curves, "ledger": _ledgers, "speeds": _speeds, "sweeps": _sweeps}


def table_file(name: str) -> Path:
    """Where a table of this machine is stored."""
    return PLACE / f"{name}_{machine_name()}.csv"


def stored_tables(machine: str = "", *, folder: Path = PLACE) -> dict[str, pd.DataFrame]:
    """The four tables of a machine ("": the first that has all), without intervals from few
    prompts.  Raises ValueError if there is none.
    """
    having = [
        {path.stem.partition("_")[2] for path in folder.glob(f"{name}_*.csv")} for name in MEASURES
    ]
    known = sorted(set.intersection(*having))
    if not known or (machine and machine not in known):
        what = f"no measurements of {machine or 'any machine'} in {folder}"
        there = ", ".join(known) or "none"
        raise ValueError(f"{what}, there are {there}; `specdec measure latency` makes them")
    found = {name: pd.read_csv(folder / f"{name}_{machine or known[0]}.csv") for name in MEASURES}
    return {name: without_few(one) if "prompts" in one else one for name, one in found.items()}


def main(arguments: list[str] | None = None) -> None:
    """Measure, write each table as soon as it is there, and print what came of it."""
    about = __doc__.partition(": ")[2].partition("\n\n")[0]
    parser = Parser("measure latency", about)
    runtimes = {"choices": RUNTIMES, "default": ("reference", "fast")}
    told = "the last one is that of speeds and sweeps"
    parser.add_argument("--runtimes", nargs="+", **runtimes, help=told)
    told = "for speeds; half for sweeps, a quarter for the ledger"
    parser.add_common("--limit", Ranges().prompts, told)
    parser.add_argument("--threads", type=int, default=1, help="of torch (default: 1)")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    for name in MEASURES:
        check_output(table_file(name))
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in given.runtimes}
    for name in MEASURES:
        table = measure_table(name, ladders, Ranges(prompts=given.limit))
        if name == "latency":
            print(fit_lines(table).to_string(index=False))
        if name == "speeds":
            print(table[SHOWN].round(3).to_string(index=False))
        write_whole(table_file(name), table.to_csv(index=False, float_format="%.7g").encode())
        print(table_file(name))
