"""The draft that guesses nothing, and drafts made of several."""

from dataclasses import dataclass

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, Count, TokenTree


@dataclass(frozen=True)
class NoDraft:
    """The draft that guesses nothing, with which the loop is plain autoregressive decoding."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        return TokenTree.rooted(context)


@checked
@dataclass(frozen=True)
class MergedDraft:
    """The guesses of several drafts in one tree, equal siblings made one; no part may sample.

    Raises ValueError without parts: the draft that guesses nothing is `NoDraft`.
    """

    parts: tuple[Draft, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a merged draft needs at least one part, got none")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The merged tree; raises ValueError if a part's guesses have rows."""
        tree = TokenTree.rooted(context)
        for number, part in enumerate(self.parts):
            tree = tree.grafted(ROOT, part.propose(context, chance.inner("part", (number,))))
        return tree.merged()


@checked
@dataclass(frozen=True)
class FirstDraft:
    """The guesses of the first of several drafts that makes at least `least` of them, else of the
    last.

    Raises ValueError without parts; `propose` does if guesses that were drawn by chance would be
    passed over, which would bias `reject`.
    """

    parts: tuple[Draft, ...]
    least: Count = 1

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("the first of several drafts needs at least one part, got none")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        for number, part in enumerate(self.parts):
            tree = part.propose(context, chance.inner("part", (number,)))
            if tree.guesses >= self.least or number == len(self.parts) - 1:
                break
            refuse_drawn(tree, number)
        return tree


def refuse_drawn(tree: TokenTree, part: int) -> None:
    """Raise ValueError if the guesses of a part, which are passed over, were drawn by chance."""
    if tree.has_rows:
        raise ValueError(
            "guesses that were drawn cannot be passed over (it would bias `reject`):"
            f" {tree.guesses} of part {part}"
        )
