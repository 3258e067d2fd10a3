"""Memory of weights that lie in mapped files: what was read of them is given back, and read again
when it is needed.
"""

import ctypes
import mmap
from collections.abc import Iterable, Sequence
from pathlib import Path

from torch import Tensor

MAPS = Path("/proc/self/maps")  # of Linux; elsewhere nothing is given back
DONT_NEED = 4  # of madvise(2)


def give_back(tensors: Iterable[Tensor], places: Sequence[tuple[int, int]] | None = None) -> None:
    """Drop what was read of tensors in mapped safetensors files from this process's memory. They
    must be as they are in the files: what was written to them would be lost.

    places    of the mapped files; looked up unless given
    """
    places = mapped_places() if places is None else places
    if not places:
        return
    library = ctypes.CDLL(None)
    for tensor in tensors:
        begin = tensor.data_ptr()
        end = begin + tensor.numel() * tensor.element_size()
        first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        size = end // mmap.PAGESIZE * mmap.PAGESIZE - first
        if size > 0 and any(low <= begin and end <= high for low, high in places):
            library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), DONT_NEED)


def mapped_places() -> list[tuple[int, int]]:
    """Where safetensors files are mapped, from an address to one."""
    if not MAPS.is_file():
        return []
    found = []
    for line in MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.endswith(".safetensors"):
            low, high = line.split(maxsplit=1)[0].split("-")
            found.append((int(low, 16), int(high, 16)))
    return found
