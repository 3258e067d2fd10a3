"""What a fast model has read: a trunk, whose slot numbers are positions, and guesses that hang
above its end.

The same promise as that of `lm.PathMemory`, that a path is computed once as long as it hangs
together with what is read next, kept with less work: a context that goes on from the last one costs
a look at its new tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree

SLACK = 128  # slots of guesses that are kept where a context takes none of them
KEPT = 16  # logits of the trunk's end, so that a caller may go back a little


class Plan(NamedTuple):
    """What a pass has to compute, and where everything then is.

    tokens, positions, parents    of the rows that are new; a parent is a slot, which may be that of
                                  an earlier new row
    keep                          of how many of the last of them the logits are wanted
    nodes                         the slot of every node of the tree
    """

    tokens: list[int]
    positions: list[int]
    parents: list[int]
    keep: int
    nodes: list[int]


@dataclass
class Memory:
    """Which slot holds which path; empty at first.

    trunk    the tokens of the slots 0, 1, …: one path
    used     slots in use; those beyond the trunk hold guesses
    ready    where the logits after a slot are kept: a block of rows, and a row of it
    """

    trunk: list[int] = field(default_factory=list)
    used: int = 0
    ready: dict[int, tuple[Tensor, int]] = field(default_factory=dict)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)
    _parents: dict[int, int] = field(default_factory=dict)
    _last: tuple[int, ...] = ()

    def settle(self, context: Context) -> tuple[int, list[int]]:
        """Make the known beginning of a context the trunk: the slots whose keys and values are to
        be moved, rising, and where the first goes.

        Guesses that hang above the end of that beginning are kept, all others are forgotten.
        """
        tokens, shared = context.tokens, self._shared(context)
        self._last = tokens
        if shared < len(self.trunk):
            self._back_to(shared)
        if not self._parents or (shared == len(tokens)):
            return 0, []
        found, slot = [], shared - 1
        for token in tokens[shared:]:
            slot = self._children.get((slot, token), -1)
            if slot < 0:
                break
            found.append(slot)
        if not found and self.used - shared > SLACK:
            self.forget_guesses()
            return 0, []
        self.trunk.extend(tokens[shared : shared + len(found)])
        return self._renumber(
            shared, found, self._above(found[-1] if found else shared - 1, set(found))
        )

    def plan(self, context: Context, tree: TokenTree) -> Plan:
        """What is still unknown of a settled context and a tree that is rooted at its end."""
        tokens, known = context.tokens, len(self.trunk)
        if known == len(tokens) and known - 1 not in self.ready:
            known -= 1  # its row is computed again, for the logits
            self._back_to(known)
            del self._children[known - 1, tokens[known]]
        rest = list(tokens[known:])
        start, chain = self.used, len(rest)
        parents = [known - 1, *range(start, start + chain - 1)] if rest else []
        positions = list(range(known, len(tokens)))
        nodes = [start + chain - 1 if rest else known - 1]
        for node in range(1, len(tree)):
            key = (nodes[tree.parents[node]], tree.tokens[node])
            slot = self._children.get(key)
            if slot is None or (slot < start and slot not in self.ready):
                slot = self._children[key] = start + len(rest)
                parents.append(key[0])
                rest.append(key[1])
                positions.append(tree.position(node))
            nodes.append(slot)
        return Plan(rest, positions, parents, len(rest) - max(chain - 1, 0), nodes)

    def add(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Name the next slots; they hang above the trunk until a context settles on them."""
        for parent, token in zip(parents, tokens, strict=True):
            self._children[parent, token] = self.used
            self._parents[self.used] = parent
            self.used += 1

    def append(self, tokens: Sequence[int]) -> None:
        """Lengthen the trunk by tokens that were read where no guess hangs above it."""
        self.trunk.extend(tokens)
        self.used = len(self.trunk)

    def forget_guesses(self) -> None:
        """Keep the trunk alone."""
        self._children, self._parents, self.used = {}, {}, len(self.trunk)
        self.ready = {slot: row for slot, row in self.ready.items() if slot < self.used}

    def paths(self, parents: Sequence[int], start: int) -> list[list[int]]:
        """Per new row, the slots from above the trunk's end up to its own."""
        found: list[list[int]] = []
        for number, parent in enumerate(parents):
            if parent >= start:
                found.append([*found[parent - start], start + number])
                continue
            path = [start + number]
            while parent >= len(self.trunk):
                path.append(parent)
                parent = self._parents[parent]
            found.append(path[::-1])
        return found

    def _shared(self, context: Context) -> int:
        """How many tokens of the context the trunk holds."""
        tokens, trunk = context.tokens, self.trunk
        if tokens is self._last or (context.begun is not None and context.begun is self._last):
            return len(trunk)  # the trunk is a beginning of what was read last
        count = min(len(trunk), len(tokens))
        return next((place for place in range(count) if trunk[place] != tokens[place]), count)

    def _back_to(self, length: int) -> None:
        """Shorten the trunk; what it held beyond hangs above its new end."""
        for slot in range(length, len(self.trunk)):
            self._children[slot - 1, self.trunk[slot]] = slot
            self._parents[slot] = slot - 1
        del self.trunk[length:]

    def _above(self, slot: int, trunk: set[int]) -> list[int]:
        """The guesses that hang above a slot."""
        known, found = {slot}, []
        for one in sorted(self._parents):
            if self._parents[one] in known and one not in trunk:
                known.add(one)
                found.append(one)
        return found

    def _renumber(self, shared: int, found: list[int], above: list[int]) -> tuple[int, list[int]]:
        """Give these slots, and no others beyond the first `shared`, the next numbers."""
        end = shared + len(found) - 1
        if len(self.ready) > 4 * KEPT:
            self.ready = {slot: row for slot, row in self.ready.items() if slot > end - KEPT}
        if not above and (not found or found[-1] == end):
            self._children, self._parents, self.used = {}, {}, end + 1  # all lies where it belongs
            for slot in [slot for slot in self.ready if slot > end]:
                del self.ready[slot]
            return 0, []
        slots = [*found, *above]
        place = {slot: shared + number for number, slot in enumerate(slots)}
        parents = {place[slot]: place.get(self._parents[slot], end) for slot in above}
        self._children = {
            (parents[place[slot]], token): place[slot]
            for (_, token), slot in self._children.items()
            if place.get(slot, 0) > end
        }
        self._parents, self.used = parents, shared + len(slots)
        kept = {slot: row for slot, row in self.ready.items() if slot < shared}
        self.ready = kept | {place[slot]: self.ready[slot] for slot in slots if slot in self.ready}
        still = next(
            (number for number, slot in enumerate(slots) if slot != shared + number), len(slots)
        )
        return shared + still, slots[still:]
