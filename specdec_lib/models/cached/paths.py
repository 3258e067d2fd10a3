"""Which rows a model has still to compute, and where the logits of every node then are: the memory
of paths, whatever the network.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.slots import BEFORE, SlotCache

SLACK = 32  # slots of dead branches that are carried along rather than moved away

Forward = Callable[[Sequence[int], Sequence[int], Sequence[int], int], range]
"""One pass over new rows: their parents' slots, tokens and positions, and of how many of the last
of them the logits are kept; their slots.
"""


class PathMemory:
    """The paths that one model has read; empty at first.

    slots         where it keeps their keys and values
    chunk_rows    a longer prompt is read in pieces of this many tokens

    Raises ValueError if `chunk_rows` is below 1.
    """

    def __init__(self, slots: SlotCache, chunk_rows: int) -> None:
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
        self.slots = slots
        self._chunk_rows = chunk_rows
        self._known: tuple[tuple[int, ...], list[int]] = ((), [])

    def forget(self) -> None:
        """Drop everything remembered; results stay the same, up to rounding."""
        self.slots.clear()
        self._known = ((), [])

    def score(
        self, tokens: tuple[int, ...], tree: TokenTree, forward: Forward
    ) -> Float[Tensor, "nodes vocab"]:
        """The logits after every node of a tree that is rooted at the end of `tokens`; `forward` is
        asked for unknown rows only.
        """
        try:
            path = self._read(tokens, forward)
            return torch.stack(
                [self.slots.logits[slot] for slot in self._run(tokens, path, tree, forward)]
            )
        except BaseException:
            self.forget()  # an interrupted pass leaves slots half filled
            raise

    def _read(self, tokens: tuple[int, ...], forward: Forward) -> list[int]:
        """The slots of all but the last few of `tokens`: known ones found, long unknown stretches
        read in chunks.
        """
        known, slots = self._known
        shared = len(known) if tokens[: len(known)] == known else 0
        path = self.slots.compact(self.slots.find(tokens, slots[:shared]), SLACK)
        self.slots.drop_logits(path)
        self._known = (tokens[: len(path)], path)
        if len(path) == len(tokens) and path[-1] not in self.slots.logits:
            self.slots.forget(path[-2] if len(path) > 1 else BEFORE, tokens[-1])
            path.pop()
        while len(tokens) - len(path) > self._chunk_rows:
            piece = tokens[len(path) : len(path) + self._chunk_rows]
            parents = self._after(path, len(piece))
            path.extend(forward(parents, piece, range(len(path), len(path) + len(piece)), 1))
        self._known = (tokens[: len(path)], path)
        return path

    def _run(
        self, tokens: tuple[int, ...], path: list[int], tree: TokenTree, forward: Forward
    ) -> list[int]:
        """The slot of every node, after one forward pass over whatever is not known yet."""
        rest = tokens[len(path) :]
        parents, rows, positions = (
            self._after(path, len(rest)),
            list(rest),
            list(range(len(path), len(tokens))),
        )
        first = self.slots.used
        slots = [first + len(rest) - 1 if rest else path[-1]]
        fresh: dict[tuple[int, int], int] = {}
        for node in range(1, len(tree)):
            key = (slots[tree.parents[node]], tree.tokens[node])
            slot = self.slots.child(*key)
            if slot is None or slot not in self.slots.logits:
                if key not in fresh:
                    fresh[key] = first + len(rows)
                    parents.append(key[0])
                    rows.append(key[1])
                    positions.append(tree.position(node))
                slot = fresh[key]
            slots.append(slot)
        if rows:
            forward(parents, rows, positions, len(fresh) + bool(rest))
            self._known = (tokens, [*path, *range(first, first + len(rest))])
        return slots

    def _after(self, path: list[int], count: int) -> list[int]:
        """Parents of `count` new rows that continue `path` in a chain."""
        if not count:
            return []
        return [path[-1] if path else BEFORE, *range(self.slots.used, self.slots.used + count - 1)]
