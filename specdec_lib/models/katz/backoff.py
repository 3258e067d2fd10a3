"""Katz back-off: from counts to probabilities of seen n-grams and back-off weights of contexts.

    P(w|h) = (c(hw) − taken) / c(h) if hw was seen, else a(h) · P(w|h′), where h′ is h without its
    oldest token

Discounts are multiples of 2⁻²⁰: row sums are exact in float64 (up to 2³³ tokens of text). Source:
Katz 1987; Chen and Goodman 1999, section 2, for absolute discounting.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float64, Int

from specdec_lib.models.katz.counts import Level, suffixes

DISCOUNTED = 5  # the largest count that Good–Turing discounts
SMOOTHING = 1  # added to every unigram count
GRAIN = 2.0**-20


def taken_counts(counts: Int[np.ndarray, " ngrams"]) -> Float64[np.ndarray, " r"]:
    """The discount of a count of 0, 1, … 5 and above, for the n-grams of one length: Good–Turing
    where all its discounts lie in (0, 1] and no N_1 … N_6 is zero, else absolute with D = N_1 /
    (N_1 + 2 N_2), or ½ where N_1 or N_2 is zero.
    """
    seen = np.bincount(np.minimum(counts, DISCOUNTED + 2), minlength=DISCOUNTED + 3)
    seen, r, taken = seen.astype(np.float64), np.arange(1, DISCOUNTED + 1), np.zeros(DISCOUNTED + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        common = (DISCOUNTED + 1) * seen[DISCOUNTED + 1] / seen[1]
        discounts = ((r + 1) * seen[r + 1] / (r * seen[r]) - common) / (1 - common)
    if seen[1 : DISCOUNTED + 2].all() and ((0 < discounts) & (discounts <= 1)).all():
        taken[1:-1] = (1 - discounts) * r
    else:
        taken[1:] = seen[1] / (seen[1] + 2 * seen[2]) if seen[1] and seen[2] else 0.5
    return np.floor(taken / GRAIN) * GRAIN


def back_off(
    levels: Sequence[Level], taken: Float64[np.ndarray, "lengths r"]
) -> tuple[list[Float64[np.ndarray, " _"]], list[Float64[np.ndarray, " _"]]]:
    """Per level, the probability of each n-gram's last token after the others, and back-off
    weights. A row whose seen continuations hold all that is left is scaled to sum to 1.
    """
    links = suffixes(levels)
    mass = (levels[0].counts + SMOOTHING).astype(np.float64)
    held, scale, left = np.array([mass.sum()]), np.array([mass.sum()]), np.zeros(1)
    probabilities, weights = [mass / mass.sum()], []
    for depth, (level, longer) in enumerate(pairwise(levels)):
        link, continued, shorter_mass = links[depth], level.fans(longer) > 0, mass
        mass = longer.counts - taken[depth][np.minimum(longer.counts, DISCOUNTED + 1)]
        seen = level.summed(shorter_mass[links[depth + 1]], longer)
        unseen = (held[link] - seen) / scale[link] + left[link]
        held, total = level.summed(mass, longer), level.counts - level.ends
        scale = np.where(unseen > 0, total, held)
        scale[~continued] = 1.0
        left = np.where(unseen > 0, total - held, 0.0) / scale
        weights.append(np.divide(left, unseen, out=np.zeros_like(left), where=unseen > 0))
        weights[-1][~continued] = 1.0
        probabilities.append(mass / scale[longer.parents])
    return probabilities, weights
