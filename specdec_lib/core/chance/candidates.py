"""The tokens that a warped law allows, and their log-probabilities, where logits lie on the CPU: a
few dozen numbers instead of a vocabulary.

NumPy, because on rows of a few thousand numbers its calls cost a tenth of PyTorch's, whose threads
are woken for each.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Candidates(NamedTuple):
    """What a law allows: tokens, rising (None where it allows the whole vocabulary), and the
    logarithm of each one's probability.
    """

    tokens: Int[np.ndarray, " kept"] | None
    log_probs: Float[np.ndarray, " kept"]


def warped(
    logits: Float[np.ndarray, " vocab"], temperature: float, top_k: int | None, top_p: float
) -> Candidates:
    """The law of a temperature above 0, top-k (with whatever ties with the last of them) and top-p."""
    tokens, law = None, logits
    if top_k is not None and top_k < len(law):
        tokens = np.flatnonzero(law >= np.partition(law, len(law) - top_k)[len(law) - top_k])
        law = law[tokens]
    law = _normalised((law - law.max()) / law.dtype.type(temperature))
    if top_p < 1:
        probs = np.exp(law)
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        kept = np.sort(order[before < top_p])
        tokens = kept if tokens is None else tokens[kept]
        law = _normalised(law[kept])
    return Candidates(tokens, law)


def largest(values: Float[np.ndarray, " n"], k: int) -> tuple[list[int], list[float]]:
    """The places of the k largest values and the values, best first; a tie goes to the lower place,
    −inf is left out.
    """
    if k == 1:
        place = int(values.argmax())
        return ([place], [float(values[place])]) if values[place] > -math.inf else ([], [])
    if k < len(values):
        places = np.flatnonzero(values >= np.partition(values, len(values) - k)[len(values) - k])
    else:
        places = np.arange(len(values))
    found = values[places]
    order = np.argsort(-found, kind="stable")[:k]
    pairs = [
        (place, value)
        for place, value in zip(places[order].tolist(), found[order].tolist(), strict=True)
        if value > -math.inf
    ]
    return [place for place, _ in pairs], [value for _, value in pairs]


def _normalised(law: Float[np.ndarray, " kept"]) -> Float[np.ndarray, " kept"]:
    largest_one = law.max()
    return law - (largest_one + np.log(np.exp(law - largest_one).sum()))
