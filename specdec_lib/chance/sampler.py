"""Temperature, top-k and top-p: logits become the law that is sampled."""

import math
from dataclasses import dataclass
from numbers import Integral

import torch
from jaxtyping import Float
from torch import Tensor

LEAST_TEMPERATURE = 1e-6  # below it, logits over temperature leave what float32 holds


@dataclass(frozen=True)
class Sampler:
    """How logits are warped into the law that is sampled: temperature, then top-k, then top-p.

    temperature    0 is the point mass at the argmax (the lowest token of a tie)
    top_k          keep the k largest logits and whatever ties with the last of them; None keeps all
    top_p          keep the smallest set of most likely tokens that holds at least this mass, in (0, 1]

    Raises ValueError if a value is out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or LEAST_TEMPERATURE <= self.temperature < math.inf):
            raise ValueError(f"temperature must be 0 or a finite number of at least {LEAST_TEMPERATURE}, got {self.temperature}")
        if self.top_k is not None and (isinstance(self.top_k, bool) or not isinstance(self.top_k, Integral) or self.top_k < 1):
            raise ValueError(f"top_k must be a whole number of at least 1, or None for all tokens, got {self.top_k!r}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")

    def log_probs(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """The warped law's logarithm, −inf for excluded tokens; float64 if the logits are, else float32.

        Raises ValueError if a logit is NaN or +inf, or if none is finite.
        """
        logits = checked(logits)
        if self.temperature == 0:
            law = torch.full_like(logits, -math.inf)
            law[logits.argmax()] = 0.0
            return law
        law = (logits - logits.max()) / self.temperature
        if self.top_k is not None and self.top_k < len(law):
            law = law.masked_fill(law < law.topk(self.top_k).values[-1], -math.inf)
        law = law.log_softmax(-1)
        if self.top_p < 1:
            probs, order = law.exp().sort(descending=True, stable=True)
            beyond = probs.cumsum(-1) - probs >= self.top_p
            law[order[beyond]] = -math.inf
            law = law.log_softmax(-1)
        return law

    def probs(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """The warped law itself: not negative, sums to 1."""
        return self.log_probs(logits).exp()


def checked(logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
    """Logits as float64 if they are, else float32.  Raises ValueError if one is NaN or +inf, or if none is finite."""
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if not math.isfinite(logits.max()):
        raise ValueError(f"logits must hold no NaN or +inf and at least one finite value, their maximum is {float(logits.max())}")
    return logits


def best(values: Float[Tensor, " vocab"], k: int) -> tuple[list[int], list[float]]:
    """The tokens of the k largest values and the values, best first; a tie goes to the lower token, −inf is left out."""
    least = values.topk(min(k, len(values))).values[-1]
    tokens = (values >= least).nonzero().flatten()
    ordered, places = values[tokens].sort(descending=True, stable=True)
    found = [(token, value) for token, value in zip(tokens[places[:k]].tolist(), ordered[:k].tolist(), strict=True) if value > -math.inf]
    return [token for token, _ in found], [value for _, value in found]
