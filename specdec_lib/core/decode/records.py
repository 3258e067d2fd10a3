"""The records of decoding: a round, and the generation that its rounds make."""

from dataclasses import dataclass

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Usage
from specdec_lib.core.tree import TokenTree


@dataclass(frozen=True)
class Round:
    """The record of one round.

    tree       what was proposed, without rows
    path       the accepted nodes, from below the root down; none after a stop token
    emitted    the accepted tokens and one more, fewer where a stop token or a limit cuts
    sources    the drafter of each emitted token; "target" for the correction or bonus
    tried      depths whose guesses were tested: the accepted ones, and one where all failed
    usage      per model
    """

    tree: TokenTree
    path: tuple[int, ...]
    emitted: tuple[int, ...]
    sources: tuple[str, ...]
    tried: int
    usage: dict[str, Usage]
    seconds: float

    @property
    def proposed(self) -> int:
        """The number of guesses that the target checked, right or wrong."""
        return self.tree.guesses

    @property
    def accepted(self) -> int:
        """The number of accepted guesses, a stop token among them, and none after it."""
        return len(self.path)

    @property
    def overhead_seconds(self) -> float:
        """Seconds that no model counts: n-gram tables, copying, masks and Python."""
        return self.seconds - sum(used.seconds for used in self.usage.values())


@dataclass(frozen=True)
class Generation:
    """A decoded continuation and its rounds.

    stop       "stop token", "length" or "context"
    prefill    per model: what reading the prompt took, before the first round
    """

    context: Context
    rounds: tuple[Round, ...]
    stop: str
    prefill: dict[str, Usage]

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that these rounds emitted."""
        return tuple(token for played in self.rounds for token in played.emitted)

    @property
    def tokens_per_round(self) -> float:
        """The emitted tokens, corrections and bonuses included, divided by the rounds."""
        return len(self.tokens) / len(self.rounds)
