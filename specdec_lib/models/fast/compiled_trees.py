"""A small model's whole tree of guesses in one compiled call, as `TreeDraft` grows it, or
`StagedTree` with an n-gram scout: Python's work around a level costs more than a draft's pass.
"""

from typing import no_type_check

import numpy as np

from specdec_lib.models.fast.choices import rank_row
from specdec_lib.models.fast.kernels import copied, many_threads, one_thread
from specdec_lib.models.fast.tiles import COLUMNS, compiled
from specdec_lib.models.katz.trie import grow_guesses, path_tokens

TOKEN, PARENT, DEPTH, ROW = range(4)  # of a node; ROW: the number of the row that it is read in
# Of a row: its last child, the child of its parent before it, whether the scout guessed it; rows
# are numbered from the root's, 0, which is the child of none.
CHILD, NEXT, SCOUTED = 3, 4, 5


@compiled()
def child_row(reads, row, token):
    """The row of a token below a row; 0 if there is none."""
    found = reads[CHILD, row]
    while found and reads[TOKEN, found] != token:
        found = reads[NEXT, found]
    return found


@compiled()
def add_row(reads, count, row, token):
    """Add the row of a token below a row; return its number, and the number of rows."""
    reads[TOKEN, count], reads[PARENT, count] = token, row
    reads[DEPTH, count] = reads[DEPTH, row] + 1
    reads[NEXT, count], reads[CHILD, row] = reads[CHILD, row], count
    return count, count + 1


@compiled()
def pass_rows(begun, rest, reads, first, stop):
    """The rows `first` to `stop` of a pass, with the entries of their paths beyond the committed
    context; before the root's, those of the other tokens that were not read yet.
    """
    position, start, committed, root_path = begun
    above, new = (0 if first else len(rest)), max(first, 1)
    count, beyond = above + stop - new, len(root_path)
    deepest = reads[DEPTH, new:stop].max() if new < stop else 0
    tokens, positions, lengths = np.empty((3, count), np.int64)
    paths = np.zeros((count, beyond + deepest), np.int64)
    paths[:, :beyond] = root_path
    for one in range(above):
        tokens[one], positions[one] = rest[one], position + one
        lengths[one] = beyond - above + 1 + one
    root = start + len(rest) - 1  # its entry; those of the other rows follow
    for row in range(new, stop):
        one, at, depth = above + row - new, row, reads[DEPTH, row]
        for step in range(depth, 0, -1):
            paths[one, beyond + step - 1] = root + at
            at = reads[PARENT, at]
        tokens[one], lengths[one] = reads[TOKEN, row], beyond + depth
        positions[one] = position + len(rest) - 1 + depth
    return tokens, positions, (root + first if first else start), committed, paths, lengths


@compiled()
def add_scouted(guesser, guided, noise_keys, deepest, missing, reads, first, count):
    """Add what the scout guesses below the best rows from `first` on; return the rows' number."""
    order = np.argsort(-missing[: count - first], kind="mergesort")[:guided] + first
    for best in order:
        known = path_tokens(reads, best, guesser.window, guesser.trie.order)
        nodes, _ = grow_guesses(guesser, known, noise_keys[reads[DEPTH, best] :])
        place = np.full(nodes.shape[1], best)
        for node in range(1, len(place)):
            above, token = place[nodes[PARENT, node]], nodes[TOKEN, node]
            if above < 0 or reads[DEPTH, above] == deepest:
                place[node] = -1
                continue
            row = child_row(reads, above, token)
            if not row:
                row, count = add_row(reads, count, above, token)
            place[node], reads[SCOUTED, row] = row, 1
    return count


@compiled()
def append_children(tokens, factors, node, level, floor, worst, nodes, scores, count):
    """Add children that score at least `floor` and above `worst`; return the number of nodes."""
    for child in range(len(tokens)):
        score = scores[node] * min(1.0, factors[child])
        if factors[child] > 0 and score >= floor and score > worst:
            nodes[TOKEN, count], nodes[PARENT, count] = tokens[child], node
            nodes[DEPTH, count], nodes[ROW, count] = level + 1, 0
            scores[count] = score
            count += 1
    return count


@compiled()
def keep_best(count, budget, nodes, scores):
    """Keep the root and the `budget` best guesses, of equals the earlier; return the count."""
    order = np.argsort(-scores[1:count], kind="mergesort")[:budget] + 1
    place, end = np.zeros(count, np.int64), 0
    for node in np.sort(order):  # each after its parent, which has no lower score
        end += 1
        place[node], scores[end] = end, scores[node]
        nodes[:, end] = nodes[:, node]
        nodes[PARENT, end] = place[nodes[PARENT, end]]
    return end + 1


@compiled()
def grow_known(limits, sampling, noise, reads, read, logits, ranked, missing, nodes, scores):
    """Grow the tree anew from the first `read` rows. Nodes that may have children and no row get
    one, and their scores into `missing`. Returns the numbers of nodes, 0 for bad logits, and rows.

    ranked    per row, how many children were found, −1 for not yet; their tokens, and factors
    """
    (widths, budget, floor), (noise_keys, ids), (found, tokens, factors) = limits, noise, ranked
    rows, count = read, 1
    for level in range(len(widths)):
        worst = scores[:count].min() if budget and count - 1 == budget else -1.0
        frontier = np.flatnonzero((nodes[DEPTH, :count] == level) & (scores[:count] > worst))
        for node in frontier:
            row, above = 0, nodes[ROW, nodes[PARENT, node]]
            if level:
                row = child_row(reads, above, nodes[TOKEN, node])
            if level and not row:
                row, rows = add_row(reads, rows, above, nodes[TOKEN, node])
                missing[row - read] = scores[node]
            nodes[ROW, node] = row
            if row >= read:
                continue
            if found[row] < 0:
                line, key = logits[row, : len(ids)], noise_keys[level]
                best, their = rank_row(line, widths[level], sampling, key, ids)
                found[row] = len(best)
                tokens[row, : len(best)], factors[row, : len(best)] = best, their
            if not found[row]:
                return 0, read
            given = tokens[row, : found[row]], factors[row, : found[row]], node, level
            count = append_children(*given, floor, worst, nodes, scores, count)
        if budget and count - 1 > budget:
            count = keep_best(count, budget, nodes, scores)
    return count, rows


@no_type_check
def _grow(begun, rest, limits, sampling, noise, scout, sizes, weights, buffers):
    """Grow a tree: of its nodes the tokens, parents, depths and whether the scout guessed them, and
    scores; tokens and parents of the rows read, the root's first; their logits; and the passes, 0
    for bad logits.

    begun      position and entry of the first of `rest`, committed entries, the root's path beyond
    rest       tokens not read yet, the root last
    limits     children per node at each depth, the budget (or 0), and the lowest score
    noise      the key of each depth's noise, and the tokens that the head scores
    scout      a `Guesser`, and below how many missing nodes it guesses before a pass
    sizes      the most nodes, and the most rows
    """
    (most, longest), (guesser, guided), columns = sizes, scout, weights.head[0].shape[1] * COLUMNS
    widest, deepest = limits[0].max(), len(limits[0]) - 1
    reads, logits = np.zeros((6, longest), np.int64), np.empty((longest, columns), np.float32)
    nodes, scores, missing = np.zeros((4, most), np.int64), np.ones(most), np.ones(longest)
    found, factors = np.full(longest, -1), np.zeros((longest, widest))
    ranked = found, np.zeros(factors.shape, np.int64), factors
    nodes[TOKEN, 0], nodes[PARENT, 0] = rest[-1], -1
    read, rows, count, passes = 0, 1, 1, 0
    while read < rows:
        if guided:  # deeper nodes than `deepest` get no children
            rows = add_scouted(guesser, guided, noise[0], deepest, missing, reads, read, rows)
        new = pass_rows(begun, rest, reads, read, rows)
        run_pass(new, rows - read, weights, buffers, logits[read:rows])
        passes, read = passes + 1, rows
        count, rows = grow_known(
            limits, sampling, noise, reads, read, logits, ranked, missing, nodes, scores
        )
    if not count:
        return nodes[:, :1], scores[:1], reads[:2, :1], logits[:1], 0
    for node in range(count - 1, 0, -1):  # children before their parents
        row = child_row(reads, nodes[ROW, nodes[PARENT, node]], nodes[TOKEN, node])
        nodes[ROW, node] = reads[SCOUTED, row]
    return nodes[:, :count], scores[:count], reads[:2, :rows], logits[:rows], passes


grow_on_one_thread = compiled()(copied(_grow, "grow_on_one_thread", run_pass=one_thread))
grow_on_many_threads = compiled()(copied(_grow, "grow_on_many_threads", run_pass=many_threads))
