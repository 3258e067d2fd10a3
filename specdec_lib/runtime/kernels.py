"""A whole pass of a decoder of GPT-2's or Llama's kind in one compiled call, in float32, on one or more threads.

Every sum is taken in an order that depends on its row alone, never on how many rows, slots or threads there are: a row of a tree has the very bits
that it has on its own, and there are no near ties between speculation and plain decoding.

Compiled by Numba at the first call, and kept beside this file.
"""

import math
from types import FunctionType
from typing import no_type_check

import numpy as np
from numba import njit, prange

from specdec_lib.runtime.tiles import COLUMNS, ROWS, tile1, tile2, tile3, tile4

NONE, GELU_TANH, GELU, RELU = range(4)
LINEAR_IN_ORDER = {"contract"}  # sums stay in their order
LINEAR_IN_LANES = {"contract", "reassoc", "nsz"}  # sums over a length that never changes


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def exponential(x):
    """e to the x in float32, to two units in the last place; what lies beyond −87 and 88 counts as these (Cephes, Moshier 1992)."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    whole = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    rest = x - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    series = series * rest * rest + rest + np.float32(1.0)
    return series * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def activated(x, kind):
    """One number after the activation of this kind."""
    if kind == GELU_TANH:
        inner = np.float32(1.5957691216) * (x + np.float32(0.044715) * x * x * x)
        return x / (np.float32(1.0) + exponential(-inner))
    if kind == GELU:
        return x * np.float32(0.5) * np.float32(1.0 + math.erf(x * 0.7071067811865476))
    return max(x, np.float32(0.0))


@no_type_check
@njit(cache=True, error_model="numpy")
def panel_sums(panel, depth, x, sums):
    """x [rows, depth] times one panel [depth, 16]: rows in tiles of at most four, as even as can be."""
    left = len(x)
    first = 0
    tiles = (left + ROWS - 1) // ROWS
    step, out_step = x.strides[0] // x.itemsize, sums.strides[0] // sums.itemsize
    while tiles:
        rows = (left + tiles - 1) // tiles
        source, out = x[first:], sums[first:]
        if rows == 1:
            tile1(panel, depth, source, step, out, out_step)
        elif rows == 2:
            tile2(panel, depth, source, step, out, out_step)
        elif rows == 3:
            tile3(panel, depth, source, step, out, out_step)
        else:
            tile4(panel, depth, source, step, out, out_step)
        first += rows
        left -= rows
        tiles -= 1


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def product(panel, scale, bias, x, y, column, activation, added):
    """Sixteen columns of x Wᵀ · scale + bias, from `column` on: with an activation, or added to what y holds."""
    sums = np.empty((len(x), COLUMNS), np.float32)
    panel_sums(panel, x.shape[1], x, sums)
    for row in range(len(x)):
        for one in range(COLUMNS):
            sums[row, one] = sums[row, one] * scale[one] + bias[one]
        if added:
            for one in range(COLUMNS):
                y[row, column + one] += sums[row, one]
        elif activation == NONE:
            for one in range(COLUMNS):
                y[row, column + one] = sums[row, one]
        else:
            for one in range(COLUMNS):
                y[row, column + one] = activated(sums[row, one], activation)


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_LANES)
def normed(x, weight, bias, epsilon, centred, y):
    """Layer norm of each row; the root mean square alone where it is not centred."""
    width = len(weight)
    for row in range(len(x)):
        mean = np.float32(0.0)
        if centred:
            for one in range(width):
                mean += x[row, one]
            mean /= np.float32(width)
        spread = np.float32(0.0)
        for one in range(width):
            spread += (x[row, one] - mean) * (x[row, one] - mean)
        scale = np.float32(1.0) / np.sqrt(spread / np.float32(width) + epsilon)
        for one in range(width):
            y[row, one] = (x[row, one] - mean) * scale * weight[one] + bias[one]


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_LANES)
def softened(scores):
    """Scores become e to the score less the largest; their sum."""
    largest = scores[0]
    for one in range(len(scores)):
        largest = max(largest, scores[one])
    for one in range(len(scores)):
        scores[one] = exponential(scores[one] - largest)
    total = np.float32(0.0)
    for one in range(len(scores)):
        total += scores[one]
    return total


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def attend(queries, keys, values, used, trunk, above, counts, y):
    """What all rows read through one head: of the `used` slots, each row sees the first `trunk`, then those of its `above`, in this order.

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
@njit(cache=True, error_model="numpy")
def moved(keys, values, sources, first):
    """Move slots to where they belong: `sources` rise, and none lies before its new place, from `first` on."""
    for layer in range(keys.shape[0]):
        for head in range(keys.shape[1]):
            for number in range(len(sources)):
                source, place = sources[number], first + number
                for one in range(keys.shape[3]):
                    keys[layer, head, place // COLUMNS, one, place % COLUMNS] = keys[layer, head, source // COLUMNS, one, source % COLUMNS]
                for panel in range(values.shape[2]):
                    for one in range(COLUMNS):
                        values[layer, head, panel, place, one] = values[layer, head, panel, source, one]


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
def _pass(tokens, positions, start, trunk, above, counts, keep, shape, tables, layers, head, keys, values, logits):
    rows = len(tokens)
    heads, key_heads, size, activation, gated, centred, epsilon = shape
    words, places, cosines, sines = tables
    norms, mixed, out, up, down = layers
    width, inner = words.shape[1], key_heads * size
    x, h = np.empty((rows, width), np.float32), np.empty((rows, width), np.float32)
    joined = np.empty((rows, mixed[0].shape[1] * COLUMNS), np.float32)
    read = np.empty((rows, heads * size), np.float32)
    wide = np.empty((rows, up[0].shape[1] * COLUMNS), np.float32)
    middle = np.empty((rows, wide.shape[1] // 2 if gated else wide.shape[1]), np.float32)
    for row in range(rows):
        x[row] = words[tokens[row]]
        if len(places):
            x[row] += places[positions[row]]
    for layer in range(len(mixed[0])):
        normed(x, norms[layer, 0], norms[layer, 1], epsilon, centred, h)
        for panel in prange(mixed[0].shape[1]):
            column = panel * COLUMNS
            product(mixed[0][layer, panel], mixed[1][layer, panel], mixed[2][layer, panel], h, joined, column, NONE, False)
        for row in range(rows):
            if len(cosines):
                turn(joined[row], heads + key_heads, size, cosines[positions[row]], sines[positions[row]])
            for one in range(key_heads):
                first = (heads + one) * size
                slot = start + row
                for number in range(size):
                    keys[layer, one, slot // COLUMNS, number, slot % COLUMNS] = joined[row, first + number]
                    values[layer, one, number // COLUMNS, slot, number % COLUMNS] = joined[row, first + inner + number]
        for one in prange(heads):
            mine, shared = slice(one * size, one * size + size), one * key_heads // heads
            attend(joined[:, mine], keys[layer, shared], values[layer, shared], start + rows, trunk, above, counts, read[:, mine])
        for panel in prange(out[0].shape[1]):
            product(out[0][layer, panel], out[1][layer, panel], out[2][layer, panel], read, x, panel * COLUMNS, NONE, True)
        normed(x, norms[layer, 2], norms[layer, 3], epsilon, centred, h)
        for panel in prange(up[0].shape[1]):
            product(up[0][layer, panel], up[1][layer, panel], up[2][layer, panel], h, wide, panel * COLUMNS, activation, False)
        if gated:
            for row in prange(rows):
                for one in range(middle.shape[1]):
                    gate = wide[row, one]
                    middle[row, one] = gate / (np.float32(1.0) + exponential(-gate)) * wide[row, middle.shape[1] + one]
        else:
            middle = wide
        for panel in prange(down[0].shape[1]):
            product(down[0][layer, panel], down[1][layer, panel], down[2][layer, panel], middle, x, panel * COLUMNS, NONE, True)
    last = x[rows - keep :]
    normed(last, norms[-1, 0], norms[-1, 1], epsilon, centred, h)
    for panel in prange(head[0].shape[0]):
        product(head[0][panel], head[1][panel], head[2][panel], h[:keep], logits, panel * COLUMNS, NONE, False)


def _renamed(name):
    """The same pass under a name of its own: Numba keeps what it compiled by name."""
    copy = FunctionType(_pass.__code__.replace(co_name=name), globals(), name)
    copy.__qualname__ = name
    return copy


ONLY_LOOPS = {"prange": True, "setitem": False, "numpy": False, "reduction": False, "inplace_binop": False, "stencil": False, "fusion": False}
one_thread = njit(cache=True, error_model="numpy")(_renamed("one_thread"))
many_threads = njit(cache=True, error_model="numpy", parallel=ONLY_LOOPS)(_renamed("many_threads"))
