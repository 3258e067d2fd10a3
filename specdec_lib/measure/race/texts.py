"""What everybody has to write: the target's own continuation of each prompt, and how long it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import Contender
from specdec_lib.measure.sweep.repetition import LOOPING, repetition
from specdec_lib.workload import Ladder, Prompt, seeds

# nats: where the two best tokens lie closer, rounding of a different order of sums may decide
# between them
NEAR_TIE = 1e-3


@dataclass(frozen=True)
class Text:
    """A prompt, and how the target goes on under one sampler: up to a stop token, or as long as was
    asked for.
    """

    name: str
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    seed: int

    @property
    def loops(self) -> bool:
        """Whether 0.3 or more of it repeats itself."""
        return repetition(self.tokens) >= LOOPING


def texts(
    target: LanguageModel,
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler,
    *,
    tokens: int,
    seed: int,
) -> Iterator[Text]:
    """Each prompt continued by plain decoding, by at most so many tokens."""
    for prompt, own in zip(prompts, seeds(prompts, seed), strict=True):
        asked = ladder.encode(prompt)
        made = decode(
            target,
            NoDraft(),
            asked,
            Chance(own, sampler),
            max_new_tokens=tokens,
            stop_tokens=ladder.stop_tokens,
        )
        yield Text(prompt.name, asked, made.tokens, own)


def divergence(
    target: LanguageModel, contender: Contender, text: Text, tokens: Sequence[int]
) -> float:
    """NaN where these are the text's tokens; else by how many nats the target preferred the text's
    token to another where they first differ.

    Raises ValueError if there are not as many tokens, or an exact contender differs at more than a
    near tie: it would be timed for other work.
    """
    if len(tokens) != len(text.tokens):
        raise ValueError(
            f"{contender.name} wrote {len(tokens)} tokens of {text.name}, {len(text.tokens)} were"
            " asked for"
        )
    place, margin = first_difference(target, contender.sampler, text, tokens)
    if margin > NEAR_TIE:
        raise ValueError(
            f"{contender.name} does not write what the target does: token {place} of {text.name}"
            f" lies {margin:.3g} nats below the best"
        )
    return margin


def first_difference(
    target: LanguageModel, sampler: Sampler, text: Text, tokens: Sequence[int]
) -> tuple[int | None, float]:
    """Where these tokens first differ from a text's, and by how many nats the target preferred its
    own; None and NaN where they nowhere do.
    """
    place = next(
        (
            at
            for at, (one, other) in enumerate(zip(tokens, text.tokens, strict=True))
            if one != other
        ),
        None,
    )
    if place is None:
        return None, float("nan")
    context = Context.of(text.prompt + text.tokens[:place])
    logits = target.score(context, TokenTree.rooted(context))[0]
    [margin] = Chance(text.seed, sampler).gaps(logits, len(context), [tokens[place]])
    return place, abs(margin)
