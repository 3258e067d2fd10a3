"""Sampling: from logits to a distribution, and from a distribution and a seed to a token."""

from specdec_lib.core.chance.enumerated import EveryBranch, every_outcome
from specdec_lib.core.chance.keyed import Chance, Slots
from specdec_lib.core.chance.sampler import PerToken, Sampler, largest, unwarped
