"""What is kept of cache entries: moved, and given more room."""

import numpy as np

from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.tiles import compiled
from specdec_lib.models.fast.weights import Buffers, Weights


def move_entries(buffers: Buffers, sources: list[int], first: int) -> None:
    """Move what is kept of these entries to the places first, first + 1, …"""
    keys, values, states, _ = buffers
    move_compiled(keys, values, states, np.array(sources), first)


@compiled()
def move_compiled(keys, values, states, sources, first):
    """`move_entries`; a place may be the source of another entry."""
    layers, heads, _, size, _ = keys.shape
    count = len(sources)
    kept = np.empty((2, count, size), np.float32)
    for layer in range(layers):
        for head in range(heads):
            its_keys = keys[layer, head]
            its_values = values[layer, head]
            for one in range(count):
                entry = sources[one]
                for number in range(size):
                    kept[0, one, number] = its_keys[entry // COLUMNS, number, entry % COLUMNS]
                    kept[1, one, number] = its_values[number // COLUMNS, entry, number % COLUMNS]
            for one in range(count):
                place = first + one
                for number in range(size):
                    its_keys[place // COLUMNS, number, place % COLUMNS] = kept[0, one, number]
                    its_values[number // COLUMNS, place, number % COLUMNS] = kept[1, one, number]
    for state in range(len(states)):
        states[state, first : first + count] = states[state, sources]


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
