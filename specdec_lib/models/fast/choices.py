"""Compiled choice of a node's children from its logits, greedy or with Gumbel noise."""

from typing import no_type_check

import numpy as np
from numba import njit

from specdec_lib.models.fast.arithmetic import LINEAR_IN_LANES, exponential


@no_type_check
@njit(cache=True, error_model="numpy")
def find_largest(values, k, places, found):
    """Write the k largest values above −inf to `found` and their places to `places`, best first, a
    tie to the lower place; return how many there are, or −1 if one is NaN.
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
@njit(cache=True, error_model="numpy", fastmath=LINEAR_IN_LANES)
def sum_exponentials(values, highest):
    """The sum of e to each value less the highest."""
    total = np.float32(0.0)
    for one in range(len(values)):
        total += exponential(values[one] - highest)
    return total


@no_type_check
@njit(cache=True, error_model="numpy")
def gumbel(key, token):
    """The noise of `core.chance` for a token, up to the last place of the logarithms."""
    state = key + (np.uint64(token) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (state ^ (state >> np.uint64(31))) >> np.uint64(12)
    return -np.log(-np.log((np.float64(bits) + 0.5) * 2.0**-52))


@no_type_check
@njit(cache=True, error_model="numpy")
def choose_likeliest(logits, k, tokens, factors):
    """Write the tokens of the k largest logits and their unwarped probabilities; return how many,
    −1 if the largest is not finite.
    """
    found = np.empty(k, np.float32)
    count = find_largest(logits, k, tokens, found)
    if count < 1 or not np.isfinite(found[0]):
        return -1
    total = sum_exponentials(logits, found[0])
    for one in range(count):
        factors[one] = np.exp(np.float64(found[one]) - np.float64(found[0])) / total
    return count


@no_type_check
@njit(cache=True, error_model="numpy")
def top_k_tokens(logits, top_k):
    """The tokens, rising, of the k largest logits and of ties with the last, and their logits."""
    places, found = np.empty(top_k, np.int64), np.empty(top_k, np.float32)
    count = find_largest(logits, top_k, places, found)
    if count < 1 or not np.isfinite(found[0]):
        return np.empty(0, np.int64), found
    allowed = np.flatnonzero(logits >= found[count - 1])
    return allowed, logits[allowed]


@no_type_check
@njit(cache=True, error_model="numpy")
def choose_ranked(logits, k, places, factors, sampling, key):
    """Write the k tokens that rank best with the noise, and the match table's rate of each; return
    how many, −1 if no logit is finite.

    sampling    temperature, top-k, and the match table's edges and bins
    """
    temperature, top_k, edges, binned = sampling
    tokens, noisy = top_k_tokens(logits, top_k)
    if not len(tokens):
        return -1
    scaled = (noisy.astype(np.float64) - noisy.max()) / temperature
    total = np.log(np.exp(scaled).sum())
    for one in range(len(tokens)):
        scaled[one] += gumbel(key, tokens[one]) - total
    wanted = max(2, k)
    order, best = np.empty(wanted, np.int64), np.empty(wanted, np.float64)
    count = find_largest(scaled, wanted, order, best)
    for rank in range(min(k, count)):
        gap = best[0] - best[rank] if rank else (best[0] - best[1] if count > 1 else np.inf)
        row = binned[np.searchsorted(edges, gap, side="right")]
        last = len(row) - 1
        places[rank] = tokens[order[rank]]
        factors[rank] = row[rank] if rank <= last else row[last] * 0.5 ** (rank - last)
    return min(k, count)
