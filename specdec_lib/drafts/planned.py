"""A draft that picks in each round, of several drafts, the one whose guesses are worth most."""

import functools
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Float64

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import models_in
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import longest_ending, searched

MATCHES = (1, 2, 4, 8)  # situation i + 1 begins where an ending of MATCHES[i] tokens stood before
SITUATIONS = range(len(MATCHES) + 1)
PLAIN = NoDraft()
FADING = 0.95  # weight of a round's outcome against that of the next
RESTING = 0.985  # the same, of models that did not guess in the round
TRUST = 20.0  # expected guesses after which the present text counts as much as development prompts


def situation(context: Context) -> int:
    """Which of 5 bins the length of the longest suffix that occurred before falls into: 0, 1, 2–3,
    4–7, or 8 tokens and more.
    """
    text, *regions = searched(context)
    ending = text[-MATCHES[-1] :]
    return bisect_right(MATCHES, max(longest_ending(ending, region[:-1]) for region in regions))


class Proposal(NamedTuple):
    """What was proposed in a round, with what, and what was expected of it.

    expected    accepted guesses
    seconds     of the whole round, at the plan's prices
    """

    context: Context
    tree: TokenTree
    models: tuple[str, ...]
    expected: float
    seconds: float


class Followed(NamedTuple):
    """What the present text brought so far, in which older rounds count less.

    shares             accepted ÷ expected guesses per set of models, shrunk towards 1
    tokens, seconds    of its rounds, the seconds at the plan's prices
    """

    shares: dict[tuple[str, ...], float]
    tokens: float
    seconds: float


class Acceptance:
    """Accepted and expected guesses of the present generation, per set of models that guessed; and
    tokens and seconds of its rounds.

    Copies and pickles start empty, and another text starts anew, so that no result of a generation
    depends on another.
    """

    def __init__(self) -> None:
        self._last: Proposal | None = None
        self._sums: dict[tuple[str, ...], Float64[np.ndarray, 2]] = {}
        self._brought = np.zeros(2)  # tokens and seconds

    def __reduce__(self) -> tuple[type["Acceptance"], tuple[()]]:
        return Acceptance, ()

    @in_turn
    def follow(self, context: Context, trust: float = TRUST) -> Followed:
        """Count what became of what was kept, or start anew in another text.

        trust    expected guesses, accepted as expected, by which shares are shrunk towards 1
        """
        last = self._last
        self._last = None
        if last is None or context.begun is not last.context.tokens:
            self._sums = {}
            self._brought = np.zeros(2)
        else:
            accepted = last.tree.guessed(context.tokens[len(last.context) :])
            outcome = np.array([accepted, last.expected])
            self._sums = {
                name: (FADING if name == last.models else RESTING) * sums
                for name, sums in self._sums.items()
            }
            self._sums[last.models] = self._sums.get(last.models, 0.0) + outcome
            self._brought = FADING * self._brought + (accepted + 1, last.seconds)
        shares = {
            models: float((trust + accepted) / (trust + expected))
            for models, (accepted, expected) in self._sums.items()
        }
        return Followed(shares, *self._brought.tolist())

    @in_turn
    def keep(self, proposal: Proposal) -> None:
        """Remember a proposal until `follow`."""
        self._last = proposal


@checked
@dataclass(frozen=True, eq=False)
class Planned:
    """Switches between drafts per context: picks the one whose round has the most expected tokens
    minus price × seconds, t − λ c, where t and λ follow the present text (`theory.choosing`).

    parts              the drafts to choose from; of equal worth the first
    tokens, seconds    [parts][5 situations]: expected per round, the bonus token included
    price              λ, in tokens per second: how many tokens one second is worth at first; then
                       as many as came of it in this text, and never fewer than without guesses
    trust              after how many expected guesses (of λ: rounds of the quickest part) the
                       present text counts as much as the plan

    With a part that guesses nothing it is an off-switch: that part's turn comes where this text
    accepts too few guesses to pay for them, and as what was accepted fades the others are tried
    again, now and then.

    Which part guesses depends on committed tokens and on what became of earlier guesses, never on
    this round's chance, so both rules stay exact; each generation begins anew.
    """

    parts: tuple[Draft, ...]
    tokens: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    price: Annotated[float, Within(2.0**-50)]
    trust: Annotated[float, Within(2.0**-50)] = TRUST
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
        followed = self.running.follow(context, self.trust)
        guesses = [tokens[here] - 1 for tokens in self.tokens]
        seconds = [row[here] for row in self.seconds]
        price = self._price(seconds, followed)

        def worth(part: int) -> float:
            accepted = guesses[part] * followed.shares.get(self._models[part], 1.0)
            return 1 + accepted - price * seconds[part]

        best = max(range(len(self.parts)), key=worth)
        tree = self.parts[best].propose(context, chance.inner("part", (best,)))
        found = Proposal(context, tree, self._models[best], guesses[best], seconds[best])
        self.running.keep(found)
        return tree

    def _price(self, seconds: Sequence[float], followed: Followed) -> float:
        """The tokens per second of this text so far, drawn towards the plan's, and at least those
        of plain decoding, if it is a part.
        """
        prior = self.trust * min(seconds)
        tokens = self.price * prior + followed.tokens
        plain = [1 / its for part, its in zip(self.parts, seconds, strict=True) if part == PLAIN]
        return max([tokens / (prior + followed.seconds), *plain])

    @functools.cached_property
    def _models(self) -> list[tuple[str, ...]]:
        """The models that each part guesses with: drafts of the same models fare alike."""
        return [tuple(sorted(models_in(part))) for part in self.parts]
