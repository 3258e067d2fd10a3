"""A whole pass of a GPT-2 or Llama model in one compiled call, in float32. The order of every sum
depends on its row alone: a row of a tree has the very bits that it has on its own, if all numbers
of the others are finite (entries that a row does not see are multiplied by 0).
"""

from types import FunctionType
from typing import no_type_check

import numpy as np
from numba import prange

from specdec_lib.models.fast.arithmetic import (
    LINEAR_IN_ORDER,
    NONE,
    adjoining,
    exponential,
    exponentiate,
    layer_norm,
    linear_panels,
    panel_sums,
    prepared,
    strip,
)
from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.tiles import TOGETHER, compiled

PIECE = 8  # panels of a call where there is one thread; fewer are shared out evenly among several
GROUPED = True  # heads that share keys and values are computed together, but by several threads


@compiled(LINEAR_IN_ORDER)
def gate(wide, y):
    """Write silu of the first half of one row times the second half to y."""
    for one in range(len(y)):
        y[one] = wide[one] / (np.float32(1.0) + exponential(-wide[one])) * wide[len(y) + one]


@compiled()
def embed(tokens, positions, tables, x):
    """Write token embeddings, plus position embeddings where there are any, to x."""
    for row in range(len(tokens)):
        x[row] = tables[0][tokens[row]]
        if len(tables[1]):
            x[row] += tables[1][positions[row]]


@compiled()
def first_panel(window, committed, counts):
    """The first panel of entries that any row sees, all behind the window apart."""
    fewest = committed
    for row in range(len(counts)):
        fewest = min(fewest, committed + counts[row] - window)
    return max(0, fewest) // COLUMNS


@compiled(LINEAR_IN_ORDER)
def weigh(mine, place, window, scale):
    """Make weights of a row's scores: e to each of those that it sees less the largest of these, 0
    of the others from a place on. Returns their sum.

    place    the path, its length, the committed entries, and the first place that is used
    """
    path, length, committed, begin = place
    for one in range(length):  # an entry of the path is never before its place in it
        mine[committed + one] = mine[path[one]]
    count = committed + length
    hidden = max(0, count - window)
    seen = mine[hidden:count]
    for entry in range(len(seen)):
        seen[entry] *= scale
    total = exponentiate(seen)
    for entry in range(begin, hidden):
        mine[entry] = 0.0
    one = length - 1
    for entry in range(len(mine) - 1, committed - 1, -1):  # back to their entries, others get 0
        weight = np.float32(0.0)
        if one >= 0 and path[one] == entry:
            weight = mine[committed + one]
            one -= 1
        mine[entry] = weight
    return total


@compiled()
def by_head(joined, first, columns, size):
    """These columns from `first` on: a head of a row is a line, all rows of a head in turn."""
    rows = len(joined)
    found = np.empty((columns // size * rows, size), np.float32)
    for line in range(len(found)):
        begin = first + line // rows * size
        for column in range(size):
            found[line, column] = joined[line % rows, begin + column]
    return found


@compiled(LINEAR_IN_ORDER)
def attend(joined, all_keys, all_values, seen, y, part, parts):
    """Write the attention output of all rows through one part of the heads, which share keys and
    values, to their columns of y; `joined` begins with the queries of all heads.

    all_keys      [key heads, entries ÷ 16, size, 16]
    all_values    [key heads, size ÷ 16, entries, 16]
    seen          how many entries are used and committed, the rows' paths and these lengths, and
                  the window: each row sees the committed entries, then those of its path, in order,
                  and of all these the last `window`
    """
    used, committed, paths, counts, window = seen
    rows = len(joined)
    shared = part * len(all_keys) // parts
    keys, values = all_keys[shared], all_values[shared]
    size = keys.shape[1]
    columns = y.shape[1] // parts
    queries = by_head(joined, part * columns, columns, size)
    panels = (used + COLUMNS - 1) // COLUMNS
    scores = np.empty((len(queries), panels * COLUMNS), np.float32)
    totals = np.empty(len(queries), np.float32)
    scale = np.float32(1.0) / np.sqrt(np.float32(size))
    most = adjoining(queries)
    begin = first_panel(window, committed, counts)
    for panel in range(begin, panels, most):
        together = min(most, panels - panel)
        panel_sums(keys, panel, together, size, queries, scores, panel * COLUMNS)
    for line in range(len(queries)):
        row = line % rows
        place = paths[row], counts[row], committed, begin * COLUMNS
        totals[line] = weigh(strip(scores, line, 0, used), place, window, scale)
    nearer = values[:, begin * COLUMNS :]
    weights = scores[:, begin * COLUMNS :]
    for panel in range(0, len(values), most):
        together = min(most, len(values) - panel)
        depth = used - begin * COLUMNS
        panel_sums(nearer, panel, together, depth, weights, queries, panel * COLUMNS)
    for line in range(len(queries)):
        out = strip(y, line % rows, part * columns + line // rows * size, size)
        found = strip(queries, line, 0, size)
        for column in range(size):
            out[column] = found[column] / totals[line]


@compiled(LINEAR_IN_ORDER)
def rotate(rows, heads, size, cosines, sines, positions):
    """Apply the rotary embedding of these positions to the first `heads` heads of rows."""
    half = size // 2
    for row in range(len(rows)):
        cosine = cosines[positions[row]]
        sine = sines[positions[row]]
        for head in range(heads):
            near = strip(rows, row, head * size, half)
            far = strip(rows, row, head * size + half, half)
            for one in range(half):
                first = near[one]
                second = far[one]
                near[one] = first * cosine[one] - second * sine[one]
                far[one] = second * cosine[half + one] + first * sine[half + one]


@compiled()
def store_rows(joined, heads, size, start, keys, values):
    """Store the keys and values that follow the queries of new rows in the entries from `start`."""
    key_heads = len(keys)
    for row in range(len(joined)):
        entry = start + row
        for one in range(key_heads):
            first = (heads + one) * size
            for number in range(size):
                keys[one, entry // COLUMNS, number, entry % COLUMNS] = joined[row, first + number]
                values[one, number // COLUMNS, entry, number % COLUMNS] = joined[
                    row, first + key_heads * size + number
                ]


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
def _finish(h, head, own, given, end, logits):
    """Write the logits of normed rows, and what these give to their children: the last entries."""
    multiply(head, 0, h, logits, NONE, False)
    if len(given):
        multiply(own, 0, h, given[end + 1 - len(h) : end + 1], NONE, False)


@no_type_check
def _pass(rows, keep, weights, buffers, logits):
    """Compute new rows, store their keys and values, and write the logits of the last `keep`.

    rows    tokens, positions, first entry, committed entries, and per row the entries of its path
            beyond these, [rows, longest], and their number
    """
    tokens, positions, start, committed, paths, counts = rows
    shape, tables, layers, head, kept, own = weights
    keys, values, states, given = buffers
    heads, key_heads, size, activation, gated, centred, epsilon, window = shape
    _, _, cosines, sines = tables
    norms, mixed, out, up, down = layers
    count = len(tokens)
    width = tables[0].shape[1]
    x = np.empty((count, width), np.float32)
    h = np.empty((count, width), np.float32)
    joined = np.empty((count, mixed[0].shape[1] * COLUMNS), np.float32)
    attended = np.empty((count, heads * size), np.float32)
    wide = np.empty((count, up[0].shape[1] * COLUMNS), np.float32)
    middle = np.empty((count, wide.shape[1] // 2), np.float32) if gated else wide
    seen = start + count, committed, paths, counts, window
    parts = key_heads if GROUPED else heads
    embed(tokens, positions, tables, x)
    if len(given):
        add_given(given, committed, paths, counts, x)
    for layer in range(len(mixed[0])):
        layer_norm(x, norms[layer, 0], norms[layer, 1], epsilon, centred, h)
        multiply(mixed, layer, h, joined, NONE, False)
        if len(cosines):
            rotate(joined, heads + key_heads, size, cosines, sines, positions)
        store_rows(joined, heads, size, start, keys[layer], values[layer])
        for part in prange(parts):
            attend(joined, keys[layer], values[layer], seen, attended, part, parts)
        multiply(out, layer, attended, x, NONE, True)
        layer_norm(x, norms[layer, 2], norms[layer, 3], epsilon, centred, h)
        multiply(up, layer, h, wide, activation, False)
        if gated:
            for row in prange(count):
                gate(wide[row], middle[row])
        multiply(down, layer, middle, x, NONE, True)
        store_states(kept, layer, x, start, states)
    layer_norm(x[count - keep :], norms[-1, 0], norms[-1, 1], epsilon, centred, h)
    finish(h[:keep], head, own, given, start + count, logits)


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
finish_on_one = compiled()(copied(_finish, "finish_on_one", multiply=multiply_on_one))
finish_on_many = compiled()(copied(_finish, "finish_on_many", multiply=multiply_on_many))
ON_ONE = {"multiply": multiply_on_one, "finish": finish_on_one}
ON_MANY = {"multiply": multiply_on_many, "finish": finish_on_many}
one_thread = compiled()(copied(_pass, "one_thread", **ON_ONE))
many_threads = in_parallel(copied(_pass, "many_threads", **ON_MANY, GROUPED=False))
