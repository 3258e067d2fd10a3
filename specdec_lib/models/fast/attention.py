"""What a row of the compiled pass reads of the rows before it, and where their keys and values lie."""

from typing import no_type_check

import numpy as np
from numba import njit

from specdec_lib.models.fast.arithmetic import LINEAR_IN_ORDER, panel_sums, softened
from specdec_lib.models.fast.tiles import COLUMNS


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def attend(queries, keys, values, used, trunk, above, counts, y):
    """What all rows read through one head: of the `used` slots, each row sees the first `trunk`,
    then those of its `above`, in this order.

    keys      [slots ÷ 16, size, 16]
    values    [size ÷ 16, slots, 16]
    """
    rows, size = queries.shape
    panels = (used + COLUMNS - 1) // COLUMNS
    scores = np.empty((rows, panels * COLUMNS), np.float32)
    weights = np.empty((rows, trunk + above.shape[1]), np.float32)
    totals = np.empty(rows, np.float32)
    scale = np.float32(1.0) / np.sqrt(np.float32(size))
    for panel in range(panels):
        panel_sums(keys[panel], size, queries, scores[:, panel * COLUMNS :])
    for row in range(rows):
        seen = trunk + counts[row]
        for slot in range(trunk):
            weights[row, slot] = scores[row, slot] * scale
        for one in range(counts[row]):
            weights[row, trunk + one] = scores[row, above[row, one]] * scale
        totals[row] = softened(weights[row, :seen])
    for panel in range(len(values)):
        out = y[:, panel * COLUMNS :]
        panel_sums(values[panel], trunk, weights, out)
        for row in range(rows):
            for one in range(counts[row]):
                weight, slot = weights[row, trunk + one], above[row, one]
                for column in range(COLUMNS):
                    out[row, column] += weight * values[panel, slot, column]
            for column in range(COLUMNS):
                out[row, column] /= totals[row]


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def turn(row, heads, size, cosines, sines):
    """Rotate the first so many heads of a row: pairs half a head apart."""
    half = size // 2
    for head in range(heads):
        start = head * size
        for one in range(half):
            near, far = row[start + one], row[start + half + one]
            row[start + one] = near * cosines[one] - far * sines[one]
            row[start + half + one] = far * cosines[half + one] + near * sines[half + one]


@no_type_check
@njit(cache=True, error_model="numpy")
def stored(joined, heads, size, start, keys, values):
    """Put the keys and values of new rows, which follow the queries of `heads` heads, into the
    slots from `start` on.
    """
    key_heads = len(keys)
    for row in range(len(joined)):
        slot = start + row
        for one in range(key_heads):
            first = (heads + one) * size
            for number in range(size):
                keys[one, slot // COLUMNS, number, slot % COLUMNS] = joined[row, first + number]
                values[one, number // COLUMNS, slot, number % COLUMNS] = joined[
                    row, first + key_heads * size + number
                ]


@no_type_check
@njit(cache=True, error_model="numpy")
def moved(keys, values, sources, first):
    """Move slots to where they belong: `sources` rise, and none lies before its new place, from
    `first` on.
    """
    for layer in range(keys.shape[0]):
        for head in range(keys.shape[1]):
            for number in range(len(sources)):
                source, place = sources[number], first + number
                for one in range(keys.shape[3]):
                    keys[layer, head, place // COLUMNS, one, place % COLUMNS] = keys[
                        layer, head, source // COLUMNS, one, source % COLUMNS
                    ]
                for panel in range(values.shape[2]):
                    for one in range(COLUMNS):
                        values[layer, head, panel, place, one] = values[
                            layer, head, panel, source, one
                        ]
