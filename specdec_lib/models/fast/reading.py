"""What a draft on the fast runtime reads of its target."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import StateKeeper
from specdec_lib.models.fast.arithmetic import NONE, layer_norm
from specdec_lib.models.fast.kernels import multiply_on_one
from specdec_lib.models.fast.panels import stack_panels
from specdec_lib.models.reading import SCALE, projections_of, reading_of

EPSILON = np.finfo(np.float32).eps  # that of PyTorch's RMS norm
States = Float[Tensor, "tokens states width"]


class TargetReader:
    """The target of a draft, and what the draft makes of its hidden states, in an edition."""

    def __init__(self, network: PreTrainedModel, target: StateKeeper, edition: str) -> None:
        draft = reading_of(network)
        weight = draft.from_target.weight.detach().float() * SCALE
        self._panels = stack_panels([([weight], None)], edition)
        self.target = target
        target.keep_states(draft.layers)

    def states(self, context: Context, positions: Sequence[int]) -> States | None:
        """The target's states of the token before each position in the context; None if all of them
        are beyond it.
        """
        count = sum(1 for position in positions if 0 < position < len(context))
        if not count:
            return None
        return self.target.states(context, max(positions[0] - 1, 0))[:count]

    def put(self, states: States, entry: int, given: np.ndarray) -> None:
        """Write what states add to the inputs of tokens, the first of them at a cache entry, to
        `given`, see `Buffers`.
        """
        tokens, layers, width = states.shape
        normed = np.empty((tokens * layers, width), np.float32)
        ones, zeros = np.ones(width, np.float32), np.zeros(width, np.float32)
        read = states.reshape(-1, width).float().numpy(force=True)
        layer_norm(read, ones, zeros, EPSILON, False, normed)
        lines = given[entry : entry + tokens]
        multiply_on_one(self._panels, 0, normed.reshape(tokens, -1), lines, NONE, False)


def reader_of(
    network: PreTrainedModel, target: StateKeeper | None, edition: str
) -> TargetReader | None:
    """The reader of a network made to read its target; None for one that is not.  Raises ValueError
    if one of both is missing.
    """
    if target is None and projections_of(network):
        raise ValueError("this draft reads its target; give it: target=…")
    return None if target is None else TargetReader(network, target, edition)
