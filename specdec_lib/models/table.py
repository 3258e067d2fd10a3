"""A language model given by a function, for exact tests on a vocabulary of a few words."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import check_root
from specdec_lib.core.tree import TokenTree


@checked
@dataclass(frozen=True, eq=False)
class TableModel:
    """A model whose `logits` map all tokens so far to the logits of the next one.

    passes    the rows of each pass so far
    """

    logits: Callable[[tuple[int, ...]], Tensor]
    vocabulary: int
    name: str = "table"
    max_positions: int = 1000
    passes: list[int] = field(default_factory=list)

    @property
    def runtime(self) -> str:
        """Nothing computes."""
        return ""

    @property
    def usage(self) -> None:
        """Nothing is computed."""

    def forget(self) -> None:
        pass

    @classmethod
    def fixed(cls, probs: Sequence[float], name: str = "table") -> "TableModel":
        """A model with the same distribution after every context, in float64."""
        logits = torch.tensor(probs, dtype=torch.float64).log()
        return cls(lambda tokens: logits, len(probs), name)

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        check_root(context, tree, self.vocabulary, self.max_positions, self.name)
        self.passes.append(len(tree))
        paths = map(tree.path_tokens, range(len(tree)))
        return torch.stack([self.logits(context.tokens + path) for path in paths])


@checked
def joint_distribution(
    model: TableModel, prompt: tuple[int, ...], sampler: Sampler, length: int
) -> dict[tuple[int, ...], float]:
    """The exact probability of the next `length` tokens of a model that is sampled on its own."""
    found: dict[tuple[int, ...], float] = {}
    for tokens in itertools.product(range(model.vocabulary), repeat=length):
        rows = (sampler.probs(model.logits(prompt + tokens[:place])) for place in range(length))
        probability = math.prod(float(row[token]) for row, token in zip(rows, tokens, strict=True))
        if probability > 0:
            found[tokens] = probability
    return found
