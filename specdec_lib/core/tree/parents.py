"""Trees as the number of each node's parent, the root first."""

from collections.abc import Sequence

ROOT = 0
NO_PARENT = -1


def check_parents(parents: Sequence[int], first: int = 0) -> None:
    """Raise ValueError unless each node from `first` on comes after its parent, the root first."""
    if not parents or parents[ROOT] != NO_PARENT:
        raise ValueError(f"node 0 is the root and has parent {NO_PARENT}, got {parents[:1]}")
    for node in range(max(1, first), len(parents)):
        if not 0 <= parents[node] < node:
            got = f"node {node} has parent {parents[node]}, allowed are 0…{node - 1}"
            raise ValueError(f"a parent must precede its child: {got}")


def depths_of(parents: Sequence[int]) -> tuple[int, ...]:
    """The number of edges from the root to each node."""
    depths = [0]
    for parent in parents[1:]:
        depths.append(depths[parent] + 1)
    return tuple(depths)


def children_of(parents: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The children of each node, in the order of their numbers."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents[1:], 1):
        children[parent].append(node)
    return tuple(map(tuple, children))
