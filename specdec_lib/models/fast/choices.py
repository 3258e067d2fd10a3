"""Compiled choice of a node's children from its logits, greedy or with Gumbel noise."""

import numpy as np

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.tree import MatchTable
from specdec_lib.models.fast.arithmetic import LINEAR_IN_LANES, exponential
from specdec_lib.models.fast.tiles import compiled

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
    """Raise ValueError where a compiled call has found nothing, which it does for bad logits."""
    if count < 1:
        raise ValueError(
            f"the logits of {name} must hold no NaN or +inf and at least one finite value"
        )


@compiled()
def insert(value, place, count, k, places, found):
    """Sort a value into the `count` largest, at most k, behind equal ones; return the new count."""
    if count == k and value <= found[count - 1]:
        return count
    at = count if count < k else k - 1
    while at and found[at - 1] < value:
        found[at] = found[at - 1]
        places[at] = places[at - 1]
        at -= 1
    found[at] = value
    places[at] = place
    return min(count + 1, k)


@compiled()
def find_largest(values, k):
    """The places of the k largest values above −inf, and these, best first; none if one is NaN."""
    places = np.empty(k, np.int64)
    found = np.empty(k, values.dtype)
    count = 0
    for place in range(len(values)):
        value = values[place]
        if value != value:
            return places[:0], found[:0]
        if value > -np.inf:
            count = insert(value, place, count, k, places, found)
    return places[:count], found[:count]


@compiled(LINEAR_IN_LANES)
def sum_exponentials(values, highest):
    """The sum of e to each value less the highest."""
    total = np.float32(0.0)
    for one in range(len(values)):
        total += exponential(values[one] - highest)
    return total


@compiled()
def noise_bits(key, token):
    """The 52 bits that give the noise of `core.chance` for a token."""
    state = key + (np.uint64(token) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (state ^ (state >> np.uint64(31))) >> np.uint64(12)


@compiled()
def choose_likeliest(logits, k):
    """The columns of the k likeliest tokens and unwarped probabilities; none for bad logits."""
    columns, found = find_largest(logits, k)
    if not len(found) or not np.isfinite(found[0]):
        return columns[:0], np.empty(0)
    factors = np.empty(len(found))
    total = sum_exponentials(logits, found[0])
    for one in range(len(found)):
        factors[one] = np.exp(np.float64(found[one]) - np.float64(found[0])) / total
    return columns, factors


@compiled()
def gaps_of(sums):
    """How far each of the falling sums is behind the first, and the first's lead."""
    gaps = sums[0] - sums
    gaps[0] = gaps[1] if len(gaps) > 1 else np.inf
    return gaps


@compiled()
def rank_noisiest(scaled, tokens, k, key):
    """The places of the k largest sums of a number of at most 0 and its token's noise, best first,
    and their gaps. As −log(−log u) ≤ −log(1 − u), most tokens lose without two logarithms.
    """
    wanted = max(2, k)
    count = 0
    bar = 0.0
    places = np.empty(wanted, np.int64)
    found = np.empty(wanted, np.float64)
    for place in range(len(scaled)):
        bits = np.float64(noise_bits(key, tokens[place])) + 0.5
        weight = exponential(np.float32(scaled[place]))  # with an error far below 1 in 10,000
        if count == wanted and (1.0 - bits * 2.0**-52) * bar > weight * 1.0001:
            continue
        value = scaled[place] - np.log(-np.log(bits * 2.0**-52))
        count = insert(value, place, count, wanted, places, found)
        bar = np.exp(found[count - 1])
    return places[: min(k, count)], gaps_of(found[:count])[:k]


@compiled()
def child_rates(match, gaps):
    """The rates of a match table for children with these gaps; see `MatchTable.rate`."""
    edges, binned = match
    rates = np.empty(len(gaps))
    last = binned.shape[1] - 1
    for rank in range(len(gaps)):
        row = binned[np.searchsorted(edges, gaps[rank], side="right")]
        rates[rank] = row[rank] if rank <= last else row[last] * 0.5 ** (rank - last)
    return rates


@compiled()
def rank_row(logits, width, sampling, key, ids):
    """Tokens of the best children after a row of logits, none for bad ones, and factors: match
    rates with noise, else probabilities. `ids` are the columns' tokens; of equals the first wins.
    """
    temperature, top_k, edges, binned = sampling
    if temperature == 0.0:
        columns, factors = choose_likeliest(logits, width)
        return ids[columns], factors
    columns, found = find_largest(logits, max(1, top_k))
    if not len(found) or not np.isfinite(found[0]):
        return columns[:0], np.empty(0)
    columns = np.flatnonzero(logits >= found[-1] if top_k else logits > -np.inf)
    allowed = logits[columns].astype(np.float64)
    tokens = ids[columns]
    order, gaps = rank_noisiest((allowed - allowed.max()) / temperature, tokens, width, key)
    return tokens[order], child_rates((edges, binned), gaps)
