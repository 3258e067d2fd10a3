"""Seconds per pass, per round and per setting, in four tables: latency, ledger, speeds and sweeps,
each with the name of the machine.

What is compared is timed in turn, so that a slow machine slows all of it.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder, write_whole
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.latency.passes import (
    curves,
    measure_machine,
    prices,
    time_passes,
    with_reached,
    with_roofline,
)
from specdec_lib.measure.latency.predict import Ranges, measured_speed_ups, time_settings
from specdec_lib.measure.latency.time_breakdown import method_ledger
from specdec_lib.measure.machine import (
    clocked_file,
    clocked_here,
    machine_name,
    stored_clocked,
)
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import without_few
from specdec_lib.measure.row_cache import Row, RowCache, records
from specdec_lib.measure.settings.ladder_drafts import racing_ladder
from specdec_lib.measure.settings.latency import few_settings
from specdec_lib.measure.trial import trial_table
from specdec_lib.models.loading import LoadedModel
from specdec_lib.workload import Ladder, load_ladder, load_prompts

BUSY = Quiet(busy=True)
Ladders = Mapping[str, Ladder]  # by the name of their runtime


@dataclass(frozen=True)
class Measuring:
    """What is measured, over which ranges, and what a clock demands of its machine.

    keep    whether finished tables, and finished prompts of speeds and sweeps, are kept: an
            interrupted run goes on, and with the same code nothing is timed twice
    """

    ladders: Ladders
    ranges: Ranges
    quiet: Quiet = BUSY
    keep: bool = False
    progress: bool = True

    def table(self, name: str) -> pd.DataFrame:
        """One of the tables `MEASURES`, with the columns of `clocked_here`, `date` and `cores`."""
        models = {runtime: ladder.models for runtime, ladder in self.ladders.items()}
        folder = self._folder(models, self.ranges)
        return pd.DataFrame(RowCache(folder).rows(name, partial(self._measured, name)))

    def _folder(self, *same: object) -> Path | None:
        """For what is finished, if that is kept."""
        if not self.keep:
            return None
        return cache_folder() / "latency" / fingerprint(machine_name(), self.quiet, *same)

    def _measured(self, name: str) -> list[Row]:
        self.quiet.check()
        found = pd.concat(MEASURES[name](self), ignore_index=True)
        return records(found.assign(**clocked_here(), date=time.strftime("%Y-%m-%d")))

    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables "latency", "ledger", "speeds" and "sweeps", the last two in the last
        runtime.
        """
        return {name: self.table(name) for name in MEASURES}

    def curves(self) -> Iterator[pd.DataFrame]:
        """`curves` of every model with the roofline; `ran` is the runtime in the model's own words.
        A model that several ladders share is timed once, and has the first one's runtime.
        """
        models: dict[tuple[str, str], LoadedModel] = {}
        names: dict[tuple[str, str], str] = {}
        for name, ladder in self.ladders.items():
            for model in ladder.models:
                models.setdefault((model.name, model.runtime), model)
                names.setdefault((model.name, model.runtime), name)
        every = [*models.values()]
        over = (self.ranges.rows, self.ranges.contexts)
        options = {"repeats": self.ranges.repeats, "progress": self.progress}
        watched = self.quiet.timed(partial(time_passes, every, *over, **options))
        table = curves(watched.found)
        machine = with_reached(measure_machine(), table, every)
        table = with_roofline(table, every, machine).assign(ran=table.runtime)
        table["runtime"] = [names[key] for key in zip(table.model, table.ran, strict=True)]
        peaks = {name: getattr(machine, name) for name in ("bytes_per_second", "flops_per_second")}
        yield table.assign(**peaks, cores=watched.cores)

    def ledgers(self) -> Iterator[pd.DataFrame]:
        """`shares` of one setting of each kind on development prompts, per runtime."""
        ranges = self.ranges
        few = max(1, ranges.prompts // 4)
        prompts = load_prompts(ranges.domains[0], "development", few)
        for (name, ladder), sampler in product(self.ladders.items(), ranges.samplers):
            drafts = {one.name: one.draft for one in few_settings(ladder, sampler)}
            limits = {**ranges.limits, "progress": self.progress}
            asked = (ladder, sampler, drafts, prompts)
            watched = self.quiet.timed(partial(method_ledger, *asked, **limits))
            yield watched.found.assign(runtime=name, cores=watched.cores)

    def speeds(self) -> Iterator[pd.DataFrame]:
        """Tokens per second of every setting, predicted and measured, in the last runtime."""
        runtime, ladder = list(self.ladders.items())[-1]
        for sampler in self.ranges.samplers:
            how = {"progress": self.progress, "quiet": self.quiet, "keep": self.keep}
            table = time_settings(ladder, sampler, self.ranges, **how)
            yield table.assign(temperature=sampler.temperature, runtime=runtime)

    def sweeps(self) -> Iterator[pd.DataFrame]:
        """Speed-ups of `few_settings` on held-out prompts of the first domain at every temperature,
        and of every other domain at the first one, in the last runtime.
        """
        runtime, ladder = list(self.ladders.items())[-1]
        ranges = self.ranges
        first, *others = ranges.domains
        places = [(first, temperature) for temperature in ranges.temperatures]
        for domain, temperature in places + [(domain, ranges.temperatures[0]) for domain in others]:
            prompts = load_prompts(domain, "held-out", max(1, ranges.prompts // 2))
            bar = tqdm(prompts, "clock", disable=not self.progress, mininterval=1)
            settings = few_settings(ladder, Sampler(temperature))
            racing = our_contenders(ladder.target, settings)
            timings = race_prompts(
                racing,
                ladder,
                bar,
                tokens=ranges.max_new_tokens,
                seed=ranges.seed,
                folder=self._folder(settings, ranges.limits, ladder.models),
                quiet=self.quiet,
            )
            trials = trial_table(chain.from_iterable(timings))
            about = {"temperature": temperature, "domain": domain, "runtime": runtime}
            yield measured_speed_ups(trials).assign(**about, cores=trials.cores.mean())


MEASURES = {
    "latency": Measuring.curves,
    "ledger": Measuring.ledgers,
    "speeds": Measuring.speeds,
    "sweeps": Measuring.sweeps,
}


def stored_tables(machine: str = "") -> dict[str, pd.DataFrame]:
    """The four tables of a machine, without intervals from few prompts; "" takes those of the
    README's, "here" those of this one.

    Raises ValueError if it lacks one.
    """
    found = {name: stored_clocked(name, machine, verb="latency") for name in MEASURES}
    return {name: without_few(one) if "prompts" in one else one for name, one in found.items()}


def pass_times(ladder: Ladder, machine: str = "") -> pd.DataFrame:
    """Pass times of a ladder's models on the fast runtime, as `pass_tables` takes them: the stored
    ones of a machine ("" for the README's, "here" for this one), or of other models than the
    embedded ones what is timed here and now.
    """
    if not ladder.is_own:
        stored = stored_clocked("passes", machine)
        stored = stored[stored.edition == "exact"]
        return stored.assign(runtime="fast", network_seconds=stored.seconds)
    few = Ranges(rows=(1, 2, 4, 8, 16, 32), contexts=(64, 256), repeats=5)
    return Measuring({"fast": ladder}, few, progress=False).table("latency")


def pass_prices(ladder: Ladder) -> dict[str, float]:
    """Passes of a ladder's models over one row, timed here and now, by model in those of the
    target.
    """
    table = prices(time_passes(ladder.models, progress=False))
    return dict(zip(table.model, table.price, strict=True))


def clocked_ladders() -> dict[str, Ladder]:
    """The embedded ladder by runtime, as it is clocked: with drafts in int8 on the compiled ones,
    of which the last is that of speeds and sweeps.
    """
    reference = load_ladder(device="cpu", runtime="reference")
    return {"reference": reference, "int8": racing_ladder("int8"), "fast": racing_ladder("exact")}


def write_tables(ranges: Ranges, folder: Path, quiet: Quiet) -> None:
    """Measure, and write each table as soon as it is there."""
    quiet.check()
    measuring = Measuring(clocked_ladders(), ranges, quiet, keep=True)
    for name in MEASURES:
        content = measuring.table(name).to_csv(index=False, float_format="%.7g").encode()
        place = clocked_file(name, folder=folder)
        write_whole(place, content)
        print(place)
