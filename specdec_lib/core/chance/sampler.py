"""Temperature, top-k and top-p: how logits become the distribution that is sampled."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance.candidates import Candidates, largest, warped
from specdec_lib.core.kinds import checked

LEAST_TEMPERATURE = 1e-6  # below it, logits over temperature leave what float32 holds


@checked
@dataclass(frozen=True)
class Sampler:
    """The settings that warp logits into the sampled distribution, applied in this order.

    temperature    0 is the point mass at the argmax (the lowest of a tie), whatever follows
    top_k          keep the k largest logits and ties with the last of them; None keeps all
    top_p          keep the smallest set of most likely tokens of at least this mass, in (0, 1]
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or LEAST_TEMPERATURE <= self.temperature < math.inf):
            wanted = f"0 or a finite number of at least {LEAST_TEMPERATURE}"
            raise ValueError(f"temperature must be {wanted}, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, or None for all tokens, got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")

    def log_probs(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """Log-probabilities, −inf for excluded tokens: float64 if the logits are, else float32.

        Raises ValueError if a logit is NaN or +inf, or if none is finite.
        """
        logits = checked_logits(logits)
        if self.temperature == 0:
            log_probs = torch.full_like(logits, -math.inf)
            log_probs[logits.argmax()] = 0.0
            return log_probs
        if logits.device.type == "cpu":
            tokens, found = warped(logits.numpy(), self.temperature, self.top_k, self.top_p)
            if tokens is None:
                return torch.from_numpy(found)
            whole = np.full(len(logits), -math.inf, found.dtype)
            whole[tokens] = found
            return torch.from_numpy(whole)
        return self._log_probs(logits)

    def candidates(self, logits: Float[Tensor, " vocab"]) -> Candidates:
        """The tokens that the distribution allows: logits on the CPU, a temperature above 0."""
        return warped(checked_logits(logits).numpy(), self.temperature, self.top_k, self.top_p)

    def _log_probs(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """The same where the logits are, without a look at their values."""
        log_probs = (logits - logits.max()) / self.temperature
        if self.top_k is not None and self.top_k < len(log_probs):
            log_probs = log_probs.masked_fill(
                log_probs < log_probs.topk(self.top_k).values[-1], -math.inf
            )
        log_probs = log_probs.log_softmax(-1)
        if self.top_p < 1:
            probs, order = log_probs.exp().sort(descending=True, stable=True)
            beyond = probs.cumsum(-1) - probs >= self.top_p
            log_probs[order[beyond]] = -math.inf
            log_probs = log_probs.log_softmax(-1)
        return log_probs

    def probs(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """The probabilities of the warped distribution, which sum to 1."""
        log_probs = self.log_probs(logits)
        if log_probs.device.type != "cpu":
            return log_probs.exp()
        return torch.from_numpy(np.exp(log_probs.numpy()))


def checked_logits(logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
    """The logits detached, in float64 if they are float64, else in float32."""
    logits = logits.detach()
    logits = logits if logits.dtype == torch.float64 else logits.float()
    check_highest(logits.numpy().max() if logits.device.type == "cpu" else logits.max())
    return logits


def check_highest(highest: Real | Tensor | np.floating) -> None:
    """Raise ValueError unless the largest logit is finite; it is NaN if any logit is."""
    if not math.isfinite(highest):
        wanted = "logits must hold no NaN or +inf and at least one finite value"
        raise ValueError(f"{wanted}, their maximum is {float(highest)}")


def likeliest(logits: Float[Tensor, " vocab"], k: int) -> tuple[list[int], list[float]]:
    """The k tokens of the largest logits, and their softmax probabilities at temperature 1."""
    values = checked_logits(logits).cpu().numpy()
    tokens, found = largest(values, k)
    return tokens, _unwarped(values, found)


def unwarped(logits: Float[Tensor, " vocab"], tokens: Sequence[int]) -> list[float]:
    """The probabilities of these tokens, bit-identical to those of `likeliest`."""
    values = checked_logits(logits).cpu().numpy()
    return _unwarped(values, values[list(tokens)].tolist())


def _unwarped(values: Float[np.ndarray, " vocab"], chosen: Sequence[float]) -> list[float]:
    highest = values.max()
    total = float(np.exp(values - highest).sum())
    return [math.exp(value - float(highest)) / total for value in chosen]


def best(values: Float[Tensor, " vocab"], k: int) -> tuple[list[int], list[float]]:
    """The tokens of the k largest values, and the values, best first; −inf is omitted."""
    return largest(values.detach().cpu().numpy(), k)
