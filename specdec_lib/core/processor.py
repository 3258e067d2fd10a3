"""The processor that everything runs on."""

import platform
from pathlib import Path


def processor_name() -> str:
    """The processor's name as the system gives it, else its architecture."""
    listing = Path("/proc/cpuinfo")
    for line in listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
