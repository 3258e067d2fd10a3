"""`make faults`: long work of every kind meets every fault, and is run again: the table is that of
a run that met none, and what was finished is not done again.

The work is small (models of random weights, notebooks of one cell) and runs in processes of its
own. The faults: SIGKILL, SIGINT, a full disk (no file may grow), a place that cannot be written to,
two processes at once, files cut in half. (Lost workers: tests/test_sweep_cluster.py.) The command
prints a table and fails if a row of it does.
"""

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

HERE = Path(__file__).parent
PARTS = 6  # of each work; one takes `PAUSE` longer than it would, so that a fault meets it midway
PAUSE, PATIENCE = 0.4, 120.0  # seconds


# ---- the work: each writes DIR/table.csv, and says "done N" for each part that it does anew


def sweep_work(folder: Path) -> None:
    from sweeps import LENGTH, settings
    from tiny import tiny_ladder

    from specdec_lib.measure.sweep import grid
    from specdec_lib.measure.sweep.running import sweep
    from specdec_lib.workload import load_prompts

    paused(grid, "decode")
    ladder, prompts = tiny_ladder(), load_prompts("code", "development", PARTS)
    table = sweep(settings(ladder), prompts, ladder, keep=folder / "keep", **LENGTH)
    store(folder, table.drop(columns=table.filter(regex="seconds$")))


def bench_work(folder: Path) -> None:
    from tiny import tiny_ladder

    from specdec_lib.measure.race import harness
    from specdec_lib.measure.race.benchmark import BenchPlan, benchmark

    paused(harness, "race")
    plan = BenchPlan("int8", prompts=1, development=1, tokens=4, most=1)
    found = list(benchmark(tiny_ladder(), plan, lambda _: None, folder / "keep"))
    columns = ["method", "temperature", "top_k", "prompt", "tokens", "rounds"]
    rows = [{name: getattr(one, name) for name in columns} for own, *_ in found for one in own]
    store(folder, pd.DataFrame(rows).sort_values(columns))


def distil_work(folder: Path) -> None:
    from specdec_lib.core.locking import only_process
    from specdec_lib.suite.distil.text import Conversation, TextStore

    texts = [Conversation((one, one, one), 1, True, True, "chat") for one in range(10 * PARTS)]
    with only_process(folder):
        store_ = TextStore(folder / "text")
        for one in texts[len(list(store_)) :]:
            time.sleep(PAUSE / 10)
            store_.add(one)
            print("done", flush=True)
    store(folder, pd.DataFrame(list(TextStore(folder / "text"))))


def reproduce_work(folder: Path) -> None:
    from toys import GOOD, write_toy

    from specdec_lib.suite.reproduce import running
    from specdec_lib.suite.reproduce.command import main

    paused(running, "_papermill")
    toys = folder / "notebooks"
    for number in range(3):
        write_toy(toys, f"0{number}_toy", GOOD)
    status = main(["--out", str(folder / "figures")], notebooks=toys)
    tables = sorted((folder / "figures").glob("*.csv"))
    rows = [{"name": path.name, "content": path.read_text()} for path in tables]
    if status:
        sys.exit(status)
    store(folder, pd.DataFrame(rows))


WORKS = {  # by name: the work, the files that are cut in half, and the folder that cannot be made
    "sweep": (sweep_work, "keep/*/*.json", "keep"),
    "bench": (bench_work, "keep/**/*.json", "keep"),
    "distil": (distil_work, "text/.*.partial", "text"),
    "reproduce": (reproduce_work, "figures/runs/*.json", "figures"),
}
FAULTS = ("SIGKILL", "SIGINT", "full disk", "no folder", "two at once", "files cut in half")


def paused(module: object, name: str) -> None:
    """Let a function of a module say that it did its part, and take a while."""
    real = getattr(module, name)

    def slow(*given: object, **named: object) -> object:
        found = real(*given, **named)
        print("done", flush=True)
        time.sleep(PAUSE)
        return found

    setattr(module, name, slow)


def store(folder: Path, table: pd.DataFrame) -> None:
    (folder / "table.csv").write_text(table.to_csv(index=False))


def child(work: str, folder: Path, full: bool) -> None:
    """Do the work, without room on the disk if that is full."""
    if full:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        WORKS[work][0](folder)
    except (ValueError, OSError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")


# ---- the faults


class Run:
    """A process that does the work in a folder."""

    def __init__(self, work: str, folder: Path, *options: str) -> None:
        command = [sys.executable, __file__, "--child", work, str(folder), *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process, self.done, self.last = subprocess.Popen(command, **pipes), 0, ""

    def until(self, parts: int) -> "Run":
        """Wait until so many parts are done, or the process ends."""
        while self.done < parts and (line := self.process.stdout.readline()):
            self.done += line.endswith("done\n")  # after a progress bar on the same line
            self.last = line.strip() or self.last
        return self

    def end(self) -> int:
        """The exit status."""
        self.until(10**9)
        return self.process.wait(PATIENCE)


def met(work: str, fault: str, folder: Path) -> tuple[int, str]:
    """Let the work meet a fault: the parts that were done, and what is to be said of it."""
    _, cut, place = WORKS[work]
    if fault == "two at once":
        runs = [Run(work, folder), Run(work, folder)]
        states = [one.end() for one in runs]
        return min(one.done for one in runs), f"statuses {states}"
    if fault == "no folder":
        (folder / place).write_text("in the way")
    run = Run(work, folder, *(["--full"] if fault == "full disk" else []))
    if fault in ("SIGKILL", "SIGINT"):
        run.until(2)
        began = time.monotonic()
        run.process.send_signal(getattr(signal, fault))
        status = run.end()
        return run.done, f"status {status} after {time.monotonic() - began:.1f} s"
    if fault == "files cut in half":
        run.end() if work != "distil" else run.until(5).process.kill()
        files = sorted(folder.glob(cut))
        for path in files:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        (folder / "table.csv").unlink(missing_ok=True)
        return 0, f"{len(files)} files"
    status = run.end()
    if fault == "no folder":
        (folder / place).unlink()
    return run.done if status else -(10**9), run.last.replace(str(folder), "DIR")[:70]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(": ")[2])
    parser.add_argument("--child", nargs=2, metavar=("WORK", "DIR"), help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", nargs="+", choices=WORKS, default=[*WORKS])
    given = parser.parse_args()
    if given.child:
        child(given.child[0], Path(given.child[1]), given.full)
        return 0
    rows = []
    for work in given.work:
        with tempfile.TemporaryDirectory() as place:
            whole = Run(work, Path(place))
            assert whole.end() == 0, whole.last
            expected = (Path(place) / "table.csv").read_text()
        for fault in tqdm(FAULTS, desc=work):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                done, note = met(work, fault, folder)
                again = Run(work, folder)
                status, table = again.end(), folder / "table.csv"
                same = status == 0 and table.is_file() and table.read_text() == expected
                row = {"work": work, "fault": fault, "of": whole.done, "done before": done}
                rows.append(row | {"done after": again.done, "same table": same, "note": note})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    midway = table.fault.isin(["SIGKILL", "SIGINT"])
    twice = table["done before"] + table["done after"] > table["of"] + 3  # what was not finished
    return int(not table["same table"].all() or (midway & twice).any())


if __name__ == "__main__":
    sys.exit(main())
