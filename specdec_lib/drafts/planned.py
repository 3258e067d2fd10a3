"""The planned draft: in each round the one of several drafts that is worth its time.

A round of t expected tokens and c seconds is worth t − λ c, where λ is the price of time: the
tokens per second of the whole policy (`theory.choosing`).
"""

import functools
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import models_in
from specdec_lib.core.kinds import checked
from specdec_lib.core.locking import in_turn
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.max_gram import as_text, longest_ending

MATCHES = (1, 2, 4, 8)  # situation i + 1 begins where an ending of MATCHES[i] tokens stood before
SITUATIONS = range(len(MATCHES) + 1)
FADING = 0.95  # weight of a round's outcome against that of the next
TRUST = 20.0  # expected guesses after which the present text counts as much as development prompts


def situation(context: Context) -> int:
    """The bin, 0…4 by `MATCHES`, of the longest suffix that occurs earlier, in the prompt (or the
    encoder's tokens) or in the generation.
    """
    text, given = as_text(context.tokens), context.prompt_tokens
    first = text[:given] if context.source is None else as_text(context.source)
    most = MATCHES[-1]
    size = max(longest_ending(text, part[:-1], most) for part in (first, text[given:]))
    return bisect_right(MATCHES, size)


class Proposal(NamedTuple):
    """A proposal not verified yet, and how many guesses are expected to be accepted."""

    context: Context
    tree: TokenTree
    models: tuple[str, ...]
    expected: float


class Acceptance:
    """Accepted and expected guesses of this generation; copies and pickles of it start empty."""

    def __init__(self) -> None:
        self._last: Proposal | None = None
        self._sums: dict[tuple[str, ...], tuple[float, float]] = {}

    def __reduce__(self) -> tuple[type["Acceptance"], tuple[()]]:
        return Acceptance, ()

    @in_turn
    def follow(self, context: Context) -> dict[tuple[str, ...], float]:
        """Accepted ÷ expected guesses per set of models, shrunk towards 1; none in a new text."""
        last, self._last = self._last, None
        if last is None or context.begun is not last.context.tokens:
            self._sums = {}
        else:
            faded = {
                models: (FADING * accepted, FADING * expected)
                for models, (accepted, expected) in self._sums.items()
            }
            taken = _taken(last.tree, context.tokens[len(last.context) :])
            accepted, expected = faded.get(last.models, (0.0, 0.0))
            self._sums = faded | {last.models: (accepted + taken, expected + last.expected)}
        return {
            models: (TRUST + accepted) / (TRUST + expected)
            for models, (accepted, expected) in self._sums.items()
        }

    @in_turn
    def keep(self, proposal: Proposal) -> None:
        """Remember a proposal until the next `follow`."""
        self._last = proposal


def _taken(tree: TokenTree, tokens: tuple[int, ...]) -> int:
    """How many of these tokens in a row the tree guessed."""
    node, count = ROOT, 0
    for token in tokens:
        node = tree.child(node, token)
        if node is None:
            break
        count += 1
    return count


@checked
@dataclass(frozen=True, eq=False)
class Planned:
    """The guesses of the draft whose round is worth most here.

    parts              the drafts to choose from; of equal worth the first
    tokens, seconds    [parts][5 situations]: expected per round, bonus included
    price              λ, in tokens per second: how many tokens one second is worth

    Which part guesses depends on committed tokens and on what became of earlier guesses, never on
    this round's chance, so both rules stay exact; each generation begins anew.
    """

    parts: tuple[Draft, ...]
    tokens: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]
    price: float
    running: Acceptance = field(default_factory=Acceptance, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.parts or not self.price > 0:
            got = f"{len(self.parts)} and {self.price}"
            raise ValueError(f"a planned draft needs a part and a price above 0, got {got}")
        for name, table in (("tokens", self.tokens), ("seconds", self.seconds)):
            if [len(row) for row in table] != [len(SITUATIONS)] * len(self.parts):
                wanted = f"{len(SITUATIONS)} {name} for each of {len(self.parts)} parts"
                raise ValueError(f"a planned draft needs {wanted}, got {table}")

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        """The best part's tree; its outcome counts when `propose` gets this context extended."""
        here, accepted_share = situation(context), self.running.follow(context)
        best = self.best(here, accepted_share)
        tree = self.parts[best].propose(context, chance.inner("part", (best,)))
        expected = self.tokens[best][here] - 1
        self.running.keep(Proposal(context, tree, self._models[best], expected))
        return tree

    def best(self, here: int, accepted_share: Mapping[tuple[str, ...], float] | None = None) -> int:
        """Index of the part of most worth, its expected guesses scaled by `accepted_share`."""
        share = accepted_share or {}

        def worth(part: int) -> float:
            guesses = (self.tokens[part][here] - 1) * share.get(self._models[part], 1.0)
            return 1 + guesses - self.price * self.seconds[part][here]

        return max(range(len(self.parts)), key=worth)

    @functools.cached_property
    def _models(self) -> list[tuple[str, ...]]:
        """The models that each part guesses with: drafts of the same models fare alike."""
        return [tuple(sorted(models_in(part))) for part in self.parts]
