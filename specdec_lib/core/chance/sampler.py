"""From logits to a distribution, in NumPy on the CPU: PyTorch wakes threads for each call."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from specdec_lib.core.kinds import Within, checked

GROUP = 64  # values whose maximum is taken first, where the k largest are sought
LEAST_TEMPERATURE = 1e-6  # below it, logits over temperature leave what float32 holds
PerToken = Float[Tensor, " vocab"]
"""Logits of one position, or a distribution."""
Candidates = tuple[Int[np.ndarray, " kept"] | None, Float[np.ndarray, " kept"]]
"""The allowed tokens, ascending (None: the whole vocabulary), and their log-probabilities."""


@checked
@dataclass(frozen=True)
class Sampler:
    """The settings that warp logits into the sampled distribution, applied in this order.

    temperature    0, the point mass at the argmax (the lowest of a tie), or at least 1e-6
    top_k          keep the k largest logits and ties with the last of them; None keeps all
    top_p          keep the smallest set of most likely tokens of at least this mass
    """

    temperature: float = 0.0
    top_k: Annotated[int, Within(1)] | None = None
    top_p: Annotated[float, Within(2.0**-50, 1)] = 1.0

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or LEAST_TEMPERATURE <= self.temperature < math.inf):
            raise ValueError(
                f"temperature must be 0 or a finite number of at least {LEAST_TEMPERATURE},"
                f" got {self.temperature}"
            )

    def probs(self, logits: PerToken) -> PerToken:
        """The warped distribution; ValueError if a logit is NaN or +inf, or none is finite."""
        tokens, log_probs = self.candidates(logits)
        probs = np.zeros(len(logits), log_probs.dtype)
        probs[slice(None) if tokens is None else tokens] = np.exp(log_probs)
        return torch.from_numpy(probs).to(logits.device)

    def candidates(self, logits: PerToken) -> Candidates:
        """The warped distribution's tokens and log-probabilities; raises ValueError as `probs`."""
        tokens = None
        log_probs = checked_logits(logits)
        if self.temperature == 0:
            return np.array([log_probs.argmax()]), np.zeros(1, log_probs.dtype)
        if self.top_k is not None and self.top_k < len(log_probs):
            tokens = np.flatnonzero(log_probs >= _kth_largest(log_probs, self.top_k))
            log_probs = log_probs[tokens]
        temperature = log_probs.dtype.type(self.temperature)
        log_probs = _normalised((log_probs - log_probs.max()) / temperature)
        if self.top_p < 1:
            probs = np.exp(log_probs)
            order = np.argsort(-probs, kind="stable")
            before = np.cumsum(probs[order]) - probs[order]
            kept = np.sort(order[before < self.top_p])
            tokens = kept if tokens is None else tokens[kept]
            log_probs = _normalised(log_probs[kept])
        return tokens, log_probs


def checked_logits(logits: PerToken) -> Float[np.ndarray, " vocab"]:
    """The logits on the CPU, in float32 or float64; ValueError unless the largest is finite."""
    values = (logits if logits.dtype == torch.float64 else logits.float()).numpy(force=True)
    highest = values.max()  # NaN if any logit is
    if not math.isfinite(highest):
        raise ValueError(
            "logits must hold no NaN or +inf and at least one finite value,"
            f" their maximum is {float(highest)}"
        )
    return values


def unwarped(logits: PerToken, tokens: Sequence[int]) -> list[float]:
    """The tokens' softmax probabilities: temperature 1, no top-k or top-p."""
    values = checked_logits(logits)
    highest = values.max()
    total = float(np.exp(values - highest).sum())
    return [math.exp(value - float(highest)) / total for value in values[list(tokens)].tolist()]


def largest(values: Float[np.ndarray, " n"], k: int) -> tuple[list[int], list[float]]:
    """Indices and values of the k largest, best first; a tie to the lower index, −inf omitted."""
    if k == 1:
        place = int(values.argmax())
        return ([place], [float(values[place])]) if values[place] > -math.inf else ([], [])
    places = np.flatnonzero(values > -math.inf)
    found = values[places]
    if k < len(found):
        kept = np.flatnonzero(found >= _kth_largest(found, k))
        places = places[kept]
        found = found[kept]
    order = np.argsort(-found, kind="stable")[:k]
    return places[order].tolist(), found[order].tolist()


def _kth_largest(values: Float[np.ndarray, " n"], k: int) -> np.floating:
    """The k-th largest value. It is not below the k-th largest of the maxima of disjoint groups, so
    that only values from there on are sorted.
    """
    groups = len(values) // GROUP
    if k < groups:
        highest = values[: groups * GROUP].reshape(GROUP, groups).max(axis=0)
        values = values[values >= np.partition(highest, groups - k)[groups - k]]
    return np.partition(values, len(values) - k)[len(values) - k]


def _normalised(log_probs: Float[np.ndarray, " kept"]) -> Float[np.ndarray, " kept"]:
    largest_one = log_probs.max()
    return log_probs - (largest_one + np.log(np.exp(log_probs - largest_one).sum()))
