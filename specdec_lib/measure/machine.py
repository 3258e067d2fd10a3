"""The machine that a clock ran on: its name, what stands beside its times, and which of the stored
tables is its own.
"""

import re
from pathlib import Path

import pandas as pd
import torch

from specdec_lib.measure.fingerprints import decoding
from specdec_lib.measure.race_table import MEASURED, RACED
from specdec_lib.models.processor import processor_name

HERE = "here"  # this machine, where one is named


def machine_name(device: str = "cpu") -> str:
    """For file names: the GPU, or processor and threads: "amd-epyc-zen-3-avx2-2-threads"."""
    words = f"{processor_name()} {torch.get_num_threads()} threads"
    if device.startswith("cuda"):
        words = torch.cuda.get_device_name(device)
    return for_file_names(words)


def for_file_names(words: str) -> str:
    """Words in the letters of file names: "AMD EPYC, AVX2" is "amd-epyc-avx2"."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def short_name(machine: str) -> str:
    """What tells machines of a figure apart, from a name of files: the processor's generation, the
    widest vector instructions where that is not told, or else the name.
    """
    if generation := re.search(r"-zen-(\d)-", machine):
        return f"Zen {generation[1]}"
    for letters, words in {"avx512": "AVX-512", "avx2": "AVX2"}.items():
        if letters in machine:
            return words
    return machine


def clocked_here() -> dict[str, str | int]:
    """The columns that every table of times has: what its rows must share to stand side by side."""
    return {"threads": torch.get_num_threads(), "machine": machine_name(), "state": decoding()}


def machine_called(machine: str = "") -> str:
    """A machine's name as in files' names: "" is the README's, `HERE` this one, another itself."""
    return machine_name() if machine == HERE else machine or RACED


def clocked_file(name: str, machine: str = HERE, *, folder: Path = MEASURED) -> Path:
    """Where the table of that name is stored for a machine, as in files' names or `HERE`."""
    return folder / f"{name}_{machine_name() if machine == HERE else machine}.csv"


def stored_clocked(
    name: str, machine: str = "", *, verb: str = "", folder: Path = MEASURED
) -> pd.DataFrame:
    """The stored table of that name of a machine: "" is the README's, so that what is drawn from it
    is the same everywhere, `HERE` this one.

    verb    of `specdec measure` that makes it, where that is not its name

    Raises ValueError if there is none.
    """
    place = clocked_file(name, machine or RACED, folder=folder)
    if place.is_file():
        return pd.read_csv(place)
    called = f"this machine ({machine_name()})" if machine == HERE else machine or RACED
    known = stored_machines(name, folder=folder)
    raise ValueError(
        f"no table {name} of {called} is stored in {folder}, there are those of"
        f" {', '.join(known) or 'no machine'}; `specdec measure {verb or name}` makes one"
    )


def stored_machines(name: str, *, folder: Path = MEASURED) -> list[str]:
    """The machines of which the table of that name is stored, as in files' names."""
    places = folder.glob(f"{name}_*-threads.csv")
    return sorted(place.stem.removeprefix(f"{name}_") for place in places)
