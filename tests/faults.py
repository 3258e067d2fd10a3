"""`make faults`: long work of every kind meets every fault, and is run again: the table is that of
a run that met none, and what was finished is not done again.

The work is small (models of random weights, notebooks of one cell) and runs in processes of its
own. The faults: SIGKILL, SIGINT, a full disk (no file may grow), a place that cannot be written to,
two processes at once, files cut in half. The command prints a table and fails if a row of it does.
"""

import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

PARTS = 6  # of each work; one takes `PAUSE` longer than it would, so that a fault meets it midway
PAUSE = 0.4  # seconds
FAULTS = ("SIGKILL", "SIGINT", "full disk", "no folder", "two at once", "files cut in half")


def sweep_work(folder: Path) -> pd.DataFrame:
    from sweeps import LENGTH, settings
    from tiny import tiny_ladder

    from specdec_lib.measure.sweep import grid
    from specdec_lib.measure.sweep.running import sweep
    from specdec_lib.workload import load_prompts

    paused(grid, "decode")
    ladder, prompts = tiny_ladder(), load_prompts("code", "development", PARTS)
    table = sweep(settings(ladder), prompts, ladder, keep=folder / "keep", **LENGTH)
    return table.drop(columns=table.filter(regex="seconds$"))


def bench_work(folder: Path) -> pd.DataFrame:
    from tiny import tiny_ladder

    from specdec_lib.measure.race import command as module
    from specdec_lib.measure.race import harness
    from specdec_lib.measure.race.command import BenchPlan, benchmark

    paused(harness, "race")
    # the clock chooses what runs under the third, and the precision of Hugging Face
    module.SAMPLERS = module.SAMPLERS[:2]
    plan = BenchPlan((1, 1), 1, development=1, tokens=4, stages=(1,), most=1, hugging=False)
    found = list(benchmark({"reference": tiny_ladder()}, plan, lambda _: None, folder / "keep"))
    columns = ["method", "temperature", "top_k", "prompt", "tokens", "rounds"]
    rows = [{name: getattr(one, name) for name in columns} for own, *_ in found for one in own]
    return pd.DataFrame(rows).sort_values(columns)


def distil_work(folder: Path) -> pd.DataFrame:
    from specdec_lib.core.locking import only_process
    from specdec_lib.suite.distil.text import Conversation, list_shards, read_text, stored

    texts = [Conversation((one, one, one), 1, True, True, "chat") for one in range(10 * PARTS)]
    place = folder / "text"
    with only_process(folder):
        place.mkdir(exist_ok=True)
        begun = len(read_text(place)) if list_shards(place) else 0
        for _ in stored(place, texts[begun:]):
            print("done", flush=True)
            time.sleep(PAUSE / 10)
    return pd.DataFrame(read_text(place))


def reproduce_work(folder: Path) -> pd.DataFrame:
    from toys import GOOD, write_toy

    from specdec_lib.suite.reproduce import running
    from specdec_lib.suite.reproduce.command import main

    paused(running, "_papermill")
    for number in range(3):
        write_toy(folder / "notebooks", f"0{number}_toy", GOOD)
    status = main(["--out", str(folder / "figures")], notebooks=folder / "notebooks")
    if status:
        sys.exit(status)
    tables = sorted((folder / "figures").glob("*.csv"))
    return pd.DataFrame({"name": path.name, "content": path.read_text()} for path in tables)


WORKS = {  # by name: the work, the files that are cut in half, and the folder that cannot be made
    "sweep": (sweep_work, "keep/*/*.json", "keep"),
    "bench": (bench_work, "keep/**/*.json", "keep"),
    "distil": (distil_work, "text/.*.partial", "text"),
    "reproduce": (reproduce_work, "figures/runs/*.json", "figures"),
}


def paused(module: object, name: str) -> None:
    """Let a function of a module say that it did its part, and take a while."""
    real = getattr(module, name)

    def slow(*given: object, **named: object) -> object:
        found = real(*given, **named)
        print("done", flush=True)
        time.sleep(PAUSE)
        return found

    setattr(module, name, slow)


def child(work: str, folder: Path, fault: str) -> None:
    """Do the work and write DIR/table.csv; no file may grow if the disk is full."""
    if fault == "full disk":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        WORKS[work][0](folder).to_csv(folder / "table.csv", index=False)
    except (ValueError, OSError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")


class Run:
    """A process that does the work in a folder; `done` counts the parts that it did anew."""

    def __init__(self, work: str, folder: Path, fault: str = "") -> None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        command = [sys.executable, __file__, work, str(folder), fault]
        self.process, self.done, self.last = subprocess.Popen(command, **pipes), 0, ""

    def end(self, sent: signal.Signals | None = None, after: int = 2) -> int:
        """The exit status; the process is sent a signal after so many parts."""
        for line in self.process.stdout:
            self.done += line.endswith("done\n")  # after a progress bar on the same line
            self.last = line.strip() or self.last
            if sent and self.done == after:
                self.process.send_signal(sent)
                sent = None
        return self.process.wait()


def met(work: str, fault: str, folder: Path) -> tuple[int, str]:
    """Let the work meet a fault: the parts that were done, and what is to be said of it."""
    _, cut, place = WORKS[work]
    if fault == "two at once":
        runs = [Run(work, folder), Run(work, folder)]
        return 0, f"statuses {[one.end() for one in runs]}"
    if fault == "no folder":
        (folder / place).write_text("in the way")
    run, sent = Run(work, folder, fault), getattr(signal, fault, None)
    if work == "distil" and fault == "files cut in half":
        sent = signal.SIGKILL
    status = run.end(sent)
    if fault == "no folder":
        (folder / place).unlink()
    if fault == "files cut in half":
        for path in folder.glob(cut):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        (folder / "table.csv").unlink(missing_ok=True)
    return run.done, f"status {status}: {run.last.replace(str(folder), 'DIR')[:60]}"


def main() -> int:
    rows = []
    for work in WORKS:
        with tempfile.TemporaryDirectory() as place:
            whole = Run(work, Path(place))
            assert whole.end() == 0, whole.last
            expected = (Path(place) / "table.csv").read_text()
        for fault in tqdm(FAULTS, desc=work):
            with tempfile.TemporaryDirectory() as place:
                done, note = met(work, fault, Path(place))
                again, table = Run(work, Path(place)), Path(place) / "table.csv"
                same = again.end() == 0 and table.read_text() == expected
            row = {"work": work, "fault": fault, "of": whole.done, "done before": done}
            rows.append(row | {"done after": again.done, "same table": same, "note": note})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    midway = table.fault.isin(["SIGKILL", "SIGINT"])
    twice = table["done before"] + table["done after"] > table["of"] + 3  # what was not finished
    failed = table.fault.isin(["full disk", "no folder"]) & table.note.str.startswith("status 0")
    return int(not table["same table"].all() or failed.any() or (midway & twice).any())


if __name__ == "__main__":
    sys.exit(child(sys.argv[1], Path(sys.argv[2]), sys.argv[3]) if sys.argv[1:] else main())
