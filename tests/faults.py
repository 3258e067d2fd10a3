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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from tqdm.auto import tqdm

PARTS = 6  # of each work; one takes `PAUSE` longer than it would, so that a fault meets it midway
PAUSE = 0.4  # seconds
FAULTS = ("SIGKILL", "SIGINT", "full disk", "no folder", "two at once", "files cut in half")


def sweep_work(folder: Path) -> pd.DataFrame:
    from sweeps import LENGTH, settings, without_seconds
    from tiny import tiny_ladder

    from specdec_lib.measure import replaying
    from specdec_lib.measure.replaying import sweep
    from specdec_lib.workload import load_prompts

    paused(replaying, "decode")
    ladder, prompts = tiny_ladder(), load_prompts("code", "development", PARTS)
    return without_seconds(sweep(settings(ladder), prompts, ladder, keep=folder / "keep", **LENGTH))


def distil_work(folder: Path) -> pd.DataFrame:
    from specdec_lib.core.locking import only_process
    from specdec_lib.suite.distil import shards
    from specdec_lib.suite.distil.shards import Conversation, list_shards, read_text, stored

    shards.WRITE_SECONDS = 0  # each is stored as it comes
    numbers = range(10 * PARTS)
    texts = [Conversation((one,) * 3, ((1, 3),), True, True, "chat") for one in numbers]
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

    paused(running, "_papermill")
    for number in range(3):
        write_toy(folder / "notebooks", f"0{number}_toy", GOOD)
    asked = running.RunRequest(out=folder / "figures", notebooks=folder / "notebooks")
    status = running.reproduce_figures(asked)
    if status:
        sys.exit(status)
    tables = sorted((folder / "figures").glob("*.csv"))
    return pd.DataFrame({"name": path.name, "content": path.read_text()} for path in tables)


WORKS = {  # by name: the work, the files that are cut in half, and the folder that cannot be made
    "sweep": (sweep_work, "keep/*/*.json", "keep"),
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
    """Do the work and write DIR/table.csv; no file may grow if the disk is full. SIGINT interrupts
    it even where a shell, which started this in the background, has it ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if fault == "full disk":
        tempfile.gettempdir()  # found by writing, and wanted by imports
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    WORKS[work][0](folder).to_csv(folder / "table.csv", index=False)


class Ended(NamedTuple):
    """A process that did the work: its exit status, the parts that it did anew, its last line."""

    status: int
    done: int
    last: str


def run(work: str, folder: Path, fault: str = "", sent: signal.Signals | None = None) -> Ended:
    """Let a process do the work in a folder; after two parts it is sent a signal."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([sys.executable, __file__, work, str(folder), fault], **pipes)
    done, last = 0, ""
    for line in process.stdout:
        done += line.endswith("done\n")  # after a progress bar on the same line
        last = line.strip() or last
        if sent and line.endswith("done\n") and done == 2:
            process.send_signal(sent)
    return Ended(process.wait(), done, last.replace(str(folder), "DIR")[:60])


def meet(work: str, fault: str, folder: Path) -> Ended:
    """Let the work meet a fault."""
    _, cut, place = WORKS[work]
    if fault == "two at once":
        with ThreadPoolExecutor() as pool:
            one, other = pool.map(run, [work] * 2, [folder] * 2)
        return Ended(max(one.status, other.status), 0, other.last)
    if fault == "no folder":
        (folder / place).write_text("in the way")
    killed = work == "distil" and fault == "files cut in half"
    ended = run(work, folder, fault, signal.SIGKILL if killed else getattr(signal, fault, None))
    if fault == "no folder":
        (folder / place).unlink()
    if fault == "files cut in half":
        for path in folder.glob(cut):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        (folder / "table.csv").unlink(missing_ok=True)
    return ended


def main() -> int:
    rows = []
    for work in WORKS:
        with tempfile.TemporaryDirectory() as place:
            whole = run(work, Path(place))
            assert whole.status == 0, whole.last
            expected = (Path(place) / "table.csv").read_text()
        for fault in tqdm(FAULTS, desc=work):
            with tempfile.TemporaryDirectory() as place:
                met, again = meet(work, fault, Path(place)), run(work, Path(place))
                same = again.status == 0 and (Path(place) / "table.csv").read_text() == expected
            row = {"work": work, "fault": fault, "of": whole.done, "done before": met.done}
            row |= {"done after": again.done, "same table": same}
            rows.append(row | {"status": met.status, "last line": met.last})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    signals = ["SIGKILL", "SIGINT"]
    midway = table.fault.isin(signals)
    twice = table["done before"] + table["done after"] > table["of"] + 3  # what was not finished
    failed = table.fault.isin(["full disk", "no folder", *signals]) & (table.status == 0)
    return int(not table["same table"].all() or failed.any() or (midway & twice).any())


if __name__ == "__main__":
    sys.exit(child(sys.argv[1], Path(sys.argv[2]), sys.argv[3]) if sys.argv[1:] else main())
