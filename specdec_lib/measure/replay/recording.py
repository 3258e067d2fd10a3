"""What the target wrote, and what every drafter would have said at each of its tokens: all that a
cascade's rounds follow from.

Under `look_up` the text is the target's own, whatever is guessed, and a guess decides nothing once
one before it was wrong. So the drafters' choices along the text settle which guesses are accepted,
for any K matrix and any lenience.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.workload import Ladder, Pair, Prompt, seeds

MAX_GRAM = "Max-Gram"
MODELS = ("middle", "draft")
LONGEST_COPY = 64  # tokens that Max-Gram is asked for at each place: no setting may ask it for more
# places behind the text's end that are recorded too: drafters guess past it, and what they guess
# there costs passes
AHEAD = 16
UNWARPED = Sampler(1.0)


@dataclass(frozen=True)
class CascadeSetting:
    """A cascade by the names of its drafters: "middle", "draft", "Max-Gram", strongest first.

    matrix    the K matrix in increments, a row and a column per drafter
    """

    drafters: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    lenience: float = 1.0
    exempt_max_gram: bool = True

    def draft(self, ladder: Ladder | Pair) -> Relay:
        """The cascade itself.

        Raises ValueError if the ladder has no such drafter, or as `cascade.from_matrix` does.
        """
        parts = [
            ladder.max_gram if name == MAX_GRAM else _model(ladder, name) for name in self.drafters
        ]
        return from_matrix(
            parts, self.matrix, lenience=self.lenience, exempt_max_gram=self.exempt_max_gram
        )


class Choices(NamedTuple):
    """One model's choice at each place of a text, and how much it makes of every token there.

    worth    at temperature 0 unwarped probabilities; with noise exp(−gap to the choice), 1 for the
             choice and 0 for what the law excludes
    """

    tokens: tuple[int, ...]
    worth: Float[np.ndarray, "places vocab"]


@dataclass(frozen=True, eq=False)
class Recording:
    """One text of the target, and what drafters say at each of its places.

    tokens     what was emitted
    choices    per model, at each place of the text and some behind its end
    copies     per place what Max-Gram copies there
    memory     what a replay remembers for the next; emptying it never changes a result
    """

    prompt: str
    sampler: Sampler
    tokens: tuple[int, ...]
    choices: Mapping[str, Choices]
    copies: tuple[tuple[int, ...], ...]
    memory: dict[Hashable, dict] = field(default_factory=dict)


def record(
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    sampler: Sampler = Sampler(),
    *,
    drafters: Sequence[str] = MODELS,
    seed: int = 0,
    max_new_tokens: int = 128,
    progress: bool = True,
) -> list[Recording]:
    """The target's text of each prompt, as `sweep` would write it, with every drafter's choices
    along it: one pass of each drafter per text.

    Raises ValueError if there is no prompt, the ladder has no such drafter, or `max_new_tokens` is
    below 1.
    """
    from tqdm.auto import tqdm

    if not prompts:
        raise ValueError("a recording needs at least one prompt, got none")
    models = {name: _model(ladder, name) for name in drafters}
    found = []
    for prompt, prompt_seed in zip(
        tqdm(prompts, desc="recording", disable=not progress, mininterval=1),
        seeds(prompts, seed),
        strict=True,
    ):
        chance, tokens = Chance(prompt_seed, sampler), ladder.encode(prompt)
        given = tokens if isinstance(tokens, Context) else Context.of(tokens)
        whole = decode(
            ladder.target,
            NoDraft(),
            given,
            chance,
            max_new_tokens=max_new_tokens,
            stop_tokens=ladder.stop_tokens,
        )
        end, text = len(whole.tokens), whole.tokens
        if whole.stop != "context":
            text += decode(
                ladder.target, NoDraft(), whole.context, chance, max_new_tokens=AHEAD
            ).tokens
        choices = {name: _choices(model, given, text, chance) for name, model in models.items()}
        copies = tuple(_copies(replace(ladder.max_gram, length=LONGEST_COPY), given, text, chance))
        found.append(Recording(prompt.name, sampler, text[:end], choices, copies))
    return found


def _choices(
    model: LanguageModel, given: Context, text: tuple[int, ...], chance: Chance
) -> Choices:
    chain = TokenTree.rooted(given).grown(
        text[:-1], range(len(text) - 1), source="", scores=[0.0] * (len(text) - 1)
    )
    tokens, worth = [], []
    for place, logits in enumerate(model.score(given, chain)):
        position = len(given) + place
        tokens.append(chance.choose(logits, position))
        if chance.sampler.temperature == 0:
            worth.append(UNWARPED.probs(logits).numpy(force=True))
        else:
            worth.append(np.exp(-np.array(chance.gaps(logits, position, range(len(logits))))))
    return Choices(tuple(tokens), np.stack(worth))


def _copies(
    max_gram: MaxGram, given: Context, text: tuple[int, ...], chance: Chance
) -> Iterator[tuple[int, ...]]:
    for place in range(len(text)):
        yield max_gram.propose(given.extended(text[:place]), chance).tokens[1:]


def _model(ladder: Ladder | Pair, name: str) -> LanguageModel:
    known = [model for model in MODELS if hasattr(ladder, model)]
    if name not in known:
        raise ValueError(f"the drafters here are {', '.join([*known, MAX_GRAM])}, got {name!r}")
    return getattr(ladder, name)
