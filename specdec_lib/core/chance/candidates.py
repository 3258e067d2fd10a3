"""The tokens that a warped distribution allows, for logits on the CPU: in NumPy, because PyTorch
wakes threads for each call.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Candidates(NamedTuple):
    """The tokens that a distribution allows, and the log-probability of each.

    tokens       token numbers [kept], ascending; None where the whole vocabulary is allowed
    log_probs    normalised, natural logarithm [kept]
    """

    tokens: Int[np.ndarray, " kept"] | None
    log_probs: Float[np.ndarray, " kept"]


def warped(
    logits: Float[np.ndarray, " vocab"], temperature: float, top_k: int | None, top_p: float
) -> Candidates:
    """The distribution of logits under a temperature above 0, then top-k with ties, then top-p."""
    tokens, log_probs = None, logits
    if top_k is not None and top_k < len(log_probs):
        finite = log_probs[log_probs > -math.inf]
        least = _at_place(finite, top_k) if top_k < len(finite) else -math.inf
        tokens = np.flatnonzero(log_probs >= least)
        log_probs = log_probs[tokens]
    log_probs = _normalised((log_probs - log_probs.max()) / log_probs.dtype.type(temperature))
    if top_p < 1:
        probs = np.exp(log_probs)
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        kept = np.sort(order[before < top_p])
        tokens = kept if tokens is None else tokens[kept]
        log_probs = _normalised(log_probs[kept])
    return Candidates(tokens, log_probs)


def largest(values: Float[np.ndarray, " n"], k: int) -> tuple[list[int], list[float]]:
    """Indices and values of the k largest, best first; a tie to the lower index, −inf omitted."""
    if k == 1:
        place = int(values.argmax())
        return ([place], [float(values[place])]) if values[place] > -math.inf else ([], [])
    places = np.flatnonzero(values > -math.inf)
    found = values[places]
    if k < len(found):  # after −inf is out: partitioning very many equal values is slow
        kept = np.flatnonzero(found >= _at_place(found, k))
        places, found = places[kept], found[kept]
    order = np.argsort(-found, kind="stable")[:k]
    return places[order].tolist(), found[order].tolist()


def _at_place(values: Float[np.ndarray, " n"], k: int) -> np.floating:
    return np.partition(values, len(values) - k)[len(values) - k]


def _normalised(log_probs: Float[np.ndarray, " kept"]) -> Float[np.ndarray, " kept"]:
    largest_one = log_probs.max()
    return log_probs - (largest_one + np.log(np.exp(log_probs - largest_one).sum()))
