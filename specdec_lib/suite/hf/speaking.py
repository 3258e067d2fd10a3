"""One token after another as `generate` makes them, however many a round brings. Under `look_up` a
target's choice is asked for exactly once per emitted token, in the order of the text; all that
`generate` does at a token is done there, and the text ends at the same token.
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Round
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up


@dataclass
class Speech:
    """What has been said, and what is done at each new token.

    tokens     the whole text as `generate` knows it, padding included
    sampled    whether tokens are drawn from the processed distribution
    said       how many tokens of the current round
    """

    tokens: Int[Tensor, "1 length"]
    processors: LogitsProcessorList
    criteria: StoppingCriteriaList
    streamer: BaseStreamer | None
    sampled: bool
    stopped: bool = False
    said: int = 0

    def look_up(
        self, tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
    ) -> Verdict:
        """The rule `look_up` on processed logits, whose choices are emitted as they are made."""
        self.said = 0
        own = Sampler(1.0 if self.sampled else 0.0)  # processors do the rest
        return look_up(tree, target_logits, Speaking(chance.seed, own, chance.nesting, speech=self))

    def heard(self, played: Round) -> Round:
        """The round without what lies beyond the end of the text."""
        emitted, sources = played.emitted[: self.said], played.sources[: self.said]
        return replace(played, emitted=emitted, sources=sources)

    def processed(self, logits: Float[Tensor, " vocab"]) -> Float[Tensor, " vocab"]:
        """What is chosen from, in float32 as in `generate`."""
        raw = logits[None].to(device=self.tokens.device, dtype=torch.float32, copy=True)
        return self.processors(self.tokens, raw)[0]

    def say(self, token: int) -> None:
        """Append a token, tell the streamer, and see whether it was the last."""
        new = torch.tensor([token], device=self.tokens.device)
        self.tokens = torch.cat([self.tokens, new[:, None]], dim=-1)
        self.said += 1
        self.stopped = bool(self.criteria(self.tokens, None).all())
        if self.streamer is not None:
            self.streamer.put(new.cpu())


@dataclass(frozen=True)
class Speaking(Chance):
    """A `Chance` whose choices are processed before and said after, until the speech stops."""

    speech: Speech = field(kw_only=True)

    def choose(self, logits: Float[Tensor, " vocab"], position: int) -> int:
        """The token at `position`."""
        if self.speech.stopped:
            return super().choose(logits, position)
        token = super().choose(self.speech.processed(logits), position)
        self.speech.say(token)
        return token
