"""A small model's whole tree of guesses in one compiled call: passes, choices and planting, level
by level, as `draft.TreeDraft` has it.

What a level costs in Python is more than what a small draft's pass costs; here it costs next to
nothing.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from specdec_lib.models.fast.arithmetic import exponential
from specdec_lib.models.fast.kernels import one_thread

TOKEN, PARENT, DEPTH, SLOT = range(4)  # of a node


@no_type_check
@njit(cache=True, error_model="numpy")
def largest(values, k, places, found):
    """The places of the k largest values and the values, best first, a tie to the lower place; how
    many there are: −inf is none, −1 if one is NaN.
    """
    count = 0
    for place in range(len(values)):
        value = values[place]
        if value != value:
            return -1
        if value == -np.inf or (count == k and value <= found[count - 1]):
            continue
        at = count if count < k else k - 1
        while at and found[at - 1] < value:
            found[at], places[at] = found[at - 1], places[at - 1]
            at -= 1
        found[at], places[at] = value, place
        count = min(count + 1, k)
    return count


@no_type_check
@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def summed(values, highest):
    """The sum of e to each value less the highest."""
    total = np.float32(0.0)
    for one in range(len(values)):
        total += exponential(values[one] - highest)
    return total


@no_type_check
@njit(cache=True, error_model="numpy")
def gumbel(key, token):
    """Standard Gumbel noise of a token: the bits of `chance.gumbel_noise`, to the last place of its
    logarithms; `key` is a position's `noise_key`.
    """
    state = key + (np.uint64(token) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (state ^ (state >> np.uint64(31))) >> np.uint64(12)
    return -np.log(-np.log((np.float64(bits) + 0.5) * 2.0**-52))


@no_type_check
@njit(cache=True, error_model="numpy")
def likeliest(logits, k, places, factors):
    """The k largest logits' tokens and unwarped probabilities; how many, −1 where the largest is
    not finite.
    """
    found = np.empty(k, np.float32)
    count = largest(logits, k, places, found)
    if count < 1 or not np.isfinite(found[0]):
        return -1
    total = summed(logits, found[0])
    for one in range(count):
        factors[one] = np.exp(np.float64(found[one]) - np.float64(found[0])) / total
    return count


@no_type_check
@njit(cache=True, error_model="numpy")
def kept(logits, top_k):
    """The tokens of the k largest logits and of whatever ties with the last of them, rising, and
    their logits; none where there is no finite one.
    """
    places, found = np.empty(top_k, np.int64), np.empty(top_k, np.float32)
    count = largest(logits, top_k, places, found)
    if count < 1 or not np.isfinite(found[0]):
        return np.empty(0, np.int64), found
    allowed = np.flatnonzero(logits >= found[count - 1])
    return allowed, logits[allowed]


@no_type_check
@njit(cache=True, error_model="numpy")
def ranked(logits, k, places, factors, law, key):
    """The k tokens that come out best under the noise, and how often such a guess is accepted, by
    rank and gap; −1 where there is no law.
    """
    temperature, top_k, edges, binned = law
    tokens, noisy = kept(logits, top_k)
    if not len(tokens):
        return -1
    scaled = (noisy.astype(np.float64) - noisy.max()) / temperature
    total = np.log(np.exp(scaled).sum())
    for one in range(len(tokens)):
        scaled[one] += gumbel(key, tokens[one]) - total
    wanted = max(2, k)
    order, best = np.empty(wanted, np.int64), np.empty(wanted, np.float64)
    count = largest(scaled, wanted, order, best)
    for rank in range(min(k, count)):
        gap = best[0] - best[rank] if rank else (best[0] - best[1] if count > 1 else np.inf)
        row = binned[np.searchsorted(edges, gap, side="right")]
        last = len(row) - 1
        places[rank] = tokens[order[rank]]
        factors[rank] = row[rank] if rank <= last else row[last] * 0.5 ** (rank - last)
    return min(k, count)


@no_type_check
@njit(cache=True, error_model="numpy")
def truncated(count, budget, nodes, scores):
    """The `budget` best-scored guesses and the root, in their order; a tie goes to the earlier
    node. How many nodes are left.
    """
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


@no_type_check
@njit(cache=True, error_model="numpy")
def read(tokens, places, start, trunk, above, counts, keep, network, buffers, padded):
    """One pass on one thread; the logits of the last `keep` rows."""
    shape, tables, layers, head = network
    keys, values = buffers
    logits = np.empty((keep, padded), np.float32)
    one_thread(
        tokens,
        places,
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
    )
    return logits


@no_type_check
@njit(cache=True, error_model="numpy")
def root_row(rest, position, start, trunk, root_path, network, buffers, padded):
    """One pass over the tokens that were not read yet; the logits after the root, the last of them."""
    above = root_path.repeat(len(rest)).reshape(len(root_path), len(rest)).T.copy()
    order = np.arange(len(rest))
    counts = len(root_path) - len(rest) + 1 + order
    return read(rest, position + order, start, trunk, above, counts, 1, network, buffers, padded)


@no_type_check
@njit(cache=True, error_model="numpy")
def level_paths(frontier, level, nodes, root_path):
    """The slots from above the trunk's end down to each node of a level."""
    above = np.empty((len(frontier), len(root_path) + level), np.int64)
    for row in range(len(frontier)):
        above[row, : len(root_path)] = root_path
        node = frontier[row]
        for step in range(level, 0, -1):
            above[row, len(root_path) + step - 1] = nodes[SLOT, node]
            node = nodes[PARENT, node]
    return above


@no_type_check
@njit(cache=True, error_model="numpy")
def planted(
    rest,
    position,
    start,
    trunk,
    root_path,
    widths,
    budget,
    floor,
    law,
    noise_keys,
    network,
    buffers,
    sizes,
):
    """A tree: its nodes' tokens and parents, and scores; the rows read beyond `rest`, their tokens
    and the slots they continue; passes, or −1.

    rest       tokens not read yet, the root last, from position `position` on, in the slots from
               `start` on
    widths     children per node at each depth; with a budget above 0, all of them are the budget
    law        temperature, top-k, and a match table's edges and bins
    sizes      tokens of the vocabulary; of a whole number of panels; and nodes at most, as many
               rows
    """
    vocabulary, padded, most = sizes
    nodes, scores, reads = (
        np.zeros((4, most), np.int64),
        np.zeros(most, np.float64),
        np.zeros((2, most), np.int64),
    )
    nodes[TOKEN, 0], nodes[PARENT, 0], nodes[SLOT, 0], scores[0] = rest[-1], -1, root_path[-1], 1.0
    found, factors = np.empty(widths.max(), np.int64), np.empty(widths.max(), np.float64)
    known, count, passes = 0, 1, 0
    for level in range(len(widths)):
        worst = scores[:count].min() if budget and count - 1 == budget else -1.0
        frontier = np.flatnonzero((nodes[DEPTH, :count] == level) & (scores[:count] > worst))
        if not len(frontier):
            break
        if level:
            first = start + len(rest) + known
            for row, node in enumerate(frontier):
                nodes[SLOT, node] = first + row
                reads[0, known], reads[1, known] = (
                    nodes[TOKEN, node],
                    nodes[SLOT, nodes[PARENT, node]],
                )
                known += 1
            above = level_paths(frontier, level, nodes, root_path)
            places, counts = (
                np.full(len(frontier), position + len(rest) - 1 + level),
                np.full(len(frontier), above.shape[1]),
            )
            batch = nodes[TOKEN][frontier]
            logits = read(
                batch, places, first, trunk, above, counts, len(frontier), network, buffers, padded
            )
        else:
            logits = root_row(rest, position, start, trunk, root_path, network, buffers, padded)
        passes += 1
        for row, node in enumerate(frontier):
            line = logits[row, :vocabulary]
            if law[0] == 0.0:
                children = likeliest(line, widths[level], found, factors)
            else:
                children = ranked(line, widths[level], found, factors, law, noise_keys[level])
            if children < 0:
                return nodes[:2, :1], scores[:1], reads[:, :0], -1
            for child in range(children):
                score = scores[node] * min(1.0, factors[child])
                if factors[child] > 0 and score >= floor and score > worst:
                    (
                        nodes[TOKEN, count],
                        nodes[PARENT, count],
                        nodes[DEPTH, count],
                        nodes[SLOT, count],
                    ) = found[child], node, level + 1, -1
                    scores[count] = score
                    count += 1
        if budget and count - 1 > budget:
            count = truncated(count, budget, nodes, scores)
    return nodes[:2, :count], scores[:count], reads[:, :known], passes
