"""A whole pass of a decoder in one compiled call, in float32. The order of every sum depends on its
row alone: a row of a tree has the very bits that it has on its own, if all numbers of the others
are finite (entries that a row does not see are multiplied by 0).
"""

from types import FunctionType
from typing import no_type_check

import numpy as np
from numba import prange

from specdec_lib.models.fast.arithmetic import (
    GELU_TANH,
    LINEAR_IN_ORDER,
    NONE,
    SILU,
    exponential,
    gelu,
    gelu_tanh,
    layer_norm,
    linear_panels,
    prepared,
)
from specdec_lib.models.fast.attention import attend, norm_heads, rotate, store_rows
from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.tiles import TOGETHER, compiled

PIECE = 8  # panels of a call where there is one thread; fewer are shared out evenly among several
GROUPED = True  # heads that share keys and values are computed together, but by several threads


@compiled(LINEAR_IN_ORDER)
def gate(wide, activation, y):
    """Write the first half of one row, activated, times the second half to y."""
    half = len(y)
    if activation == SILU:
        for one in range(half):
            y[one] = wide[one] / (np.float32(1.0) + exponential(-wide[one])) * wide[half + one]
    elif activation == GELU_TANH:
        for one in range(half):
            y[one] = gelu_tanh(wide[one]) * wide[half + one]
    else:
        for one in range(half):
            y[one] = gelu(wide[one]) * wide[half + one]


@compiled()
def embed(tokens, positions, tables, scale, x):
    """Write scaled token embeddings, plus position embeddings where there are any, to x."""
    for row in range(len(tokens)):
        line = tables[0][tokens[row]]
        if len(line) == 4 * x.shape[1]:
            numbers = line.view(np.float32)
            for one in range(x.shape[1]):
                x[row, one] = numbers[one] * scale
        else:  # bfloat16 is the first half of float32
            halves = line.view(np.uint16)
            for one in range(x.shape[1]):
                x[row, one] = np.int32(np.int32(halves[one]) << 16).view(np.float32) * scale
        if len(tables[1]):
            x[row] += tables[1][positions[row]]


@compiled()
def store_states(kept, layer, x, start, states):
    """Store the hidden states x of new rows in the entries from `start`, if this layer is kept."""
    for place in range(len(kept)):
        if kept[place] == layer:
            for row in range(len(x)):
                states[place, start + row] = x[row]


@compiled()
def add_given(given, committed, paths, counts, x):
    """Add to x what the token before each row gives; the line before the first is that entry's."""
    for row in range(len(x)):
        length = counts[row]
        before = paths[row, length - 2] if length > 1 else committed - 1
        x[row] += given[1 + before]


@no_type_check
def _multiply(linear, layer, x, y, activation, added):
    """Write one of the linear layers x Wᵀ + bias, activated, to y, or add it."""
    given = prepared(x, linear[0])
    for piece in prange((linear[0].shape[1] + PIECE - 1) // PIECE):
        linear_panels(linear, layer, piece, PIECE, given, y, activation, added)


@no_type_check
def _add(linear, layer, given, norm, shape, h, x):
    """Add one of the linear layers of some rows to x; where the model has it so, normed and scaled
    before, in h.
    """
    if not shape.normed_after and shape.residual == 1.0:
        multiply(linear, layer, given, x, NONE, True)
        return
    multiply(linear, layer, given, h, NONE, False)
    if shape.normed_after:
        layer_norm(h, norm[0], norm[1], shape.epsilon, shape.centred, h)
    for row in range(len(x)):
        for one in range(x.shape[1]):
            x[row, one] += h[row, one] * shape.residual


@no_type_check
def _finish(h, head, divisor, own, given, end, logits):
    """Write the logits of normed rows, and what these give to their children: the last entries."""
    multiply(head, 0, h, logits, NONE, False)
    if divisor != 1.0:
        for row in range(len(h)):
            for one in range(logits.shape[1]):
                logits[row, one] /= divisor
    if len(given):
        multiply(own, 0, h, given[end + 1 - len(h) : end + 1], NONE, False)


@no_type_check
def _mix(layer, rows, weights, buffers, x, h, joined, attended):
    """Add a layer's attention to x, and store the keys and values of new rows. See `_pass`."""
    _, positions, start, committed, paths, counts = rows
    shape, tables = weights.shape, weights.tables
    norms, query_norms, key_norms, mixed, out, _, _ = weights.layers
    heads, key_heads, size = shape.heads, shape.key_heads, shape.size
    scale = shape.scale
    keys = buffers[0][layer]
    values = buffers[1][layer]
    window, rotation = weights.by_layer[:, layer]
    given = x
    if shape.normed_before:
        layer_norm(x, norms[layer, 0], norms[layer, 1], shape.epsilon, shape.centred, h)
        given = h
    multiply(mixed, layer, given, joined, NONE, False)
    norm_heads(joined, 0, heads * size, query_norms[layer], shape.epsilon)
    norm_heads(joined, heads * size, key_heads * size, key_norms[layer], shape.epsilon)
    if rotation >= 0:
        rotate(joined, heads + key_heads, size, tables[2][rotation], tables[3][rotation], positions)
    store_rows(joined, heads, size, start, keys, values)
    seen = start + len(x), committed, paths, counts, window
    parts = key_heads if GROUPED else heads
    for part in prange(parts):
        attend(joined, keys, values, seen, scale, attended, part, parts)
    add(out, layer, attended, norms[layer, 4:6], shape, h, x)


@no_type_check
def _pass(rows, keep, weights, buffers, logits):
    """Compute new rows, store their keys and values, and write the logits of the last `keep`.

    rows    tokens, positions, first entry, committed entries, and per row the entries of its path
            beyond these, [rows, longest], and their number
    """
    tokens, positions, start, committed, paths, counts = rows
    shape, tables, _, layers, head, kept, own = weights
    norms, _, _, mixed, _, up, down = layers
    _, _, states, given = buffers
    activation = shape.activation
    count = len(tokens)
    width = norms.shape[2]
    x = np.empty((count, width), np.float32)
    h = np.empty((count, width), np.float32)
    joined = np.empty((count, mixed[0].shape[1] * COLUMNS), np.float32)
    attended = np.empty((count, shape.heads * shape.size), np.float32)
    wide = np.empty((count, up[0].shape[1] * COLUMNS), np.float32)
    middle = np.empty((count, wide.shape[1] // 2), np.float32) if shape.gated else wide
    embed(tokens, positions, tables, shape.embedded, x)
    if len(given):
        add_given(given, committed, paths, counts, x)
    for layer in range(len(mixed[0])):
        mix(layer, rows, weights, buffers, x, h, joined, attended)
        read = x
        if shape.normed_before:
            layer_norm(x, norms[layer, 2], norms[layer, 3], shape.epsilon, shape.centred, h)
            read = h
        multiply(up, layer, read, wide, NONE if shape.gated else activation, False)
        if shape.gated:
            for row in prange(count):
                gate(wide[row], activation, middle[row])
        add(down, layer, middle, norms[layer, 6:8], shape, h, x)
        store_states(kept, layer, x, start, states)
    layer_norm(x[count - keep :], norms[-1, 0], norms[-1, 1], shape.epsilon, shape.centred, h)
    finish(h[:keep], head, shape.divisor, own, given, start + count, logits)


def copied(function, name, **names):
    """A function under another name, which Numba's cache goes by, and with these globals."""
    copy = FunctionType(function.__code__.replace(co_name=name), function.__globals__ | names, name)
    copy.__qualname__ = name
    return copy


OTHERS = ("setitem", "numpy", "reduction", "inplace_binop", "stencil", "fusion")
ONLY_LOOPS = {"prange": True} | dict.fromkeys(OTHERS, False)
in_parallel = compiled(parallel=ONLY_LOOPS)
multiply_on_one = compiled()(copied(_multiply, "multiply_on_one"))
multiply_on_many = in_parallel(copied(_multiply, "multiply_on_many", PIECE=TOGETHER))


@no_type_check
def compiled_pass(suffix, compile_it, **names):
    """The whole pass and its parts under names with a suffix, with these globals."""
    for part in (_add, _finish, _mix):
        name = part.__name__[1:]
        decorate = compile_it if part is _mix else compiled()
        names[name] = decorate(copied(part, f"{name}_{suffix}", **names))
    return compile_it(copied(_pass, suffix, **names))


one_thread = compiled_pass("one_thread", compiled(), multiply=multiply_on_one)
many_threads = compiled_pass("many_threads", in_parallel, multiply=multiply_on_many, GROUPED=False)
