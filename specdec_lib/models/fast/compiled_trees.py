"""A small model's whole tree of guesses in one compiled call, as `TreeDraft` grows it, or
`StagedTree` with an n-gram scout: Python's work around a level costs more than a draft's pass.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Int64, UInt64

from specdec_lib.models.fast.choices import Sampling, rank_row
from specdec_lib.models.fast.kernels import copied, many_threads, one_thread
from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.tiles import compiled
from specdec_lib.models.katz.trie import Guesser, grow_guesses, path_tokens

TOKEN, PARENT, DEPTH, ROW = range(4)  # of a node; ROW: the number of the row that it is read in
# Of a row: its last child, the child of its parent before it, whether the scout guessed it; rows
# are numbered from the root's, 0, which is the child of none.
CHILD, NEXT, SCOUTED = range(3, 6)


class GrowthSettings(NamedTuple):
    """The tree that one compiled call grows.

    widths        the most children of a node at each depth
    budget        the most guesses; 0 if widths alone limit them
    floor         the least score of a guess
    deepen        the least score of a guess that gets children
    sampling      how children are chosen, see `choices.Sampling`
    noise_keys    the key of the noise at each depth, and at those a scout guesses beyond
    ids           the token of each column of the logits
    guesser       the n-gram table that guesses which rows are needed; `NO_GUESSES` for none
    guided        below how many missing nodes it guesses before a pass; 0 for none
    most_nodes    room for nodes, before those beyond the budget are cut
    most_rows     room for rows
    """

    widths: Int64[np.ndarray, " depths"]
    budget: int
    floor: float
    deepen: float
    sampling: Sampling
    noise_keys: UInt64[np.ndarray, " positions"]
    ids: Int64[np.ndarray, " columns"]
    guesser: Guesser
    guided: int
    most_nodes: int
    most_rows: int


class Place(NamedTuple):
    """Where a tree's rows lie in the cache.

    position     of the first token that was not read yet
    start        the cache entry that this token gets
    committed    entries of the context that every row sees
    root_path    entries beyond these that the root sees, its own last
    """

    position: int
    start: int
    committed: int
    root_path: Int64[np.ndarray, " entries"]


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
    reads[TOKEN, count] = token
    reads[PARENT, count] = row
    reads[DEPTH, count] = reads[DEPTH, row] + 1
    reads[NEXT, count] = reads[CHILD, row]
    reads[CHILD, row] = count
    return count, count + 1


@compiled()
def pass_rows(place, rest, reads, first, stop):
    """The rows `first` to `stop` of a pass, with the entries of their paths beyond the committed
    context; before the root's, those of the other tokens that were not read yet.
    """
    above = 0 if first else len(rest)
    new = max(first, 1)
    count = above + stop - new
    beyond = len(place.root_path)
    deepest = reads[DEPTH, new:stop].max() if new < stop else 0
    tokens, positions, lengths = np.empty((3, count), np.int64)
    paths = np.zeros((count, beyond + deepest), np.int64)
    paths[:, :beyond] = place.root_path
    for one in range(above):
        tokens[one] = rest[one]
        positions[one] = place.position + one
        lengths[one] = beyond - above + 1 + one
    root = place.start + len(rest) - 1  # its entry; those of the other rows follow
    for row in range(new, stop):
        one = above + row - new
        at = row
        depth = reads[DEPTH, row]
        for step in range(depth, 0, -1):
            paths[one, beyond + step - 1] = root + at
            at = reads[PARENT, at]
        tokens[one] = reads[TOKEN, row]
        lengths[one] = beyond + depth
        positions[one] = place.position + len(rest) - 1 + depth
    start = root + first if first else place.start
    return tokens, positions, start, place.committed, paths, lengths


@compiled()
def add_scouted(settings, missing, reads, first, count):
    """Add what the scout guesses below the best rows from `first` on; return the rows' number."""
    guesser = settings.guesser
    deepest = len(settings.widths) - 1  # deeper nodes get no children
    order = np.argsort(-missing[: count - first], kind="mergesort")[: settings.guided] + first
    for best in order:
        known = path_tokens(reads, best, guesser.window, guesser.trie.order)
        nodes, _ = grow_guesses(guesser, known, settings.noise_keys[reads[DEPTH, best] :])
        place = np.full(nodes.shape[1], best)
        for node in range(1, len(place)):
            above = place[nodes[PARENT, node]]
            token = nodes[TOKEN, node]
            if above < 0 or reads[DEPTH, above] == deepest:
                place[node] = -1
                continue
            row = child_row(reads, above, token)
            if not row:
                row, count = add_row(reads, count, above, token)
            place[node] = row
            reads[SCOUTED, row] = 1
    return count


@compiled()
def append_children(tokens, factors, node, level, floor, worst, nodes, scores, count):
    """Add children that score at least `floor` and above `worst`; return the number of nodes."""
    for child in range(len(tokens)):
        score = scores[node] * min(1.0, factors[child])
        if factors[child] > 0 and score >= floor and score > worst:
            nodes[TOKEN, count] = tokens[child]
            nodes[PARENT, count] = node
            nodes[DEPTH, count] = level + 1
            nodes[ROW, count] = 0
            scores[count] = score
            count += 1
    return count


@compiled()
def keep_best(count, budget, nodes, scores):
    """Keep the root and the `budget` best guesses, of equals the earlier; return the count."""
    order = np.argsort(-scores[1:count], kind="mergesort")[:budget] + 1
    place = np.zeros(count, np.int64)
    end = 0
    for node in np.sort(order):  # each after its parent, which has no lower score
        end += 1
        place[node] = end
        scores[end] = scores[node]
        nodes[:, end] = nodes[:, node]
        nodes[PARENT, end] = place[nodes[PARENT, end]]
    return end + 1


@compiled()
def grow_known(settings, reads, read, logits, found, tokens, factors, missing, nodes, scores):
    """Grow the tree anew from the first `read` rows. Nodes that may have children and no row get
    one, and their scores into `missing`. Returns the numbers of nodes, 0 for bad logits, and rows.

    found              per row, how many children were found, −1 for not yet
    tokens, factors    of these children
    """
    budget = settings.budget
    rows = read
    count = 1
    for level in range(len(settings.widths)):
        worst = scores[:count].min() if budget and count - 1 == budget else -1.0
        open_nodes = (scores[:count] > worst) & (scores[:count] >= settings.deepen)
        frontier = np.flatnonzero((nodes[DEPTH, :count] == level) & open_nodes)
        for node in frontier:
            row = 0
            above = nodes[ROW, nodes[PARENT, node]]
            if level:
                row = child_row(reads, above, nodes[TOKEN, node])
            if level and not row:
                row, rows = add_row(reads, rows, above, nodes[TOKEN, node])
                missing[row - read] = scores[node]
            nodes[ROW, node] = row
            if row >= read:
                continue
            if found[row] < 0:
                line = logits[row, : len(settings.ids)]
                key = settings.noise_keys[level]
                width = settings.widths[level]
                best, their = rank_row(line, width, settings.sampling, key, settings.ids)
                found[row] = len(best)
                tokens[row, : len(best)] = best
                factors[row, : len(best)] = their
            some = found[row]
            if not some:
                return 0, read
            given = tokens[row, :some], factors[row, :some], node, level, settings.floor, worst
            count = append_children(*given, nodes, scores, count)
        if budget and count - 1 > budget:
            count = keep_best(count, budget, nodes, scores)
    return count, rows


@no_type_check
def _grow(place, rest, settings, weights, buffers):
    """Grow a tree: of its nodes the tokens, parents, depths and whether the scout guessed them, and
    scores; tokens and parents of the rows read, the root's first; their logits; and the passes, 0
    for bad logits.

    place       a `Place`
    rest        tokens not read yet, the root last
    settings    `GrowthSettings`
    """
    most_rows = settings.most_rows
    widest = settings.widths.max()
    columns = weights.head[0].shape[1] * COLUMNS
    reads = np.zeros((6, most_rows), np.int64)
    logits = np.empty((most_rows, columns), np.float32)
    nodes = np.zeros((4, settings.most_nodes), np.int64)
    scores = np.ones(settings.most_nodes)
    missing = np.ones(most_rows)
    found = np.full(most_rows, -1)
    factors = np.zeros((most_rows, widest))
    tokens = np.zeros((most_rows, widest), np.int64)
    nodes[TOKEN, 0] = rest[-1]
    nodes[PARENT, 0] = -1
    read = 0
    rows = 1
    count = 1
    passes = 0
    while read < rows:
        if settings.guided:
            rows = add_scouted(settings, missing, reads, read, rows)
        new = pass_rows(place, rest, reads, read, rows)
        run_pass(new, rows - read, weights, buffers, logits[read:rows])
        passes += 1
        read = rows
        count, rows = grow_known(
            settings, reads, read, logits, found, tokens, factors, missing, nodes, scores
        )
    if not count:
        return nodes[:, :1], scores[:1], reads[:2, :1], logits[:1], 0
    for node in range(count - 1, 0, -1):  # children before their parents
        row = child_row(reads, nodes[ROW, nodes[PARENT, node]], nodes[TOKEN, node])
        nodes[ROW, node] = reads[SCOUTED, row]
    return nodes[:, :count], scores[:count], reads[:2, :rows], logits[:rows], passes


grow_on_one_thread = compiled()(copied(_grow, "grow_on_one_thread", run_pass=one_thread))
grow_on_many_threads = compiled()(copied(_grow, "grow_on_many_threads", run_pass=many_threads))
