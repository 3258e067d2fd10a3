"""No guess is better than a bad one: drafts of which each guesses only while the present text
accepts enough to pay for it.

The constants were chosen on 48 conversations of `data/text/kept-out`, at several prices of a draft
and of a copy: the present text must tell soon, for an answer has some ten to a hundred rounds.
"""

import functools
from dataclasses import dataclass, field
from typing import Annotated

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import models_in
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import Count, TokenTree
from specdec_lib.drafts.combined import NoDraft, refuse_drawn

HOPED = 1.25  # tokens hoped for in a new text ÷ those that are needed, where nothing was measured
TRUST = 4.0  # hoped-for guesses after which the present text counts as much as the hope
FADING = 0.9  # weight of an outcome against that of the next
RESTING = 0.99  # the same per round in which the draft was off
PLAIN = NoDraft()


class Outcomes:
    """Accepted and hoped-for guesses of the present generation, per draft.

    Copies and pickles start empty, and another text starts anew, so that no result of a generation
    depends on another.
    """

    def __init__(self) -> None:
        self._last: Context | None = None
        self._kept: dict[int, tuple[TokenTree | None, float]] = {}
        self._sums: dict[int, tuple[float, float]] = {}

    def __reduce__(self) -> tuple[type["Outcomes"], tuple[()]]:
        return Outcomes, ()

    @in_turn
    def follow(self, context: Context) -> dict[int, tuple[float, float]]:
        """Count what became of what was kept, or start anew in another text; per draft the accepted
        guesses and those that were hoped for, of which older ones count less.
        """
        last = self._last
        if last is None or context.begun is not last.tokens:
            self._sums = {}
        else:
            committed = context.tokens[len(last) :]
            for part, (tree, hoped) in self._kept.items():
                fading, accepted = (
                    (RESTING, 0) if tree is None else (FADING, tree.guessed(committed))
                )
                before = self._sums.get(part, (0.0, 0.0))
                self._sums[part] = (fading * before[0] + accepted, fading * before[1] + hoped)
        self._last = None
        return dict(self._sums)

    @in_turn
    def keep(self, context: Context, kept: dict[int, tuple[TokenTree | None, float]]) -> None:
        """Remember until `follow`, per draft, its guesses with how many acceptances were hoped for;
        None in place of the guesses of one that was off.
        """
        self._last = context
        self._kept = kept


@checked
@dataclass(frozen=True, eq=False)
class FirstPaying:
    """The guesses of the first of several drafts that pays on the present text, or none.

    parts     the drafts, in order
    needed    per draft, the tokens per round from which on it pays: how many times as long as a
              round of plain decoding a round with it takes
    hoped     per draft, the tokens per round that a new text is taken to yield, such as a match
              table foretells; by default `HOPED` times those that it needs
    least     a part that makes fewer guesses than this is passed over, if it is not the last
    trust     hoped-for guesses after which the present text counts as much as the hope

    What was hoped counts less and less beside what was accepted. As outcomes fade in the rounds in
    which a part is off, it is tried again, now and then; one that is hoped to yield less than it
    needs is never on. What a part without a model would have guessed is looked at while it is off
    too, for it costs nothing.

    Which part guesses depends on committed tokens and on what became of earlier guesses, never on
    this round's chance, so both rules stay exact; each generation begins anew.

    Raises ValueError without parts, or with another number of needed or hoped-for tokens.
    """

    parts: tuple[Draft, ...]
    needed: tuple[Annotated[float, Within(1.0)], ...]
    hoped: tuple[Annotated[float, Within(1.0)], ...] | None = None
    least: Count = 1
    trust: Annotated[float, Within(2.0**-50)] = TRUST
    running: Outcomes = field(default_factory=Outcomes, init=False, repr=False)

    def __post_init__(self) -> None:
        counts = {len(self.parts), len(self.needed), len(self._hoped)}
        if not self.parts or len(counts) > 1:
            raise ValueError(
                "drafts that guess where they pay are at least 1, with needed and hoped-for tokens"
                f" for each; got {len(self.parts)}, needed {self.needed}, hoped {self.hoped}"
            )

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The first paying part's tree; what became of it counts when `propose` gets this context
        extended.

        Raises ValueError if guesses that were drawn would be passed over.
        """
        sums = self.running.follow(context)
        kept: dict[int, tuple[TokenTree | None, float]] = {}
        found = TokenTree.rooted(context)
        last = len(self.parts) - 1
        for at, part in enumerate(self.parts):
            hoped = self._hoped[at] - 1
            pays = hoped * self._share(sums.get(at, (0.0, 0.0))) > self.needed[at] - 1
            if not pays and not self._free[at]:
                kept[at] = (None, 0.0)
                continue
            tree = part.propose(context, chance.inner("part", (at,)))
            if tree.guesses < (self.least if at < last else 1):
                refuse_drawn(tree, at)
                continue
            kept[at] = (tree, hoped)
            if pays:
                found = tree
                break
        self.running.keep(context, kept)
        return found

    def _share(self, sums: tuple[float, float]) -> float:
        """Accepted ÷ hoped-for guesses, shrunk towards 1."""
        accepted, hoped = sums
        return (self.trust + accepted) / (self.trust + hoped)

    @functools.cached_property
    def _hoped(self) -> tuple[float, ...]:
        if self.hoped is not None:
            return self.hoped
        return tuple(HOPED * one for one in self.needed)

    @functools.cached_property
    def _free(self) -> list[bool]:
        """Which parts guess without a model."""
        return [not models_in(part) for part in self.parts]


@checked
def off_switch(
    draft: Draft,
    needed: Annotated[float, Within(1.0)],
    *,
    hoped: Annotated[float, Within(1.0)] | None = None,
    otherwise: Draft = PLAIN,
) -> FirstPaying:
    """The draft where it pays on the present text, else another one, by default none.

    needed    tokens per round from which on it pays: how many times as long as a round of plain
              decoding a round with the draft takes
    hoped     tokens per round that a new text is taken to yield, by default `HOPED` × needed
    """
    tokens = HOPED * needed if hoped is None else hoped
    return FirstPaying((draft, otherwise), (needed, 1.0), (tokens, HOPED))
