"""A small model's whole tree of guesses in one compiled call: passes, choices and planting, level by level, as `draft.TreeDraft` has it.

What a level costs in Python is more than what a small draft's pass costs; here it costs next to nothing.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from specdec_lib.runtime.kernels import LINEAR_IN_ORDER, exponential, one_thread

MOST = 64  # tokens that a top-k may keep


@no_type_check
@njit(cache=True, error_model="numpy")
def largest(values, k, places, found):
    """The places of the k largest values and the values, best first, a tie to the lower place; how many there are (−inf is none)."""
    count = 0
    for place in range(len(values)):
        value = values[place]
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
    """Standard Gumbel noise of a token, as `chance.gumbel_noise` has it; `key` is that of the seed and the position."""
    state = key + (np.uint64(token) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (state ^ (state >> np.uint64(31))) >> np.uint64(12)
    return -np.log(-np.log((np.float64(bits) + 0.5) * 2.0**-52))


@no_type_check
@njit(cache=True, error_model="numpy")
def likeliest(logits, k, places, factors):
    """The k largest logits' tokens and unwarped probabilities."""
    found = np.empty(k, np.float32)
    count = largest(logits, k, places, found)
    total = summed(logits, found[0])
    for one in range(count):
        factors[one] = np.exp(np.float64(found[one]) - np.float64(found[0])) / total
    return count


@no_type_check
@njit(cache=True, error_model="numpy")
def ranked(logits, k, places, factors, temperature, top_k, key, edges, binned):
    """The k tokens that come out best under the noise, and how often such a guess is accepted, by its rank and gap."""
    few, law = np.empty(top_k, np.int64), np.empty(top_k, np.float32)
    kept = largest(logits, top_k, few, law)
    total = np.float64(0.0)
    for one in range(kept):
        total += np.exp(np.float64(law[one] - law[0]) / temperature)
    noisy = np.empty(kept, np.float64)
    for one in range(kept):
        noisy[one] = np.float64(law[one] - law[0]) / temperature - np.log(total) + gumbel(key, few[one])
    wanted = max(2, k)
    order, best = np.empty(wanted, np.int64), np.empty(wanted, np.float64)
    count = largest(noisy, wanted, order, best)
    for rank in range(min(k, count)):
        gap = best[0] - best[rank] if rank else (best[0] - best[1] if count > 1 else np.inf)
        row = binned[np.searchsorted(edges, gap, side="right")]
        last = len(row) - 1
        places[rank] = few[order[rank]]
        factors[rank] = row[rank] if rank <= last else row[last] * 0.5 ** (rank - last)
    return min(k, count)


@no_type_check
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_ORDER)
def truncated(count, budget, tokens, parents, scores, depths, slots):
    """The `budget` best-scored guesses and the root, in their order; a tie goes to the earlier node."""
    order = np.argsort(-scores[1:count], kind="mergesort")[:budget] + 1
    kept = np.zeros(count, np.bool_)
    kept[0] = True
    kept[order] = True
    place = np.zeros(count, np.int64)
    end = 0
    for node in range(count):
        if kept[node]:
            place[node] = end
            parent = parents[node]
            tokens[end], parents[end], scores[end] = tokens[node], place[parent] if node else -1, scores[node]
            depths[end], slots[end] = depths[node], slots[node]
            end += 1
    return end


@no_type_check
@njit(cache=True, error_model="numpy")
def planted(rest, position, start, trunk, root_path, widths, budget, floor, temperature, top_k, noise_keys, edges, binned, network, buffers, sizes):
    """A tree: its nodes' tokens, parents and scores; then the rows that were read beyond `rest`: tokens and the slots they continue.

    rest       tokens not read yet, the root last, from position `position` on, in the slots from `start` on
    widths     children per node at each depth; with a budget, all of them are the budget
    sizes      tokens of the vocabulary, and of a whole number of panels
    """
    shape, tables, layers, head = network
    keys, values = buffers
    vocabulary, padded = sizes
    most = 2 + (budget + 1) * budget if budget else 2 + np.prod(widths) * len(widths)
    tokens, parents, depths, slots = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    scores = np.zeros(most, np.float64)
    tokens[0], parents[0], scores[0], slots[0] = rest[-1], -1, 1.0, root_path[-1]
    read_tokens, read_parents = np.zeros(most, np.int64), np.zeros(most, np.int64)
    reads, used, count, passes = 0, start, 1, 0
    frontier = np.zeros(1, np.int64)
    for level in range(len(widths)):
        full = budget > 0 and count - 1 == budget
        worst = scores[:count].min() if full else -1.0
        chosen = np.empty(count, np.int64)
        rows = 0
        for node in range(count):
            if depths[node] == level and scores[node] > worst:
                chosen[rows] = node
                rows += 1
        if not rows:
            break
        frontier = chosen[:rows]
        if level:
            batch, above = np.empty(rows, np.int64), np.zeros((rows, len(root_path) + level), np.int64)
            for row in range(rows):
                node = frontier[row]
                batch[row], slots[node] = tokens[node], used + row
                read_tokens[reads], read_parents[reads] = tokens[node], slots[parents[node]]
                reads += 1
                above[row, : len(root_path)] = root_path
                up = node
                for step in range(level, 0, -1):
                    above[row, len(root_path) + step - 1] = slots[up]
                    up = parents[up]
            logits = np.empty((rows, padded), np.float32)
            places = np.full(rows, position + len(rest) - 1 + level)
            counts = np.full(rows, len(root_path) + level)
            one_thread(batch, places, used, trunk, above, counts, rows, shape, tables, layers, head, keys, values, logits)
            used += rows
        else:
            before = len(root_path) - len(rest)
            above = np.zeros((len(rest), len(root_path)), np.int64)
            for row in range(len(rest)):
                above[row] = root_path
            logits = np.empty((1, padded), np.float32)
            counts, places = before + 1 + np.arange(len(rest)), position + np.arange(len(rest))
            one_thread(rest, places, used, trunk, above, counts, 1, shape, tables, layers, head, keys, values, logits)
            used += len(rest)
        passes += 1
        width = widths[level]
        found, factors = np.empty(width, np.int64), np.empty(width, np.float64)
        for row in range(rows):
            node = frontier[row]
            line = logits[row, :vocabulary]
            if temperature == 0.0:
                children = likeliest(line, width, found, factors)
            else:
                children = ranked(line, width, found, factors, temperature, top_k, noise_keys[level], edges, binned)
            for child in range(children):
                score = scores[node] * min(1.0, factors[child])
                if factors[child] > 0 and score >= floor and score > worst:
                    tokens[count], parents[count], scores[count], depths[count], slots[count] = found[child], node, score, level + 1, -1
                    count += 1
        if budget and count - 1 > budget:
            count = truncated(count, budget, tokens, parents, scores, depths, slots)
    return tokens[:count], parents[:count], scores[:count], read_tokens[:reads], read_parents[:reads], passes
