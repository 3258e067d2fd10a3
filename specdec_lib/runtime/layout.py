"""A tree's shape as tensors: which rows are read, whose children stand where, and who sees whom."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from specdec_lib.theory import Shape


@dataclass(frozen=True, eq=False)
class Level:
    """Nodes of one depth that have children, and the nodes right below them.

    readers    nodes that the draft reads
    rows       per child, its parent's place among the readers
    ranks      per child, its place among its siblings
    most       children of a node
    """

    readers: Int[Tensor, " readers"]
    rows: Int[Tensor, " children"]
    ranks: Int[Tensor, " children"]
    most: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The nodes of a shape, numbered level by level, root first.

    depths      per node
    parents     per node; the root's own is itself
    ancestry    [i, j]: node i sees node j, itself or above
    at_depth    [d, i]: node i stands at depth d
    levels      from the root's down
    """

    depths: Int[Tensor, " nodes"]
    parents: Int[Tensor, " nodes"]
    ancestry: Bool[Tensor, "nodes nodes"]
    at_depth: Bool[Tensor, "levels nodes"]
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, shape: Shape, device: torch.device) -> "Layout":
        """A shape on a device."""
        shape = shape.cut(shape.guesses)  # numbered level by level
        ancestry = torch.eye(len(shape), dtype=torch.bool)
        for node, parent in enumerate(shape.parents[1:], 1):
            ancestry[node] |= ancestry[parent]
        depths = torch.tensor(shape.depths)
        return cls(
            depths.to(device),
            torch.tensor([0, *shape.parents[1:]], device=device),
            ancestry.to(device),
            (torch.arange(shape.depth + 1)[:, None] == depths).to(device),
            tuple(_level(shape, depth, device) for depth in range(shape.depth)),
        )

    @property
    def depth(self) -> int:
        """Of the deepest node."""
        return len(self.levels)

    def __len__(self) -> int:
        return len(self.depths)


def _level(shape: Shape, depth: int, device: torch.device) -> Level:
    children = [node for node in range(len(shape)) if shape.depths[node] == depth + 1]
    readers = sorted({shape.parents[node] for node in children})
    ranks = [shape.ranks[node] for node in children]
    numbers = (readers, [readers.index(shape.parents[node]) for node in children], ranks)
    return Level(*(torch.tensor(given, device=device) for given in numbers), most=max(ranks) + 1)
