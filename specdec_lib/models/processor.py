"""The processor that everything runs on."""

import platform
import re
from pathlib import Path

LISTING = Path("/proc/cpuinfo")
INSTRUCTIONS = {  # by torch's name, the narrowest first
    "avx2": "avx2",
    "avx512_f": "avx512f",
    "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16",
    "amx_int8": "amx_int8",
}
GENERATIONS = {  # of AMD's processors, by family and whether there is AVX-512
    ("25", False): "Zen 3",
    ("25", True): "Zen 4",
    ("26", True): "Zen 5",
}


def processor_name(listing: Path = LISTING) -> str:
    """The processor's name, or architecture, and widest instructions: "AMD EPYC, avx512_vnni".

    A name without a number, which virtual machines show, says nothing of the generation: that of
    AMD's stands behind it where the family tells it, as in "AMD EPYC Zen 5, avx512_bf16".

    listing    has the name, under which the measurements of a machine are kept
    """
    import torch  # late: it takes seconds

    lines = listing.read_text(encoding="utf-8").splitlines() if listing.is_file() else ()
    pairs = (line.partition(":") for line in lines)
    found = {key.strip(): value.strip() for key, _, value in pairs}
    name = found.get("model name") or platform.processor() or platform.machine()
    capable = torch.cpu.get_capabilities()
    has = [word for key, word in INSTRUCTIONS.items() if capable.get(key)]
    if found.get("vendor_id") == "AuthenticAMD" and not re.search(r"\d", name):
        wide = bool(capable.get("avx512_f"))
        name = f"{name} {GENERATIONS.get((found.get('cpu family', ''), wide), '')}".strip()
    return f"{name}, {has[-1]}" if has else name
