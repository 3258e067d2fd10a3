"""`specdec bench`: speed against what a user would pick instead, into
data/measured/bench_<machine>.csv.

Run it where nothing else runs.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import DATA
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.race.lineup import REFERENCE, loaded
from specdec_lib.measure.race.memory import flatness, peaks
from specdec_lib.measure.race.running import SMOKE, Plan, measured
from specdec_lib.measure.race.storing import restore, store, store_memory, with_peaks
from specdec_lib.measure.race.table import Row
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.models.loading import RUNTIMES


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, write the tables and print the main one."""
    given = _parsed(arguments)
    started = time.perf_counter()
    if given.threads:
        torch.set_num_threads(given.threads)
    ladders = {
        runtime: loaded(runtime, given.device)
        for runtime in _runtimes(given.runtimes, given.device)
    }
    name = machine_name(str(next(iter(ladders.values())).target.model.device))
    if given.memory:
        _remember(given.folder, name, given.device)
        return
    plan = SMOKE if given.smoke else Plan(repeats=given.repeats, seed=given.seed)
    plan = replace(
        plan, tokens=given.tokens or plan.tokens, prompts=tuple(given.prompts or plan.prompts)
    )
    found = list(measured(ladders, plan, tell=_tell))
    with tempfile.TemporaryDirectory() as scratch:
        table = store(found, Path(scratch) if given.smoke else given.folder, name, {})
    _show(table)
    if not given.smoke:
        _remember(given.folder, name, given.device)
    print(
        f"{time.perf_counter() - started:.0f} s in all;"
        f" {'nothing was kept' if given.smoke else f'written to {given.folder}'}"
    )


def _runtimes(given: str | None, device: str) -> Sequence[str]:
    """Our runtimes: those asked for, or all of this device."""
    if given:
        return given.split(",")
    on_cpu = device == "cpu" or (device == "auto" and not torch.cuda.is_available())
    return RUNTIMES if on_cpu else (REFERENCE,)


def _remember(folder: Path, name: str, device: str) -> None:
    """Measure the memory of everybody in a stored table, and a long run of the method that was
    chosen for greedy text.
    """
    table, contenders = restore(folder, name)
    used = peaks(contenders, device=device)
    chosen = next(
        row["method"] for row in table if row["chosen"] == "True" and float(row["temperature"]) == 0
    )
    long = flatness(next(one for one in contenders if one.method == chosen), device=device)
    with_peaks(folder, name, table, used)
    store_memory(folder, name, used, long, chosen)
    for (method, runtime), peak in used.items():
        print(
            f"{method:16} {runtime:22} peak {peak.peak / 1e6:.0f} MB, allowed"
            f" {peak.allowed / 1e6:.0f} MB"
        )
    print(
        f"{chosen}: "
        + ", ".join(f"{size / 1e6:.0f} MB after {count:,}" for count, size in long)
        + " tokens"
    )


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser("bench", __doc__.partition(": ")[2])
    parser.add_argument(
        "--smoke", action="store_true", help="everything once, on a few prompts; nothing is kept"
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="measure memory alone, for the settings in the stored table",
    )
    parser.add_argument(
        "--threads", type=int, help="of torch, for everybody; by default torch's own choice"
    )
    parser.add_argument("--device", default="auto", help='"auto", "cpu", "cuda", …')
    parser.add_argument(
        "--runtimes",
        help="ours, with commas, the reference first; methods are tuned on the last; by default all that run on the device",
    )
    parser.add_argument(
        "--prompts",
        type=int,
        nargs=2,
        metavar=("GREEDY", "SAMPLED"),
        help="held-out prompts under each sampler",
    )
    parser.add_argument("--tokens", type=int, help="new tokens per prompt, at most")
    parser.add_argument("--repeats", type=int, default=1, help="of everybody on each prompt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--folder", type=Path, default=DATA / "measured", help="where the tables go"
    )
    return parser.parse_args(arguments)


def _tell(line: str) -> None:
    print(line, flush=True)


def _show(table: Sequence[Row]) -> None:
    """A line per method, runtime, sampler and prompt set: ms per token, and the ratio to each
    baseline.
    """
    groups: dict[tuple, list[Row]] = {}
    for row in table:
        groups.setdefault(
            (row["temperature"], row["prompt_set"], row["method"], row["runtime"]), []
        ).append(row)
    title = ""
    for (temperature, prompts, method, runtime), own in groups.items():
        first = own[0]
        heading = f"{sampling_of(temperature, first['top_k'] or None)}, {first['prompts']} prompts ({prompts}), repetition {first['repetition']:.2f}"
        if heading.partition(", repetition")[0] != title.partition(", repetition")[0]:
            title = heading
            print(f"\n{title}")
        ratios = "  ".join(
            f"÷ {row['baseline']} {row['ratio']:.2f}"
            f" ({row['ratio_low']:.2f}–{row['ratio_high']:.2f})"
            for row in own
        )
        mark = "*" if first["chosen"] else " "
        print(
            f"{mark}{method:16} {runtime:22} {first['ms_per_token']:6.2f} ms "
            f" {first['tokens_per_round']:4.2f} tokens per round  {ratios}"
        )
