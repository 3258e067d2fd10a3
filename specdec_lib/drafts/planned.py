"""A draft that picks in each round, of several drafts, the one whose guesses are worth most."""

import functools
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from jaxtyping import Float64

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import models_in
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.max_gram import longest_ending, searched

MATCHES = (1, 2, 4, 8)  # situation i + 1 begins where an ending of MATCHES[i] tokens stood before
SITUATIONS = range(len(MATCHES) + 1)
FADING = 0.95  # weight of a round's outcome against that of the next
TRUST = 20.0  # expected guesses after which the present text counts as much as development prompts


def situation(context: Context) -> int:
    """Which of 5 bins the length of the longest suffix that occurred before falls into: 0, 1, 2–3,
    4–7, or 8 tokens and more.
    """
    text, *regions = searched(context)
    ending = text[-MATCHES[-1] :]
    return bisect_right(MATCHES, max(longest_ending(ending, region[:-1]) for region in regions))


class Acceptance:
    """Accepted and expected guesses of the present generation, per set of models that guessed.

    Copies and pickles start empty, and another text starts anew, so that no result of a generation
    depends on another.
    """

    def __init__(self) -> None:
        self._last: tuple[Context, TokenTree, tuple[str, ...], float] | None = None
        self._sums: dict[tuple[str, ...], Float64[np.ndarray, 2]] = {}

    def __reduce__(self) -> tuple[type["Acceptance"], tuple[()]]:
        return Acceptance, ()

    @in_turn
    def follow(self, context: Context) -> dict[tuple[str, ...], float]:
        """Count what became of what was kept, or start anew in another text: accepted ÷ expected
        guesses per set of models, faded and shrunk towards 1.
        """
        last = self._last
        self._last = None
        if last is None or context.begun is not last[0].tokens:
            self._sums = {}
        else:
            before, tree, models, expected = last
            outcome = np.array([_taken(tree, context.tokens[len(before) :]), expected])
            self._sums = {name: FADING * sums for name, sums in self._sums.items()}
            self._sums[models] = self._sums.get(models, 0.0) + outcome
        return {
            models: float((TRUST + accepted) / (TRUST + expected))
            for models, (accepted, expected) in self._sums.items()
        }

    @in_turn
    def keep(
        self, context: Context, tree: TokenTree, models: tuple[str, ...], expected: float
    ) -> None:
        """Remember, until `follow`, a proposal and how many accepted guesses are expected of it."""
        self._last = context, tree, models, expected


def _taken(tree: TokenTree, tokens: tuple[int, ...]) -> int:
    """How many of these tokens in a row the tree guessed."""
    node = ROOT
    for count, token in enumerate(tokens):
        node = tree.child(node, token)
        if node is None:
            return count
    return len(tokens)


@checked
@dataclass(frozen=True, eq=False)
class Planned:
    """Switches between drafts per context: picks the one whose round has the most expected tokens
    minus price × seconds, t − λ c, where t follows recent acceptance (`theory.choosing`).

    parts              the drafts to choose from; of equal worth the first
    tokens, seconds    [parts][5 situations]: expected per round, the bonus token included
    price              λ, in tokens per second: how many tokens one second is worth

    Which part guesses depends on committed tokens and on what became of earlier guesses, never on
    this round's chance, so both rules stay exact; each generation begins anew.
    """

    parts: tuple[Draft, ...]
    tokens: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    price: Annotated[float, Within(2.0**-50)]
    running: Acceptance = field(default_factory=Acceptance, init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = [len(SITUATIONS)] * len(self.parts)
        for name, table in (("tokens", self.tokens), ("seconds", self.seconds)):
            if [len(row) for row in table] != sizes or not sizes:
                raise ValueError(
                    f"a planned draft needs {len(SITUATIONS)} {name} for each of"
                    f" {len(self.parts)} parts, at least 1, got {table}"
                )

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The best part's tree; its outcome counts when `propose` gets this context extended."""
        here = situation(context)
        accepted_share = self.running.follow(context)
        guesses = [tokens[here] - 1 for tokens in self.tokens]

        def worth(part: int) -> float:
            accepted = guesses[part] * accepted_share.get(self._models[part], 1.0)
            return 1 + accepted - self.price * self.seconds[part][here]

        best = max(range(len(self.parts)), key=worth)
        tree = self.parts[best].propose(context, chance.inner("part", (best,)))
        self.running.keep(context, tree, self._models[best], guesses[best])
        return tree

    @functools.cached_property
    def _models(self) -> list[tuple[str, ...]]:
        """The models that each part guesses with: drafts of the same models fare alike."""
        return [tuple(sorted(models_in(part))) for part in self.parts]
