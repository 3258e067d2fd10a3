"""A whole pass of a decoder of GPT-2's or Llama's kind in one compiled call, in float32, on one or
more threads.

Every sum is taken in an order that depends on its row alone, never on how many rows, slots or
threads there are: a row of a tree has the very bits that it has on its own, and there are no near
ties between speculation and plain decoding.

Compiled by Numba at the first call, and kept beside this file.
"""

from types import FunctionType
from typing import no_type_check

import numpy as np
from numba import njit, prange

from specdec_lib.models.fast.arithmetic import LINEAR_IN_ORDER, NONE, exponential, normed, product
from specdec_lib.models.fast.attention import attend, stored, turn
from specdec_lib.models.fast.tiles import COLUMNS


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def gate(wide, y):
    """Of one row: silu of the first half times the second."""
    for one in range(len(y)):
        y[one] = wide[one] / (np.float32(1.0) + exponential(-wide[one])) * wide[len(y) + one]


@no_type_check
@njit(cache=True, error_model="numpy")
def embedded(tokens, positions, words, places, x):
    """Rows of token embeddings, and of position embeddings where there are any."""
    for row in range(len(tokens)):
        x[row] = words[tokens[row]]
        if len(places):
            x[row] += places[positions[row]]


@no_type_check
def _pass(
    tokens,
    positions,
    start,
    trunk,
    above,
    counts,
    keep,
    shape,
    tables,
    layers,
    head,
    keys,
    values,
    logits,
):
    rows = len(tokens)
    heads, key_heads, size, activation, gated, centred, epsilon = shape
    words, places, cosines, sines = tables
    norms, mixed, out, up, down = layers
    x, h = (
        np.empty((rows, words.shape[1]), np.float32),
        np.empty((rows, words.shape[1]), np.float32),
    )
    joined = np.empty((rows, mixed[0].shape[1] * COLUMNS), np.float32)
    read = np.empty((rows, heads * size), np.float32)
    wide = np.empty((rows, up[0].shape[1] * COLUMNS), np.float32)
    middle = np.empty((rows, wide.shape[1] // 2 if gated else wide.shape[1]), np.float32)
    embedded(tokens, positions, words, places, x)
    for layer in range(len(mixed[0])):
        normed(x, norms[layer, 0], norms[layer, 1], epsilon, centred, h)
        for panel in prange(mixed[0].shape[1]):
            column = panel * COLUMNS
            product(
                mixed[0][layer, panel],
                mixed[1][layer, panel],
                mixed[2][layer, panel],
                h,
                joined,
                column,
                NONE,
                False,
            )
        if len(cosines):
            for row in range(rows):
                turn(
                    joined[row],
                    heads + key_heads,
                    size,
                    cosines[positions[row]],
                    sines[positions[row]],
                )
        stored(joined, heads, size, start, keys[layer], values[layer])
        for one in prange(heads):
            mine, shared = slice(one * size, one * size + size), one * key_heads // heads
            attend(
                joined[:, mine],
                keys[layer, shared],
                values[layer, shared],
                start + rows,
                trunk,
                above,
                counts,
                read[:, mine],
            )
        for panel in prange(out[0].shape[1]):
            product(
                out[0][layer, panel],
                out[1][layer, panel],
                out[2][layer, panel],
                read,
                x,
                panel * COLUMNS,
                NONE,
                True,
            )
        normed(x, norms[layer, 2], norms[layer, 3], epsilon, centred, h)
        for panel in prange(up[0].shape[1]):
            product(
                up[0][layer, panel],
                up[1][layer, panel],
                up[2][layer, panel],
                h,
                wide,
                panel * COLUMNS,
                activation,
                False,
            )
        if gated:
            for row in prange(rows):
                gate(wide[row], middle[row])
        else:
            middle = wide
        for panel in prange(down[0].shape[1]):
            product(
                down[0][layer, panel],
                down[1][layer, panel],
                down[2][layer, panel],
                middle,
                x,
                panel * COLUMNS,
                NONE,
                True,
            )
    last = x[rows - keep :]
    normed(last, norms[-1, 0], norms[-1, 1], epsilon, centred, h)
    for panel in prange(head[0].shape[0]):
        product(
            head[0][panel],
            head[1][panel],
            head[2][panel],
            h[:keep],
            logits,
            panel * COLUMNS,
            NONE,
            False,
        )


def _renamed(name):
    """The same pass under a name of its own: Numba keeps what it compiled by name."""
    copy = FunctionType(_pass.__code__.replace(co_name=name), globals(), name)
    copy.__qualname__ = name
    return copy


ONLY_LOOPS = {
    "prange": True,
    "setitem": False,
    "numpy": False,
    "reduction": False,
    "inplace_binop": False,
    "stencil": False,
    "fusion": False,
}
one_thread = njit(cache=True, error_model="numpy")(_renamed("one_thread"))
many_threads = njit(cache=True, error_model="numpy", parallel=ONLY_LOOPS)(_renamed("many_threads"))
