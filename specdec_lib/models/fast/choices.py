"""Compiled choice of a node's children from its logits, greedy or with Gumbel noise."""

from typing import no_type_check

import numpy as np
from numba import njit

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.models.fast.arithmetic import LINEAR_IN_LANES, exponential

Sampling = tuple[float, int, np.ndarray, np.ndarray]
"""Temperature, top-k (0 for none), and a match table's edges and bins."""


def compiled_sampling(sampler: Sampler, match: MatchTable, scored: int) -> Sampling | None:
    """What the compiled choices take, for a head of so many tokens; None for a top-p."""
    if sampler.temperature > 0 and sampler.top_p < 1:
        return None
    top_k = sampler.top_k if sampler.top_k is not None and sampler.top_k < scored else 0
    return float(sampler.temperature), top_k, *match_arrays(match)


def match_arrays(match: MatchTable) -> tuple[np.ndarray, np.ndarray]:
    """A match table's edges, and a row of rates for each bin."""
    return np.array(match.edges, np.float64), np.array(match.binned or (match.rates,), np.float64)


def noise_keys(chance: Chance, first: int, count: int) -> np.ndarray:
    """The keys of the noise at positions from `first` on; zeros for temperature 0."""
    if chance.sampler.temperature == 0:
        return np.zeros(count, np.uint64)
    return np.array([chance.noise_key(first + one) for one in range(count)], np.uint64)


def check_finite(count: int, name: str) -> None:
    """Raise ValueError for the negative number by which compiled calls report bad logits."""
    if count < 0:
        wanted = "logits must hold no NaN or +inf and at least one finite value"
        raise ValueError(f"{wanted}; those of {name} do not")


@no_type_check
@njit(cache=True, error_model="numpy")
def insert(value, place, count, k, places, found):
    """Sort a value into the `count` largest, at most k, behind equal ones; return the new count."""
    if count == k and value <= found[count - 1]:
        return count
    at = count if count < k else k - 1
    while at and found[at - 1] < value:
        found[at], places[at] = found[at - 1], places[at - 1]
        at -= 1
    found[at], places[at] = value, place
    return min(count + 1, k)


@no_type_check
@njit(cache=True, error_model="numpy")
def find_largest(values, k, places, found):
    """Write the k largest values above −inf, and their places, best first, a tie to the lower
    place; return how many there are, or −1 if one is NaN.
    """
    count = 0
    for place in range(len(values)):
        value = values[place]
        if value != value:
            return -1
        if value > -np.inf:
            count = insert(value, place, count, k, places, found)
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
def noise_bits(key, token):
    """The 52 bits that give the noise of `core.chance` for a token."""
    state = key + (np.uint64(token) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))) >> np.uint64(12)


@no_type_check
@njit(cache=True, error_model="numpy")
def choose_likeliest(logits, k, tokens, factors):
    """Write the k likeliest tokens and unwarped probabilities; return how many, −1 for bad ones."""
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
def top_k_columns(logits, top_k):
    """The columns, rising, of the k largest logits and of ties with the last, of all finite ones
    for a k of 0; none for bad logits.
    """
    places, found = np.empty(max(1, top_k), np.int64), np.empty(max(1, top_k), np.float32)
    count = find_largest(logits, len(places), places, found)
    if count < 1 or not np.isfinite(found[0]):
        return places[:0]
    if top_k:
        return np.flatnonzero(logits >= found[count - 1])
    return np.flatnonzero(logits > -np.inf)


@no_type_check
@njit(cache=True, error_model="numpy")
def find_noisiest(scaled, tokens, key, places, found):
    """Write the largest sums of a number of at most 0 and its token's noise, and their places, as
    `find_largest` does; return how many there are. As −log(−log u) ≤ −log(1 − u), most tokens lose
    without two logarithms.
    """
    count, k, bar = 0, len(places), 0.0
    for place in range(len(scaled)):
        bits = np.float64(noise_bits(key, tokens[place])) + 0.5
        weight = exponential(np.float32(scaled[place]))  # with an error far below 1 in 10,000
        if count == k and (1.0 - bits * 2.0**-52) * bar > weight * 1.0001:
            continue
        value = scaled[place] - np.log(-np.log(bits * 2.0**-52))
        count = insert(value, place, count, k, places, found)
        bar = np.exp(found[count - 1])
    return count


@no_type_check
@njit(cache=True, error_model="numpy")
def match_rate(edges, binned, rank, gap):
    """The rate of a match table for a child; see `MatchTable.rate`."""
    row = binned[np.searchsorted(edges, gap, side="right")]
    last = len(row) - 1
    return row[rank] if rank <= last else row[last] * 0.5 ** (rank - last)


@no_type_check
@njit(cache=True, error_model="numpy")
def choose_ranked(logits, k, places, factors, sampling, key, ids):
    """Write the columns of the k tokens that rank best with the noise, and the match table's rates;
    return how many, −1 for bad logits. `ids` are the tokens of the columns, rising.
    """
    temperature, top_k, edges, binned = sampling
    columns = top_k_columns(logits, top_k)
    if not len(columns):
        return -1
    allowed = logits[columns].astype(np.float64)
    scaled = (allowed - allowed.max()) / temperature
    wanted = max(2, k)
    order, best = np.empty(wanted, np.int64), np.empty(wanted, np.float64)
    count = find_noisiest(scaled, ids[columns], key, order, best)
    for rank in range(min(k, count)):
        gap = best[0] - best[rank] if rank else (best[0] - best[1] if count > 1 else np.inf)
        places[rank] = columns[order[rank]]
        factors[rank] = match_rate(edges, binned, rank, gap)
    return min(k, count)


@no_type_check
@njit(cache=True, error_model="numpy")
def rank_row(logits, width, sampling, key, ids):
    """Tokens and factors of the best children after a row of logits, and how many, or −1."""
    columns, factors = np.empty(width, np.int64), np.empty(width)
    if sampling[0] == 0.0:
        count = choose_likeliest(logits, width, columns, factors)
    else:
        count = choose_ranked(logits, width, columns, factors, sampling, key, ids)
    return ids[columns[: max(count, 0)]], factors[: max(count, 0)], count
