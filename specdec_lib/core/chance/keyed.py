"""Choose tokens from a distribution, reproducibly for a seed and a position.

All randomness of the library flows through `Chance`. Two independent streams: Gumbel noise keyed by
(seed, absolute position), the same for every model that looks at that position; and coins and draws
for `reject`, keyed by (seed, use, nesting, position of the root, child ranks from the root).
Neither depends on the order of calls, on batch shape or on the device.

Source: the noise is the Gumbel-max trick with a counter-based generator (SplitMix64, Steele et al.
2014).
"""

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from specdec_lib.core.chance.candidates import Candidates, largest
from specdec_lib.core.chance.sampler import Sampler, check_highest, checked

Slots = tuple[int, ...]  # child ranks from the root down to a node; () is the root
Nesting = tuple[tuple[str, Slots], ...]


@dataclass(frozen=True)
class Chance:
    """A seed and a sampler, and every random decision that follows from them.

    seed       any whole number, NumPy's included; two prompts need two seeds, or they share noise
    nesting    path of (part, slots) names through nested drafts, outermost first, which separates
               their coins and draws; empty for the outermost draft and the target
    """

    seed: Integral
    sampler: Sampler = Sampler()
    nesting: Nesting = ()

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral):
            raise ValueError(f"a seed is a whole number, got {self.seed!r}")
        object.__setattr__(
            self, "seed", int(self.seed)
        )  # a NumPy integer prints, and so hashes, differently

    def choose(self, logits: Float[Tensor, " vocab"], position: int) -> int:
        """Return the token chosen at an absolute position: a sample of the warped distribution.

        All models that have the same distribution there choose the same token.
        """
        if self.sampler.temperature == 0 and logits.device.type == "cpu":
            values = (
                logits.detach().numpy()
                if logits.dtype == torch.float32
                else logits.detach().double().numpy()
            )
            place = int(values.argmax())
            check_highest(values[place])
            return place
        tokens, values = self._perturbed(logits, position)
        place = int(values.argmax())
        return place if tokens is None else int(tokens[place])

    def rank(
        self, logits: Float[Tensor, " vocab"], position: int, k: int
    ) -> tuple[list[int], list[float]]:
        """Return the k best tokens for `position` under the same noise, and each one's gap to the
        best in nats.

        The first is what `choose` returns; fewer than k come back where the warped
        distribution has fewer tokens. Temperature 0 has noise 0, so these are the k largest logits,
        and the gaps are those of unwarped log-probabilities.
        Source: Kool et al. 2019 (Gumbel-top-k is a sample without replacement).
        """
        allowed, perturbed = self._perturbed(logits, position)
        places, values = largest(perturbed, k)
        return places if allowed is None else allowed[places].tolist(), [
            values[0] - value for value in values
        ]

    def gaps(
        self, logits: Float[Tensor, " vocab"], position: int, tokens: Sequence[int]
    ) -> list[float]:
        """Return, for each token, how far its noisy log-probability lies below that of the chosen
        token, in nats; inf if the warped distribution excludes it.

        At temperature 0 these are gaps of unwarped log-probabilities.
        """
        allowed, perturbed = self._perturbed(logits, position)
        best_value = float(perturbed.max())
        known = (
            None
            if allowed is None
            else dict(zip(allowed.tolist(), perturbed.tolist(), strict=True))
        )
        return [
            best_value - (float(perturbed[token]) if known is None else known.get(token, -math.inf))
            for token in tokens
        ]

    def rank_among(
        self,
        tokens: Sequence[int],
        log_probs: Sequence[float],
        position: int,
        k: int,
        *,
        vocabulary: int,
    ) -> tuple[list[int], list[float]]:
        """`rank` for a distribution over a few known tokens, without a dense row.

        log_probs    of these tokens, warped already; at temperature 0 unwarped
        """
        if self.sampler.temperature > 0:
            noise = _noise(self.seed, int(position), np.array(tokens)).tolist()
            log_probs = [value + one for value, one in zip(log_probs, noise, strict=True)]
        ordered = sorted(zip((-value for value in log_probs), tokens, strict=True))[:k]
        found = [(token, -negative) for negative, token in ordered if negative < math.inf]
        return [token for token, _ in found], [found[0][1] - value for _, value in found]

    def coin(self, probability: float, committed: int, slots: Slots) -> bool:
        """Return True with this probability, for the child at `slots` in the tree whose root is at
        position `committed`; a probability of 0 is never True.
        """
        return self._uniform("coin", committed, slots) < probability

    def draw(self, use: str, probs: Float[Tensor, " vocab"], committed: int, slots: Slots) -> int:
        """Return a token drawn from `probs`, by inversion of its cumulative sums.

        use    "sibling" for a draft's child at `slots`, "emit" for the correction or bonus below
               the node at `slots`

        Raises ValueError if `use` is another word.
        """
        if use not in ("sibling", "emit"):
            raise ValueError(f'a draw is for "sibling" or "emit", got {use!r}')
        cumulative = probs.double().cumsum(-1)
        aim = self._uniform(use, committed, slots) * cumulative[-1]
        return int(
            torch.searchsorted(cumulative, aim, right=True).clamp(max=int(probs.nonzero()[-1]))
        )

    def inner(self, part: str, slots: Slots = ()) -> "Chance":
        """Return a Chance for a part of a composite draft: the same Gumbel noise, but independent
        coins and draws.
        """
        longer = object.__new__(type(self))  # all but the nesting was checked before
        vars(longer).update(vars(self) | {"nesting": (*self.nesting, (part, slots))})
        return longer

    def noise(self, position: int, tokens: Sequence[int]) -> list[float]:
        """Return the noise that `choose` and `rank` add to these tokens' log-probabilities, in
        nats; 0 at temperature 0.
        """
        return (
            [0.0] * len(tokens)
            if self.sampler.temperature == 0
            else _noise(self.seed, int(position), np.array(tokens, dtype=np.int64)).tolist()
        )

    def uniform(self, use: str, committed: int, slots: Slots) -> float:
        """Return the uniform number in [0, 1) that decides a use: "coin", "sibling" or "emit".

        Raises ValueError if `use` is another word.
        """
        if use not in ("coin", "sibling", "emit"):
            raise ValueError(f'a number is behind a "coin", a "sibling" or to "emit", got {use!r}')
        return self._uniform(use, committed, slots)

    def noise_key(self, position: int) -> int:
        """Return the 64 bits that all noise of a position follows from.

        A compiled runtime derives the same noise from them as `gumbel_noise`.
        """
        return _key("noise", self.seed, int(position))

    def _perturbed(self, logits: Float[Tensor, " vocab"], position: int) -> Candidates:
        """The compared values: unwarped logits at temperature 0, else log-probabilities plus noise,
        of the tokens that the distribution allows.
        """
        if self.sampler.temperature == 0:
            return Candidates(None, checked(logits).cpu().numpy())
        if logits.device.type != "cpu":
            log_probs = self.sampler.log_probs(logits)
            return Candidates(
                None,
                (
                    log_probs.double()
                    + gumbel_noise(self.seed, int(position), len(log_probs), str(log_probs.device))
                )
                .cpu()
                .numpy(),
            )
        tokens, log_probs = self.sampler.candidates(logits)
        noise = (
            _whole_noise(self.seed, int(position), len(log_probs))
            if tokens is None
            else _noise(self.seed, int(position), tokens)
        )
        return Candidates(tokens, log_probs.astype(np.float64) + noise)

    def _uniform(self, use: str, committed: int, slots: Slots) -> float:
        return (
            _key("uniform", self.seed, use, self.nesting, int(committed), slots) >> 11
        ) * 2.0**-53


def _noise(
    seed: int, position: int, tokens: Int[np.ndarray, " some"]
) -> Float64[np.ndarray, " some"]:
    """Standard Gumbel noise of these tokens at a position, from 52 bits of SplitMix64 each."""
    state = np.uint64(_key("noise", seed, position)) + (
        tokens.astype(np.uint64) + np.uint64(1)
    ) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = (state ^ (state >> np.uint64(31))) >> np.uint64(12)
    return -np.log(-np.log((bits.astype(np.float64) + 0.5) * 2.0**-52))


@functools.lru_cache(maxsize=64)
def _whole_noise(seed: int, position: int, vocabulary: int) -> Float64[np.ndarray, " vocab"]:
    return _noise(seed, position, np.arange(vocabulary))


@functools.lru_cache(maxsize=64)
def gumbel_noise(
    seed: int, position: int, vocabulary: int, device: str = "cpu"
) -> Float[Tensor, " vocab"]:
    """Standard Gumbel noise, float64, for every token of one position; equal on every device."""
    return torch.tensor(_whole_noise(seed, position, vocabulary), device=device)  # a copy


def _key(*parts: object) -> int:
    """64 random-looking bits that depend on every part."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
