"""The head of a draft, where it spends most time, cut to frequent tokens and the prompt's own.

Source: Zhao et al. 2025 ("FR-Spec").
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel


class CutHead(nn.Module):
    """The rows of a whole head's weight for some token ids. Logits are as wide as the vocabulary,
    −∞ elsewhere, so noise keyed by token id falls on the same tokens as with the whole head.
    """

    def __init__(self, weight: nn.Parameter, frequent: Sequence[int]) -> None:
        super().__init__()
        self.scored: Tensor
        self.places: Tensor
        self.rows: Tensor | None
        self.weight = weight
        self.frequent = frozenset(frequent)
        # in the state: by their weights alone, two heads of one model would look the same
        self.register_buffer("scored", torch.tensor(sorted(self.frequent), device=weight.device))
        for name in ("places", "rows"):  # they follow the weight to another device or precision
            self.register_buffer(name, None, persistent=False)
        self.prompt: tuple[int, ...] | None = None
        self.others: tuple[int, ...] | None = None
        self.set_prompt(())

    def set_prompt(self, tokens: tuple[int, ...]) -> None:
        """Score the frequent tokens and, behind them, those of this prompt that are not frequent.
        `others` holds the latter, and becomes another object only if they changed.
        """
        if tokens == self.prompt:
            return
        others = tuple(sorted(set(tokens) - self.frequent))
        if others != self.others:
            new = torch.tensor(others, dtype=torch.long, device=self.scored.device)
            self.others = others
            self.places = torch.cat([self.scored, new])
            self.rows = None
        self.prompt = tokens

    def scored_rows(self, first: int = 0) -> Float[Tensor, "scored width"]:
        """The rows of the tokens that are scored, in the order of `places`, from one on."""
        return self.weight.detach()[self.places[first:]]

    def forward(self, hidden: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch vocab"]:
        """The logits after each hidden state."""
        if self.rows is None:
            self.rows = self.scored_rows()
        scored = hidden @ self.rows.T
        logits = scored.new_full((*scored.shape[:-1], len(self.weight)), float("-inf"))
        logits[..., self.places] = scored
        return logits


def score_prompt(
    network: PreTrainedModel,
    prompt: tuple[int, ...],
    before: tuple[int, ...] | None,
    ready: dict[int, tuple[Tensor, int]],
) -> tuple[int, ...] | None:
    """Let a network's head, if it is cut, score a prompt's own tokens too, and drop the logits that
    are ready if they lack these. Returns the tokens beside the frequent ones, None for a whole
    head.

    before    what this returned for the logits that are ready
    """
    head = network.get_output_embeddings()
    if not isinstance(head, CutHead):
        return None
    head.set_prompt(prompt)
    if head.others is not before:
        ready.clear()
    return head.others


def output_weight(network: PreTrainedModel) -> nn.Parameter:
    """The weight of a network's head.  Raises ValueError if it has none."""
    head = network.get_output_embeddings()
    weight = getattr(head, "weight", None)
    if not isinstance(weight, nn.Parameter):
        raise ValueError(f"a model of text has a head with a weight, got {type(head).__name__}")
    return weight


def cut_head(network: PreTrainedModel, frequent: Sequence[int]) -> CutHead:
    """Replace a network's head by one for `frequent` and the prompt's tokens, and return it."""
    weight = output_weight(network)
    last = len(weight) - 1
    ids = sorted(frequent)
    if not ids or not 0 <= ids[0] <= ids[-1] <= last:
        raise ValueError(f"a head scores token ids from 0 to {last}, got {ids[:3]} …")
    head = CutHead(weight, frequent)
    network.set_output_embeddings(head)
    return head
