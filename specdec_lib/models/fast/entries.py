"""What is kept of cache entries: moved, and given more room."""

import numpy as np

from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.weights import Buffers, Weights


def move_entries(buffers: Buffers, sources: list[int], first: int) -> None:
    """Move what is kept of these entries to the places first, first + 1, …"""
    keys, values, states, _ = buffers
    entries = np.array(sources)
    places = np.arange(first, first + len(sources))
    panels = entries // COLUMNS
    columns = entries % COLUMNS
    keys[:, :, places // COLUMNS, :, places % COLUMNS] = keys[:, :, panels, :, columns]
    values[:, :, :, places] = values[:, :, :, entries]
    states[:, places] = states[:, entries]


def larger_buffers(weights: Weights, buffers: Buffers, entries: int) -> Buffers:
    """Buffers of twice the size, or four times … until so many entries have room, with what these
    hold.
    """
    keys, values, states, given = buffers
    size = values.shape[3]
    larger = weights.buffers(size << (-(-entries // size) - 1).bit_length())
    larger[0][:, :, : keys.shape[2]] = keys
    larger[1][:, :, :, :size] = values
    larger[2][:, :size] = states
    larger[3][: len(given)] = given
    return larger
