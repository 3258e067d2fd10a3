"""A draft of one layer that also reads the target (Li et al. 2025, "EAGLE-3"): its input is a
token's embedding and, added to it, a projection of the target's hidden states at three layers for
the token before, or, where the target has not read that token yet, of the draft's own output.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import rms_norm
from transformers import DynamicCache, PreTrainedModel

from specdec_lib.models.network_passes import inputs_of, run_body
from specdec_lib.models.students import build_student, read_about, unpack_weights

LAYERS_READ = (3, 16, 28)  # of a target of 30: hidden states after these, counted from 0
SCALE = 0.04  # of what is added: embeddings are small, and a larger part would drown them


class ReadingDraft(nn.Module):
    """The draft's own weights, begun as a layer of the target with projections of zero.

    layers    of the target, after which its hidden states are read

    Projections are stored unscaled; what they add to an embedding is multiplied by SCALE.
    """

    def __init__(self, student: PreTrainedModel, layers: Sequence[int] = LAYERS_READ) -> None:
        super().__init__()
        width = student.config.hidden_size
        self.layers = tuple(layers)
        body: Any = student.get_decoder()
        self.layer = body.layers[0]
        self.norm = body.norm
        self.from_target = nn.Linear(len(layers) * width, width, bias=False)
        self.from_own = nn.Linear(width, width, bias=False)
        nn.init.zeros_(self.from_target.weight)
        nn.init.zeros_(self.from_own.weight)

    def states_of_target(
        self, hidden: Sequence[Float[Tensor, "batch length width"]]
    ) -> Float[Tensor, "batch length width"]:
        """What the target's hidden states of the token before add to each position's input: those
        of each layer normalised to a root mean square of 1; nothing at the first position.
        """
        return shifted(self.added_by_target(torch.stack([*hidden], dim=-2)))

    def states_of_own(
        self, output: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch length width"]:
        """The same of the draft's own normed output at the token before."""
        return shifted(self.added_by_own(output))

    def added_by_target(
        self, states: Float[Tensor, "*tokens states width"]
    ) -> Float[Tensor, "*tokens width"]:
        """What a token's hidden states add to the input of the token after it."""
        normed = rms_norm(states.to(self.from_target.weight.dtype), states.shape[-1:])
        return self.from_target(normed.flatten(-2)) * SCALE

    def added_by_own(
        self, output: Float[Tensor, "*tokens width"]
    ) -> Float[Tensor, "*tokens width"]:
        """What the draft's own normed output at a token adds to the input of a guess after it."""
        return self.from_own(output) * SCALE


def reading_of(network: PreTrainedModel) -> ReadingDraft:
    """The part `reading` of a network.  Raises ValueError if it has none."""
    part = getattr(network, "reading", None)
    if not isinstance(part, ReadingDraft):
        raise ValueError("a draft that reads its target is a network with the part `reading`")
    return part


def reading_network(target: PreTrainedModel, path: Path) -> PreTrainedModel:
    """A network of one layer of the target, with its embedding and head, and the part `reading`
    with the stored weights of a file.  Raises ValueError as `load_reading`.
    """
    network = build_student(target, [0])
    draft = ReadingDraft(network, read_about(path)["layers_read"])
    network.add_module("reading", draft.to(target.device, target.dtype))
    load_reading(draft, path)
    return network


def projections_of(network: PreTrainedModel) -> int:
    """The weights through which a network reads its target; 0 of one that does not."""
    part = getattr(network, "reading", None)
    if not isinstance(part, ReadingDraft):
        return 0
    return part.from_target.weight.numel() + part.from_own.weight.numel()


class ReadLevel(NamedTuple):
    """New rows that are computed at once: from the first up to the stop, and how many of them, the
    last ones, need logits.
    """

    first: int
    stop: int
    keep: int


def levels_of(positions: Sequence[int], length: int, keep: int) -> list[ReadLevel]:
    """The levels of new rows, where those of a context of so many tokens come first, and then the
    guesses, level by level: what is added to a guess is known when the one above it was read.
    """
    begins = [
        row for row in range(1, len(positions)) if length <= positions[row] != positions[row - 1]
    ]
    levels = []
    for first, stop in pairwise([0, *begins, len(positions)]):
        kept = keep - (len(positions) - stop)
        levels.append(ReadLevel(first, stop, min(kept, stop - first)))
    return levels


def load_reading(draft: ReadingDraft, path: Path) -> None:
    """Give a draft its stored weights.  Raises ValueError if they are of another kind or size."""
    found = unpack_weights(path)
    wanted = {name: weights.shape for name, weights in draft.named_parameters()}
    if wanted != {name: weights.shape for name, weights in found.items()}:
        raise ValueError(f"{path} holds other weights than a reading draft of this target has")
    draft.load_state_dict(found)


def shifted(rows: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
    """Each position's row at the next position, and zeros at the first."""
    return torch.cat([torch.zeros_like(rows[:, :1]), rows[:, :-1]], dim=1)


def unrolled(
    draft: ReadingDraft,
    network: PreTrainedModel,
    ids: Int[Tensor, "batch length"],
    hidden: Sequence[Float[Tensor, "batch length width"]],
    steps: int,
    window: int,
) -> list[Float[Tensor, "batch length width"]]:
    """The draft's normed output at every position, as its first, second … guess in a row.

    hidden     of the target, after the layers that the draft reads
    window     tokens that a position sees, its own among them

    At step k a position stands k − 1 guesses after the last token that the target has read the
    predecessor of: it sees the keys of the first step up to there, and the keys of the later
    steps on the k − 1 positions in between, as an incremental pass along the text would.
    Source: Li et al. 2025, section 3.2 (training-time test), along the tokens of the text.
    """
    body: Any = network.get_decoder()
    embedded = inputs_of(body, ids).float()
    positions = torch.arange(ids.shape[1], device=ids.device)
    behind = positions[:, None] - positions[None, :]
    cache = DynamicCache()  # the keys of one step after the other
    outputs: list[Tensor] = []
    for step in range(steps):
        added = draft.states_of_target(hidden) if step == 0 else draft.states_of_own(outputs[-1])

        def sees(own: int | None, step: int = step) -> Bool[Tensor, "length keys"]:
            near = behind < min(window, own or window)
            later = [behind == step - number for number in range(1, step + 1)]
            return torch.cat([(behind >= step) & near, *later], dim=1)

        inputs = embedded + added
        outputs.append(run_body(body, inputs, positions[None], sees, cache=cache))
    return outputs
