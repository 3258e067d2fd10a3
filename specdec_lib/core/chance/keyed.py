"""All randomness, in two independent streams: Gumbel noise keyed by (seed, absolute position), the
same for every model that looks there; coins and draws for `reject` keyed by (seed, use, nesting,
position of the root, child ranks from the root), which `enumerated` enumerates instead.
"""

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int

from specdec_lib.core.chance.sampler import Candidates, PerToken, Sampler, checked_logits, largest
from specdec_lib.core.kinds import checked, unchecked

Slots = tuple[int, ...]  # child ranks from the root down to a node; () is the root
Nesting = tuple[tuple[str, Slots], ...]


@checked
@dataclass(frozen=True)
class Chance:
    """The random numbers of a generation: every decision is a pure function of these
    fields and the arguments of the call.

    seed       any whole number; two prompts need two seeds, or they share noise
    nesting    names and numbers of the nested drafts, outermost first; different nestings have
               independent coins and draws; empty for the outermost draft and the target
    """

    seed: int
    sampler: Sampler = Sampler()
    nesting: Nesting = ()

    def __post_init__(self) -> None:
        # a NumPy integer prints, and so hashes, differently
        object.__setattr__(self, "seed", int(self.seed))

    def choose(self, logits: PerToken, position: int) -> int:
        """The token at `position`: at temperature 0 the argmax, else a Gumbel-max sample."""
        tokens, values = self._perturbed(logits, position)
        place = int(values.argmax())
        return place if tokens is None else int(tokens[place])

    def rank(self, logits: PerToken, position: int, k: int) -> tuple[list[int], list[float]]:
        """The k best tokens under the same noise, of which the first is what `choose` returns, and
        each one's gap to the best in nats; fewer where fewer are possible. At temperature 0 the
        noise is 0, and log-probabilities are unwarped. Source: Kool et al. 2019 (Gumbel-top-k).
        """
        allowed, perturbed = self._perturbed(logits, position)
        places, values = largest(perturbed, k)
        tokens = places if allowed is None else allowed[places].tolist()
        return tokens, [values[0] - value for value in values]

    def gaps(self, logits: PerToken, position: int, tokens: Sequence[int]) -> list[float]:
        """How far each token's noisy log-probability lies below the best one's, in nats; inf if the
        warped distribution excludes the token. At temperature 0 there is no noise.
        """
        allowed, perturbed = self._perturbed(logits, position)
        values = np.full(len(logits), -math.inf)
        values[slice(None) if allowed is None else allowed] = perturbed
        return (perturbed.max() - values[list(tokens)]).tolist()

    def coin(self, probability: float, root_position: int, slots: Slots) -> bool:
        """Whether a test of this probability succeeds, for the node at `slots` below this root."""
        return self.uniform("coin", root_position, slots) < probability

    def draw(self, use: str, probs: PerToken, root_position: int, slots: Slots) -> int:
        """A token drawn from `probs`.

        use    "sibling" for a draft's child at `slots`, "emit" for the correction or bonus below
               the node at `slots`
        """
        cumulative = probs.double().cumsum(-1)
        aim = self.uniform(use, root_position, slots) * cumulative[-1]
        token = int(torch.searchsorted(cumulative, aim, right=True))
        return min(token, int(probs.nonzero()[-1]))  # by rounding the aim may be the whole sum

    def inner(self, part: str, slots: Slots = ()) -> "Chance":
        """A Chance for a part of a composite draft: the same noise, independent coins and draws. A
        draft that asks a part at several roots in one round adds the root's position to `slots`.
        """
        return unchecked(type(self), **vars(self) | {"nesting": (*self.nesting, (part, slots))})

    def noise(self, position: int, tokens: Sequence[int]) -> list[float]:
        """The noise that `choose` and `rank` add to these tokens' log-probabilities, in nats."""
        if self.sampler.temperature == 0:
            return [0.0] * len(tokens)
        return _noise(self.noise_key(position), np.array(tokens, dtype=np.int64)).tolist()

    def uniform(self, use: str, root_position: int, slots: Slots) -> float:
        """The uniform number in [0, 1) that decides a use: "coin", "sibling" or "emit"."""
        key = _key("uniform", self.seed, use, self.nesting, int(root_position), slots)
        return (key >> 11) * 2.0**-53

    def noise_key(self, position: int) -> int:
        """The 64-bit key of the Gumbel noise at a position; the compiled runtime uses the same."""
        return _key("noise", self.seed, int(position))

    def _perturbed(self, logits: PerToken, position: int) -> Candidates:
        """Allowed tokens; log-probabilities plus noise, or unwarped logits at temperature 0."""
        if self.sampler.temperature == 0:
            return None, checked_logits(logits)
        key = self.noise_key(position)
        tokens, log_probs = self.sampler.candidates(logits)
        noise = _whole_noise(key, len(logits)) if tokens is None else _noise(key, tokens)
        return tokens, log_probs.astype(np.float64) + noise


def _noise(key: int, tokens: Int[np.ndarray, " some"]) -> Float64[np.ndarray, " some"]:
    """Standard Gumbel noise of these tokens, from 52 bits of SplitMix64 (Steele et al. 2014)."""
    steps = tokens.astype(np.uint64) + np.uint64(1)
    state = np.uint64(key) + steps * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (state ^ (state >> np.uint64(31))) >> np.uint64(12)
    return -np.log(-np.log((bits.astype(np.float64) + 0.5) * 2.0**-52))


@functools.lru_cache(maxsize=64)
def _whole_noise(key: int, vocabulary: int) -> Float64[np.ndarray, " vocab"]:
    return _noise(key, np.arange(vocabulary))


def _key(*parts: object) -> int:
    """64 random-looking bits that depend on every part."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
