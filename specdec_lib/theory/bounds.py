"""What no rule can exceed that keeps the target's distribution: how often one of the root's
children can be accepted, and a proposed path's probability, which bounds tokens.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64
from scipy import optimize, sparse

Distribution = Float[np.ndarray, " vocab"]
GROUPS = 48  # of tokens in a linear programme


def best_acceptance(wanted: Distribution, offered: Distribution, width: int) -> float:
    """The largest probability, over all couplings, that a token of `wanted` is among `width`
    independent draws of `offered`: the least wanted(A) + 1 − offered(A)^width over sets A of the
    smallest ratios wanted ÷ offered. Source: Sun et al. 2023 (SpecTr), optimal transport.
    """
    order = np.argsort(_ratios(wanted, offered), kind="stable")
    inside = np.cumsum(np.asarray(offered, np.float64)[order]).clip(max=1.0)
    above = np.cumsum(np.asarray(wanted, np.float64)[order])
    return float(min(1.0, (1 + above - inside**width).min()))


def best_acceptance_of_two(
    wanted: Distribution, offered: Distribution, *, distinct: bool = True, groups: int = GROUPS
) -> float:
    """The largest probability, over all couplings, that a token of `wanted` is among two draws of
    `offered` without replacement, or with it where they need not be `distinct`.

    groups    tokens of neighbouring ratios wanted ÷ offered count as one, in at most this number of
              groups, which can only raise the result

    Found by a linear programme: the largest flow from drawn pairs to tokens.
    """
    shares, pairs = _grouped(wanted, offered, distinct, groups)
    one, two = np.triu_indices(len(shares))
    drawn = np.where(one == two, pairs[one, two], pairs[one, two] + pairs[two, one])
    apart = np.flatnonzero(one != two)
    pair = np.concatenate([np.arange(len(one)), apart])  # of each flow
    token = np.concatenate([one, two[apart]])
    flows = np.arange(len(pair))
    places = np.concatenate([pair, len(one) + token]), np.tile(flows, 2)
    limits = sparse.csr_array((np.ones(2 * len(flows)), places))
    room = np.concatenate([drawn, shares])
    return float(-optimize.linprog(-np.ones(len(flows)), A_ub=limits, b_ub=room).fun)


def proposed(
    offered: Sequence[Distribution], tokens: Sequence[int], widths: Sequence[int], siblings: str
) -> float:
    """The probability that a draft proposes a path, given its distribution and the number of
    children at each node above; siblings "iid", or at most two "distinct" ones (else ValueError).
    """
    below = 1.0
    for row, token, width in reversed([*zip(offered, tokens, widths, strict=True)]):
        if siblings == "iid":
            below = 1 - (1 - float(row[token]) * below) ** width
        elif width > 2:
            raise ValueError(f'siblings are "iid", or at most two "distinct" ones, got {width}')
        else:
            odds = _odds(row)
            later = float(odds.sum() - odds[token]) if width == 2 else 0.0
            below *= min(1.0, float(row[token]) * (1 + later))
    return below


def _grouped(
    wanted: Distribution, offered: Distribution, distinct: bool, groups: int
) -> tuple[Float64[np.ndarray, " groups"], Float64[np.ndarray, "groups groups"]]:
    """The probability of each group to the target, and of each pair of them as the two draws."""
    order = np.argsort(_ratios(wanted, offered), kind="stable")
    order = order[offered[order] > 0]
    wanted = np.asarray(wanted, np.float64)[order]
    offered = np.asarray(offered, np.float64)[order]
    place = np.minimum(groups * (np.cumsum(offered) - offered / 2), groups - 1).astype(int)
    place = np.unique(place, return_inverse=True)[1]
    target, draft = (np.bincount(place, weights=one) for one in (wanted, offered))
    if not distinct:
        return target, np.outer(draft, draft)
    odds = _odds(offered)
    pairs = np.outer(np.bincount(place, weights=odds), draft)
    return target, pairs - np.diag(np.bincount(place, weights=odds * offered))


def _odds(offered: Distribution) -> Float64[np.ndarray, " vocab"]:
    """offered ÷ (1 − offered), and 0 where a token is certain: no second one is drawn then."""
    rest = 1 - np.asarray(offered, np.float64)
    return np.divide(offered, rest, out=np.zeros_like(rest), where=rest > 0)


def _ratios(wanted: Distribution, offered: Distribution) -> Float64[np.ndarray, " vocab"]:
    wanted = np.asarray(wanted, np.float64)
    offered = np.asarray(offered, np.float64)
    return np.divide(wanted, offered, out=np.full_like(wanted, np.inf), where=offered > 0)
