"""The processor that everything runs on."""

import platform
from pathlib import Path

LISTING = Path("/proc/cpuinfo")
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")  # narrowest first


def processor_name(listing: Path = LISTING) -> str:
    """The processor's name, or architecture, and widest instructions: "AMD EPYC, avx512_vnni"."""
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else ()
    pairs = (line.partition(":") for line in lines)
    found = {key.strip(): value.strip() for key, _, value in pairs}
    name = found.get("model name") or platform.processor() or platform.machine()
    has = [one for one in INSTRUCTIONS if one in found.get("flags", "").split()]
    return f"{name}, {has[-1]}" if has else name
