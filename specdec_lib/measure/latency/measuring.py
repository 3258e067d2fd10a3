"""Seconds per pass, per round and per setting, in four tables: latency, ledger, speeds and sweeps,
each with the name of the machine.

What is compared is timed in turn, so that a slow machine slows all of it.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, product
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA, write_whole
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.latency.passes import (
    curves,
    measure_machine,
    prices,
    time_passes,
    with_roofline,
)
from specdec_lib.measure.latency.predict import Ranges, measured_speed_ups, time_settings
from specdec_lib.measure.latency.time_breakdown import method_ledger
from specdec_lib.measure.machine import machine_name, stored_clocked
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import without_few
from specdec_lib.measure.settings.latency import few_settings
from specdec_lib.measure.trial import trial_table
from specdec_lib.workload import Ladder, load_ladder, load_prompts

TIMED = ("reference", "int8", "fast")  # runtimes; the last is that of speeds and sweeps
PLACE = DATA / "measured"
Ladders = Mapping[str, Ladder]  # by the name of their runtime


def measure_all(
    ladders: Ladders, ranges: Ranges, *, progress: bool = True
) -> dict[str, pd.DataFrame]:
    """The tables "latency", "ledger", "speeds" and "sweeps", the last two in the last runtime."""
    return {name: measure_table(name, ladders, ranges, progress) for name in MEASURES}


def measure_table(name: str, ladders: Ladders, ranges: Ranges, progress: bool) -> pd.DataFrame:
    """One of the tables of `measure_all`."""
    return pd.concat(MEASURES[name](ladders, ranges, progress), ignore_index=True)


def _curves(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """`curves` of every model with the roofline; `ran` is the runtime in the model's own words."""
    models = [(name, model) for name, ladder in ladders.items() for model in ladder.models]
    names = {(model.name, model.runtime): name for name, model in models}
    every = [model for _, model in models]
    machine = measure_machine()
    options = {"repeats": ranges.repeats, "progress": progress}
    table = curves(time_passes(every, ranges.rows, ranges.contexts, **options))
    table = with_roofline(table, every, machine).assign(ran=table.runtime)
    table["runtime"] = [names[key] for key in zip(table.model, table.ran, strict=True)]
    peaks = {name: getattr(machine, name) for name in ("bytes_per_second", "flops_per_second")}
    yield table.assign(**peaks, machine=machine.name)


def _ledgers(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """`shares` of one setting of each kind on development prompts, per runtime."""
    prompts = load_prompts(ranges.domains[0], "development", max(1, ranges.prompts // 4))
    for (name, ladder), sampler in product(ladders.items(), ranges.samplers):
        drafts = {one.name: one.draft for one in few_settings(ladder, sampler)}
        table = method_ledger(
            ladder,
            sampler,
            drafts,
            prompts,
            tokens=ranges.max_new_tokens,
            seed=ranges.seed,
            progress=progress,
        )
        yield table.assign(runtime=name)


def _speeds(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """Tokens per second of every setting, predicted and measured, in the last runtime."""
    runtime, ladder = list(ladders.items())[-1]
    for sampler in ranges.samplers:
        table = time_settings(ladder, sampler, ranges, progress)
        yield table.assign(temperature=sampler.temperature, runtime=runtime)


def _sweeps(ladders: Ladders, ranges: Ranges, progress: bool) -> Iterator[pd.DataFrame]:
    """Speed-ups of `few_settings` on held-out prompts of the first domain at every temperature, and
    of every other domain at the first one, in the last runtime.
    """
    runtime, ladder = list(ladders.items())[-1]
    first, *others = ranges.domains
    places = [(first, temperature) for temperature in ranges.temperatures]
    for domain, temperature in places + [(domain, ranges.temperatures[0]) for domain in others]:
        prompts = load_prompts(domain, "held-out", max(1, ranges.prompts // 2))
        bar = tqdm(prompts, "clock", disable=not progress, mininterval=1)
        sampler = Sampler(temperature)
        racing = our_contenders(ladder.target, few_settings(ladder, sampler))
        timings = race_prompts(racing, ladder, bar, tokens=ranges.max_new_tokens, seed=ranges.seed)
        table = measured_speed_ups(trial_table(chain.from_iterable(timings)))
        yield table.assign(temperature=temperature, domain=domain, runtime=runtime)


MEASURES = {"latency": _curves, "ledger": _ledgers, "speeds": _speeds, "sweeps": _sweeps}


def table_file(name: str, folder: Path = PLACE) -> Path:
    """Where a table of this machine is stored."""
    return folder / f"{name}_{machine_name()}.csv"


def stored_tables(machine: str = "", *, folder: Path = PLACE) -> dict[str, pd.DataFrame]:
    """The four tables of a machine, without intervals from few prompts; "" takes this machine's if
    it has all, else those of the README's, else the first that there are.

    Raises ValueError if there are none.
    """
    # of the table that is written last
    known = sorted(path.stem.removeprefix("sweeps_") for path in folder.glob("sweeps_*.csv"))
    if not known or (machine and machine not in known):
        raise ValueError(
            f"no measurements of {machine or 'any machine'} in {folder}, there are"
            f" {', '.join(known) or 'none'}; `specdec measure latency` makes them"
        )
    preferred = [one for one in (machine_name(), RACED) if one in known]
    chosen = machine or [*preferred, *known][0]
    found = {name: pd.read_csv(folder / f"{name}_{chosen}.csv") for name in MEASURES}
    return {name: without_few(one) if "prompts" in one else one for name, one in found.items()}


def pass_times(ladder: Ladder, machine: str = "") -> pd.DataFrame:
    """Pass times of a ladder's models on the fast runtime, as `pass_tables` takes them: the stored
    ones of a machine ("" for this one, else the README's), or of other models than the embedded
    ones what is timed here and now.
    """
    if not ladder.is_own:
        stored = stored_clocked("passes", machine)
        stored = stored[stored.edition == "exact"]
        return stored.assign(runtime="fast", network_seconds=stored.seconds)
    few = Ranges(rows=(1, 2, 4, 8, 16, 32), contexts=(64, 256), repeats=5)
    return measure_table("latency", {"fast": ladder}, few, progress=False)


def pass_prices(ladder: Ladder) -> dict[str, float]:
    """Passes of a ladder's models over one row, timed here and now, by model in those of the
    target.
    """
    table = prices(time_passes(ladder.models, progress=False))
    return dict(zip(table.model, table.price, strict=True))


def write_tables(ranges: Ranges, folder: Path) -> None:
    """Measure, and write each table as soon as it is there."""
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in TIMED}
    for name in MEASURES:
        table = measure_table(name, ladders, ranges, True)
        content = table.to_csv(index=False, float_format="%.7g").encode()
        write_whole(table_file(name, folder), content)
        print(table_file(name, folder))
