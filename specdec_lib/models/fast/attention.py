"""Attention of the compiled pass, and where keys and values of cache entries lie in its buffers."""

import numpy as np

from specdec_lib.models.fast.arithmetic import LINEAR_IN_ORDER, exponentiate, panel_sums
from specdec_lib.models.fast.tiles import COLUMNS, TOGETHER, compiled


@compiled(LINEAR_IN_ORDER)
def attend(queries, keys, values, used, committed, paths, counts, y):
    """Write the attention output of all rows through one head to y: each row sees the first
    `committed` of the `used` entries, then those of its path.

    keys      [entries ÷ 16, size, 16]
    values    [size ÷ 16, entries, 16]
    """
    rows, size = queries.shape
    panels = (used + COLUMNS - 1) // COLUMNS
    scores = np.empty((rows, panels * COLUMNS), np.float32)
    weights = np.empty((rows, committed + paths.shape[1]), np.float32)
    totals = np.empty(rows, np.float32)
    scale = np.float32(1.0) / np.sqrt(np.float32(size))
    for panel in range(0, panels, TOGETHER):
        together = min(TOGETHER, panels - panel)
        panel_sums(keys[panel:], together, size, queries, scores[:, panel * COLUMNS :])
    for row in range(rows):
        seen = committed + counts[row]
        for entry in range(committed):
            weights[row, entry] = scores[row, entry] * scale
        for one in range(counts[row]):
            weights[row, committed + one] = scores[row, paths[row, one]] * scale
        totals[row] = exponentiate(weights[row, :seen])
    for panel in range(0, len(values), TOGETHER):
        together = min(TOGETHER, len(values) - panel)
        panel_sums(values[panel:], together, committed, weights, y[:, panel * COLUMNS :])
    for panel in range(len(values)):
        out = y[:, panel * COLUMNS :]
        for row in range(rows):
            for one in range(counts[row]):
                weight, entry = weights[row, committed + one], paths[row, one]
                for column in range(COLUMNS):
                    out[row, column] += weight * values[panel, entry, column]
            for column in range(COLUMNS):
                out[row, column] /= totals[row]


@compiled(LINEAR_IN_ORDER)
def rotate(rows, heads, size, cosines, sines, positions):
    """Apply the rotary embedding of these positions to the first `heads` heads of rows."""
    half = size // 2
    for row, place in zip(rows, positions):  # noqa: B905 – compiled
        cosine, sine = cosines[place], sines[place]
        for head in range(0, heads * size, size):
            for one in range(head, head + half):
                near, far = row[one], row[one + half]
                row[one] = near * cosine[one - head] - far * sine[one - head]
                row[one + half] = far * cosine[one - head + half] + near * sine[one - head + half]


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
