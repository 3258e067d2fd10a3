"""A language model that is a table of laws: for exact proofs on a vocabulary of a few words."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import check_root
from specdec_lib.core.tree import TokenTree


@dataclass(frozen=True, eq=False)
class TableModel:
    """A model whose logits are a function of all tokens so far; it runs no network and counts
    nothing.
    """

    laws: Callable[[tuple[int, ...]], Tensor]
    vocabulary: int
    name: str = "table"
    max_positions: int = 1000
    runtime: ClassVar[str] = ""
    usage: ClassVar[None] = None

    def forget(self) -> None:
        """Do nothing: a table remembers no context."""

    @classmethod
    def fixed(cls, probs: Sequence[float], name: str = "table") -> "TableModel":
        """One law everywhere, in float64."""
        logits = torch.tensor(probs, dtype=torch.float64).log()
        return cls(lambda tokens: logits, len(probs), name)

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """The table's logits after each node."""
        check_root(context, tree, self.vocabulary, self.max_positions)
        return torch.stack(
            [self.laws(context.tokens + tree.path_tokens(node)) for node in range(len(tree))]
        )


def joint_law(
    model: TableModel, prompt: tuple[int, ...], sampler: Sampler, length: int
) -> dict[tuple[int, ...], float]:
    """The exact law of the next `length` tokens when the model is sampled on its own: tokens to
    probability.
    """
    law: dict[tuple[int, ...], float] = {}
    for tokens in itertools.product(range(model.vocabulary), repeat=length):
        probability = 1.0
        for place, token in enumerate(tokens):
            probability *= float(sampler.probs(model.laws(prompt + tokens[:place]))[token])
        if probability > 0:
            law[tokens] = probability
    return law
