"""Attention of the compiled pass over cache entries, each row to its own path, and what is done to
queries and keys before it.
"""

import numpy as np

from specdec_lib.models.fast.arithmetic import (
    LINEAR_IN_ORDER,
    adjoining,
    exponentiate,
    mean_square,
    panel_sums,
    strip,
)
from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.tiles import compiled


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
def by_head(joined, first, columns, size, room):
    """These columns from `first` on: a head of a row is a line, all rows of a head in turn; with
    room for so many columns, which are left as they are.
    """
    rows = len(joined)
    found = np.empty((columns // size * rows, room), np.float32)
    for line in range(len(found)):
        begin = first + line // rows * size
        for column in range(size):
            found[line, column] = joined[line % rows, begin + column]
    return found


@compiled(LINEAR_IN_ORDER)
def attend(joined, all_keys, all_values, seen, scale, y, part, parts):
    """Write the attention output of all rows through one part of the heads, which share keys and
    values, to their columns of y; `joined` begins with the queries of all heads.

    all_keys      [key heads, entries ÷ 16, size, 16]
    all_values    [key heads, size ÷ 16 or one more, entries, 16]
    seen          how many entries are used and committed, the rows' paths and these lengths, and
                  the window: each row sees the committed entries, then those of its path, in order,
                  and of all these the last `window`
    scale         by which a query's product with a key is multiplied
    """
    used, committed, paths, counts, window = seen
    rows = len(joined)
    shared = part * len(all_keys) // parts
    keys, values = all_keys[shared], all_values[shared]
    size = keys.shape[1]
    columns = y.shape[1] // parts
    queries = by_head(joined, part * columns, columns, size, len(values) * COLUMNS)
    panels = (used + COLUMNS - 1) // COLUMNS
    scores = np.empty((len(queries), panels * COLUMNS), np.float32)
    totals = np.empty(len(queries), np.float32)
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
def norm_heads(rows, first, columns, weight, epsilon):
    """RMS norm of so many columns of rows from `first` on, in groups as long as the weight."""
    size = len(weight)
    if not size:
        return
    for row in range(len(rows)):
        for start in range(first, first + columns, size):
            part = strip(rows, row, start, size)
            scale = np.float32(1.0) / np.sqrt(mean_square(part) + epsilon)
            for one in range(size):
                part[one] = part[one] * scale * weight[one]


@compiled(LINEAR_IN_ORDER)
def rotate(rows, heads, size, cosines, sines, positions):
    """Apply the rotary embedding of these positions to the first `heads` heads of rows: to twice as
    many of their first columns as there are cosines, halves apart.
    """
    half = cosines.shape[1]
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
                far[one] = second * cosine[one] + first * sine[one]


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
