"""What `Chance` chooses, for many rows at once and without leaving the device: every shape is known beforehand, nothing is read back.

The noise is that of `specdec_lib.chance`: integer arithmetic from one number per seed and position, which the host hashes before the first round.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from specdec_lib.chance import Sampler
from specdec_lib.chance.keyed import _key, _shifted, _signed

STEP, FIRST, SECOND = map(_signed, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))  # of SplitMix64


def noise_starts(seed: int, positions: Sequence[int]) -> Int[Tensor, " positions"]:
    """The number that the noise of each position follows from."""
    return torch.tensor([_signed(_key("noise", seed, position)) for position in positions])


def noise_of(starts: Int[Tensor, " rows"], vocabulary: int) -> Float[Tensor, "rows vocab"]:
    """Standard Gumbel noise in float64, a row per position: bit for bit that of `gumbel_noise`."""
    state = starts[:, None] + torch.arange(1, vocabulary + 1, device=starts.device) * STEP
    state = (state ^ _shifted(state, 30)) * FIRST
    state = (state ^ _shifted(state, 27)) * SECOND
    bits = _shifted(state ^ _shifted(state, 31), 12)
    return -torch.log(-torch.log((bits.double() + 0.5) * 2.0**-52))


@dataclass(frozen=True)
class Choices:
    """The decisions of a sampler under shared noise, row by row."""

    sampler: Sampler

    @property
    def needs_noise(self) -> bool:
        """Whether anything is left to chance."""
        return self.sampler.temperature > 0

    def choose(self, logits: Float[Tensor, "rows vocab"], noise: Float[Tensor, "rows vocab"] | None) -> Int[Tensor, " rows"]:
        """Per row what `Chance.choose` returns; noise is None at temperature 0."""
        return (_precise(logits) if noise is None else self._perturbed(logits, noise)).argmax(-1)

    def guess(
        self, logits: Float[Tensor, "rows vocab"], noise: Float[Tensor, "#rows vocab"] | None, k: int
    ) -> tuple[Int[Tensor, "rows k"], Bool[Tensor, "rows k"]]:
        """Per row the k "ranked" children that `TreeDraft` makes, best first, and which of them there are: its law may have fewer tokens.

        A tie goes to the lower token, as it does there.
        """
        values = log_probs(logits, Sampler(1.0)).exp() if noise is None else self._perturbed(logits, noise)
        least = 0.0 if noise is None else -torch.inf
        tokens, possible = [], []
        for _ in range(k):
            token = values.argmax(-1, keepdim=True)  # of equal ones the first
            tokens.append(token)
            possible.append(values.gather(-1, token) > least)
            values = values.scatter(-1, token, -torch.inf)
        return torch.cat(tokens, -1), torch.cat(possible, -1)

    def _perturbed(self, logits: Tensor, noise: Tensor) -> Tensor:
        return log_probs(logits, self.sampler).double() + noise


def log_probs(logits: Float[Tensor, "rows vocab"], sampler: Sampler) -> Float[Tensor, "rows vocab"]:
    """`Sampler.log_probs` of every row, at a temperature above 0; logits are taken to be finite or −inf, with a finite one in each row."""
    law = _precise(logits)
    law = (law - law.amax(-1, keepdim=True)) / sampler.temperature
    if sampler.top_k is not None and sampler.top_k < law.shape[-1]:
        law = law.masked_fill(law < law.topk(sampler.top_k).values[:, -1:], -torch.inf)
    law = law.log_softmax(-1)
    if sampler.top_p < 1:
        probs, order = law.exp().sort(descending=True, stable=True)
        beyond = probs.cumsum(-1) - probs >= sampler.top_p
        law = law.masked_fill(torch.zeros_like(beyond).scatter(-1, order, beyond), -torch.inf).log_softmax(-1)
    return law


def _precise(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()
