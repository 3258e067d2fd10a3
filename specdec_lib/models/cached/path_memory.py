"""Which token paths a model has read: those of a committed context and of speculative branches."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple
from weakref import WeakMethod

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree

FAR = 128  # entries of branches that are not moved for a context that takes none of them
KEPT = 16  # logits of the committed context's end, so that a caller may go back a little


def weakly(method: Callable) -> Callable:
    """The method of an object that this does not keep alive: a model dropped is a model freed."""
    known = WeakMethod(method)

    def called(*given: object) -> Any:
        alive = known()
        assert alive is not None  # only the object itself calls this
        return alive(*given)

    return called


class PassPlan(NamedTuple):
    """The next pass: how many of the last rows need logits, and every tree node's entry."""

    tokens: list[int]
    positions: list[int]
    parents: list[int]
    keep: int
    nodes: list[int]


@dataclass
class BranchMemory:
    """The path of every cache entry; empty at first.

    run          run(tokens, positions, paths, keep) computes one pass over new rows, whose keys and
                 values become the next entries, and returns the logits [keep, vocab] after the last
                 `keep` rows. paths[row] holds the entries that the row attends to beyond the
                 committed context, its own entry last
    move         move(entries, first) moves the keys and values of these entries to the places
                 first, first + 1, …
    chunk_rows   a longer context is read in pieces of this many tokens
    slack        entries of branches that the context does not continue, which are kept at most
    reach        of a context, how many of its last tokens the logits after them depend on; of a
                 longer one no others are read. None for all
    rereads      a branch's keys and values are not those of a context that takes its tokens: where
                 the context changes, branches are forgotten, and what it takes of them is read. New
                 rows of a tree stand level by level
    committed    the tokens of the entries 0, 1, …: one path
    first        the position of entry 0
    used         entries in use; those beyond the committed ones belong to speculative branches
    ready        where the logits after an entry are kept: a block of rows, and a row of it
    """

    run: Callable[[Sequence[int], Sequence[int], list[list[int]], int], Tensor]
    move: Callable[[list[int], int], None]
    chunk_rows: int
    slack: int = 0
    reach: int | None = None
    rereads: bool = False
    committed: list[int] = field(default_factory=list)
    first: int = 0
    used: int = 0
    ready: dict[int, tuple[Tensor, int]] = field(default_factory=dict)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)
    _parents: dict[int, int] = field(default_factory=dict)
    _last: tuple[int, ...] = ()

    def clear(self) -> None:
        """Forget every entry."""
        self.committed = []
        self.first = 0
        self.used = 0
        self.ready = {}
        self._children = {}
        self._parents = {}
        self._last = ()

    def clear_after(self, context: Context) -> None:
        """Keep the beginning of a context where it was read from its first token on, and the
        entries are those that reading it again would make; else forget everything.
        """
        shared = 0 if self.rereads or self.first else self._shared(context)
        known = self.committed[:shared]
        self.clear()
        self.committed = known
        self.used = shared
        self._last = tuple(known)

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes scored"]:
        """The logits after each node, of unknown rows by one pass; not to be changed."""
        with self.whole_or_nothing():
            self.read(context)
            tokens, positions, parents, keep, nodes = self.plan(context, tree)
            if tokens:
                block = self.run(tokens, positions, self.paths(parents), keep)
                self.add(parents, tokens)
                if nodes == [*self.keep(block)]:
                    return block
            return torch.stack([block[row] for block, row in map(self.ready.__getitem__, nodes)])

    @contextmanager
    def whole_or_nothing(self) -> Iterator[None]:
        """Forget everything if what is done inside is interrupted: entries are half filled."""
        try:
            yield
        except BaseException:
            self.clear()
            raise

    def read(self, context: Context) -> None:
        """Commit the known beginning of a context, and read a long rest in chunks."""
        self.commit(context)
        tokens = context.tokens[self.first :]
        if len(tokens) - len(self.committed) <= self.chunk_rows:
            return
        self.forget_branches()
        while len(tokens) - self.used > self.chunk_rows:
            new = range(self.used, self.used + self.chunk_rows)
            piece = tokens[new.start : new.stop]
            positions = range(self.first + new.start, self.first + new.stop)
            self.run(piece, positions, [[*range(new.start, entry + 1)] for entry in new], 1)
            self.committed.extend(piece)  # there is no branch
            self.used = new.stop

    def read_before(self, context: Context) -> None:
        """Read every token of a context but its last."""
        before = context.tokens[:-1]
        if self.committed[: len(before)] == [*before]:
            return
        self.commit(context)
        if len(self.committed) < len(before):
            short = Context.of(before)
            self.score(short, TokenTree.rooted(short))
            self.commit(context)

    def commit(self, context: Context) -> None:
        """Commit the known beginning of a context; forget branches that do not continue it, and
        everything if it needs tokens that were not read, or none that were.
        """
        shared = self._shared(context)
        tokens = context.tokens[self.first :]
        found = self._continued(shared, tokens)
        if self.rereads:  # guesses that it takes are read again
            del found[max(0, len(self._last) - self.first - shared) :]
        needed = 0 if self.reach is None else max(0, len(context) - self.reach)
        if self.first > needed or 0 < needed >= self.first + shared + len(found):
            self.clear()
            self.first = needed
            shared = 0
            found = []
        before = self._last
        self._last = context.tokens
        if self.rereads:
            self.committed = [*self.committed[:shared], *tokens[shared : shared + len(found)]]
            if context.tokens != before:
                self._read_again(len(tokens) - 1)
            return
        if shared < len(self.committed):
            self._uncommit(shared)
        if not self._parents or (shared == len(tokens)):
            return
        if not found and self.used - shared > FAR and not self.slack:
            self.forget_branches()
            return
        self.committed.extend(tokens[shared : shared + len(found)])
        others = sorted(self._parents.keys() - set(found))
        known = {found[-1] if found else shared - 1}
        branches = []
        for entry in others:
            if self._parents[entry] in known:  # it continues the context
                known.add(entry)
                branches.append(entry)
        if self.used - len(self.committed) - len(branches) <= self.slack:
            branches = others
        self._renumber(shared, found, branches)

    def plan(self, context: Context, tree: TokenTree) -> PassPlan:
        """The unknown rows of a context that was just committed and of a tree rooted at its end."""
        tokens = context.tokens[self.first :]
        known = len(self.committed)
        if known == len(tokens) and known - 1 not in self.ready:
            known -= 1  # its row is computed again, for the logits
            if self.rereads:
                self._read_again(known)
            else:
                self._uncommit(known)
                del self._children[known - 1, tokens[known]]
        rest = list(tokens[known:])
        start = self.used
        chain = len(rest)
        parents = [known - 1, *range(start, start + chain - 1)] if rest else []
        positions = list(range(self.first + known, len(context)))
        nodes = [start + chain - 1 if rest else known - 1] * len(tree)
        order = range(1, len(tree))
        if self.rereads:  # what is added to a guess is known when the one above it was read
            order = sorted(order, key=tree.depths.__getitem__)
        for node in order:
            key = (nodes[tree.parents[node]], tree.tokens[node])
            entry = self._children.get(key)
            if entry is None or (entry < start and entry not in self.ready):
                entry = self._children[key] = start + len(rest)
                parents.append(key[0])
                rest.append(key[1])
                positions.append(tree.position(node))
            nodes[node] = entry
        return PassPlan(rest, positions, parents, len(rest) - max(chain - 1, 0), nodes)

    def add(self, parents: Sequence[int], tokens: Sequence[int]) -> None:
        """Record the next entries; they are branches until a context commits them."""
        for parent, token in zip(parents, tokens, strict=True):
            self._children[parent, token] = self.used
            self._parents[self.used] = parent
            self.used += 1

    def keep(self, block: Tensor) -> range:
        """Keep the logits after the last entries, one row for each; returns these entries."""
        last = range(self.used - len(block), self.used)
        self.ready.update((entry, (block, row)) for row, entry in enumerate(last))
        return last

    def forget_branches(self) -> None:
        """Keep the committed context alone."""
        self._children, self._parents, self.used = {}, {}, len(self.committed)
        self.ready = {entry: row for entry, row in self.ready.items() if entry < self.used}

    def paths(self, parents: Sequence[int]) -> list[list[int]]:
        """Per next entry, the entries of its path beyond the committed context, its own last."""
        found: list[list[int]] = []
        for entry, parent in enumerate(parents, self.used):
            path = [entry]
            while len(self.committed) <= parent < self.used:
                path.append(parent)
                parent = self._parents[parent]
            begun = found[parent - self.used] if parent >= self.used else []
            found.append([*begun, *path[::-1]])
        return found

    def _shared(self, context: Context) -> int:
        """How many entries are a beginning of the context, from the position `first` on."""
        tokens = context.tokens
        known = self.committed
        if tokens is self._last or (context.begun is not None and context.begun is self._last):
            return len(known)  # what is committed is a beginning of the last context
        if tokens[: self.first] != self._last[: self.first]:
            return 0
        tokens = tokens[self.first :]
        count = min(len(known), len(tokens))
        return next((place for place in range(count) if known[place] != tokens[place]), count)

    def _continued(self, shared: int, tokens: Sequence[int]) -> list[int]:
        """The entries of branches that go on with tokens, of which so many are committed."""
        found = []
        entry = shared - 1
        for token in tokens[shared:]:
            entry = self._children.get((entry, token), -1)
            if entry < 0:
                break
            found.append(entry)
        return found

    def _read_again(self, length: int) -> None:
        """Keep so many tokens of the committed context at most, and no branch. Of a context that
        has become shorter the last token is read again: its children are guesses now.
        """
        del self.committed[length:]
        self.forget_branches()

    def _uncommit(self, length: int) -> None:
        """Shorten the committed context; the rest of it becomes a branch."""
        for entry in range(length, len(self.committed)):
            self._children[entry - 1, self.committed[entry]] = entry
            self._parents[entry] = entry - 1
        del self.committed[length:]

    def _renumber(self, shared: int, found: list[int], branches: list[int]) -> None:
        """Give these entries, and no others beyond the first `shared`, the next numbers."""
        end = shared + len(found) - 1
        if len(self.ready) > 4 * KEPT:
            self.ready = {entry: row for entry, row in self.ready.items() if entry > end - KEPT}
        entries = [*found, *branches]
        place = {entry: shared + number for number, entry in enumerate(entries)}
        above = ((entry, self._parents[entry]) for entry in branches)
        self._parents = {place[entry]: place.get(parent, parent) for entry, parent in above}
        self._children = {
            (place.get(parent, parent), token): place[entry]
            for (parent, token), entry in self._children.items()
            if place.get(entry, 0) > end
        }
        self.used = shared + len(entries)
        self.ready = {
            place.get(entry, entry): row
            for entry, row in self.ready.items()
            if entry < shared or entry in place
        }
        still = sum(1 for _ in takewhile(lambda entry: place[entry] == entry, entries))
        if entries[still:]:
            self.move(entries[still:], shared + still)
