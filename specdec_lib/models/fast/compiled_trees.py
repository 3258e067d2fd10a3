"""A small model's whole tree of guesses in one compiled call, as `TreeDraft` grows it: Python's
work around a level costs more than a small draft's pass.
"""

from typing import no_type_check

import numpy as np

from specdec_lib.models.fast.choices import rank_row
from specdec_lib.models.fast.kernels import copied, many_threads, one_thread
from specdec_lib.models.fast.tiles import compiled

TOKEN, PARENT, DEPTH, ENTRY = range(4)  # rows of the array of nodes


@compiled()
def root_rows(begun, rest):
    """The rows of the tokens that were not read yet, of which the root is the last."""
    position, start, committed, root_path = begun
    count = len(rest)
    paths = root_path.repeat(count).reshape(len(root_path), count).T.copy()
    order = np.arange(count)
    return rest, position + order, start, committed, paths, len(root_path) - count + 1 + order


@compiled()
def level_rows(begun, rest, frontier, level, first, nodes):
    """The rows of a level's nodes, with the entries of their paths beyond the committed context."""
    position, _, committed, root_path = begun
    count = len(frontier)
    paths = np.empty((count, len(root_path) + level), np.int64)
    for row in range(count):
        paths[row, : len(root_path)] = root_path
        node = frontier[row]
        for step in range(level, 0, -1):
            paths[row, len(root_path) + step - 1] = nodes[ENTRY, node]
            node = nodes[PARENT, node]
    positions = np.full(count, position + len(rest) - 1 + level)
    lengths = np.full(count, paths.shape[1])
    return nodes[TOKEN][frontier], positions, first, committed, paths, lengths


@compiled()
def append_children(tokens, factors, node, level, floor, worst, nodes, scores, count):
    """Add children that score at least `floor` and above `worst`; return the number of nodes."""
    for child in range(len(tokens)):
        score = scores[node] * min(1.0, factors[child])
        if factors[child] > 0 and score >= floor and score > worst:
            nodes[TOKEN, count], nodes[PARENT, count] = tokens[child], node
            nodes[DEPTH, count], nodes[ENTRY, count] = level + 1, -1
            scores[count] = score
            count += 1
    return count


@compiled()
def keep_best(count, budget, nodes, scores):
    """Keep the root and the `budget` best guesses, of equals the earlier; return the count."""
    order = np.argsort(-scores[1:count], kind="mergesort")[:budget] + 1
    place = np.full(count, -1)
    place[0] = 0
    for number, node in enumerate(np.sort(order)):
        place[node] = number + 1
    for node in range(count):
        if place[node] >= 0:
            end = place[node]
            nodes[:, end], scores[end] = nodes[:, node], scores[node]
            nodes[PARENT, end] = place[nodes[PARENT, node]] if node else -1
    return min(budget, count - 1) + 1


@compiled()
def root_alone(token, entry, most):
    """Arrays for so many nodes and their scores, which hold the root."""
    nodes, scores = np.zeros((4, most), np.int64), np.zeros(most, np.float64)
    nodes[TOKEN, 0], nodes[PARENT, 0], nodes[ENTRY, 0] = token, -1, entry
    scores[0] = 1.0
    return nodes, scores


@no_type_check
def _grow(begun, rest, limits, sampling, noise, network, buffers, sizes):
    """Grow a tree: its nodes' tokens and parents, and scores; the tokens and parent entries of the
    rows read beyond `rest`; their logits, after the root's; and the passes, 0 for bad logits.

    begun      position and entry of the first of `rest`, committed entries, the root's path beyond
    rest       tokens not read yet, the root last
    limits     children per node at each depth, the budget (or 0), and the lowest score
    noise      the key of each depth's noise, and the tokens, rising, that the head scores
    sizes      the width of a row of logits; the most nodes; and the most rows with logits
    """
    (widths, budget, floor), (noise_keys, ids), (columns, most, longest) = limits, noise, sizes
    (shape, tables, layers, head), (keys, values) = network, buffers
    nodes, scores = root_alone(rest[-1], begun[3][-1], most)
    reads, kept = np.zeros((2, longest), np.int64), np.empty((longest, columns), np.float32)
    known, count, passes = 0, 1, 0
    for level in range(len(widths)):
        worst = scores[:count].min() if budget and count - 1 == budget else -1.0
        frontier = np.flatnonzero((nodes[DEPTH, :count] == level) & (scores[:count] > worst))
        if not len(frontier):
            break
        if level:
            first = begun[1] + len(rest) + known
            for row, node in enumerate(frontier):
                nodes[ENTRY, node] = first + row
                reads[0, known] = nodes[TOKEN, node]
                reads[1, known] = nodes[ENTRY, nodes[PARENT, node]]
                known += 1
            rows = level_rows(begun, rest, frontier, level, first, nodes)
        else:
            rows = root_rows(begun, rest)
        logits = kept[known + 1 - len(frontier) : known + 1]
        run_pass(rows, len(frontier), shape, tables, layers, head, keys, values, logits)
        passes += 1
        for row, node in enumerate(frontier):
            line, key = logits[row, : len(ids)], noise_keys[level]
            tokens, factors = rank_row(line, widths[level], sampling, key, ids)
            if not len(tokens):
                return nodes[:2, :1], scores[:1], reads[:, :0], kept[:0], 0
            count = append_children(
                tokens, factors, node, level, floor, worst, nodes, scores, count
            )
        if budget and count - 1 > budget:
            count = keep_best(count, budget, nodes, scores)
    return nodes[:2, :count], scores[:count], reads[:, :known], kept[: known + 1], passes


grow_on_one_thread = compiled()(copied(_grow, "grow_on_one_thread", run_pass=one_thread))
grow_on_many_threads = compiled()(copied(_grow, "grow_on_many_threads", run_pass=many_threads))
