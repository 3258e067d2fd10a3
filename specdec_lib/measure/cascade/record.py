"""Texts of the target, and what every drafter would choose at each of their tokens: that settles
which guesses are accepted, for any K matrix and any lenience.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler, unwarped
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.cascade import Relay, from_matrix
from specdec_lib.drafts.cascade.matrix import format_matrix
from specdec_lib.drafts.cascade.reviewed import Lenient
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.target_text import TargetText, find_text, write_text
from specdec_lib.workload import Ladder, Pair, Prompt, seeds

TARGET = "target"
MAX_GRAM = "Max-Gram"
LONGEST_COPY = 64  # tokens of Max-Gram that are recorded at each place: no setting may want more
AHEAD = 16  # places after the text that are recorded too: guesses past its end cost passes


@checked
@dataclass(frozen=True)
class CascadeSetting:
    """A cascade by the names of its drafters: "middle", "draft", "Max-Gram", strongest first.

    matrix    the K matrix in increments, a row and a column per drafter
    """

    drafters: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    lenience: Lenient = 1.0
    exempt_max_gram: bool = True

    def __post_init__(self) -> None:  # lists and arrays pass for tuples, and replays are cached
        object.__setattr__(self, "drafters", tuple(self.drafters))
        rows = tuple(tuple(map(int, row)) for row in self.matrix)
        object.__setattr__(self, "matrix", rows)

    @property
    def labels(self) -> dict[str, Any]:
        """As columns of a table."""
        names = {"drafters": " + ".join(self.drafters), "matrix": format_matrix(self.matrix)}
        return names | {"lenience": self.lenience, "exempt": self.exempt_max_gram}

    def draft(self, ladder: Ladder | Pair) -> Relay:
        """The cascade itself.  Raises ValueError for other drafters, or as `from_matrix` does."""
        known = _models(ladder) | {MAX_GRAM: ladder.max_gram}
        if missing := [name for name in self.drafters if name not in known]:
            raise ValueError(f"the drafters here are {', '.join(known)}, got {missing[0]!r}")
        more = {"lenience": self.lenience, "exempt_max_gram": self.exempt_max_gram}
        return from_matrix([known[name] for name in self.drafters], self.matrix, **more)


def read_matrix(said: str) -> tuple[tuple[int, ...], ...]:
    """A K matrix from the line that a stored table has of it, "5 14 10 / 0 1 10 / 0 0 10"."""
    return tuple(tuple(map(int, row.split())) for row in said.split("/"))


class Choices(NamedTuple):
    """One model's choice at each place of a text, and its worth of every token that a drafter may
    offer there: at temperature 0 the unwarped probability; with noise exp(−gap to the choice).
    """

    tokens: tuple[int, ...]
    worth: tuple[Mapping[int, float], ...]


@dataclass(frozen=True, eq=False)
class Recording:
    """One text of the target; per model its choices at each of its places and some after its end,
    and per place the tokens that Max-Gram copies there.
    """

    prompt: str
    sampler: Sampler
    tokens: tuple[int, ...]
    choices: Mapping[str, Choices]
    copies: tuple[tuple[int, ...], ...]


@checked
def record(
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    texts: Sequence[TargetText] | None = None,
    progress: bool = True,
) -> list[Recording]:
    """The target's text of each prompt, as in a sweep, with every drafter's choices along it.

    texts    what the target writes under this sampler and seed; without them it is decoded here

    Past the text's end the draft goes on, which changes the last round's passes alone.
    """
    if not prompts:
        raise ValueError("a recording needs prompts, got none")
    models = _models(ladder)
    found = []
    copying = replace(ladder.max_gram, length=LONGEST_COPY)
    for prompt in tqdm(prompts, desc="recording", disable=not progress, mininterval=1):
        chance = Chance(seeds([prompt], seed)[0], sampler)
        given = ladder.encode(prompt)
        given = given if isinstance(given, Context) else Context.of(given)
        if texts is None:
            options = {"seed": seed, "max_new_tokens": max_new_tokens}
            written = write_text(ladder, prompt, sampler, **options).tokens
        else:
            written = find_text(texts, prompt, sampler).tokens[:max_new_tokens]
        text = written
        longer = given.extended(written)
        if len(longer) <= ladder.draft.max_positions:
            text += decode(ladder.draft, NoDraft(), longer, chance, max_new_tokens=AHEAD).tokens
        contexts = (given.extended(text[:place]) for place in range(len(text)))
        copies = tuple(copying.propose(one, chance).tokens[1:] for one in contexts)
        choices = _choices(models, given, text, copies, chance)
        found.append(Recording(prompt.name, sampler, written, choices, copies))
    return found


def _choices(
    models: Mapping[str, LanguageModel],
    given: Context,
    text: tuple[int, ...],
    copies: Sequence[tuple[int, ...]],
    chance: Chance,
) -> dict[str, Choices]:
    """Every model's choice at each place, and its worth of each token chosen or copied there."""
    chain = TokenTree.of_paths(given, [text[:-1]])
    logits = {name: model.score(given, chain) for name, model in models.items()}
    positions = range(len(given), len(given) + len(text))
    chosen = {name: tuple(map(chance.choose, rows, positions)) for name, rows in logits.items()}
    offered = [set(tokens) for tokens in zip(*chosen.values(), strict=True)]
    offered[-1] |= set(copies[-1])  # guesses past the last place are looked up there
    for start, copied in enumerate(copies):
        for tokens, token in zip(offered[start:], copied, strict=False):
            tokens.add(token)

    def worth(row: Float[Tensor, " vocab"], position: int, tokens: set[int]) -> dict[int, float]:
        listed = sorted(tokens)
        if chance.sampler.temperature == 0:
            return dict(zip(listed, unwarped(row, listed), strict=True))
        gaps = chance.gaps(row, position, listed)
        return {token: math.exp(-gap) for token, gap in zip(listed, gaps, strict=True)}

    return {
        name: Choices(chosen[name], tuple(map(worth, rows, positions, offered)))
        for name, rows in logits.items()
    }


def _models(ladder: Ladder | Pair) -> dict[str, LanguageModel]:
    """The models that draft, by name, strongest first; a pair has no middle one."""
    middle = ladder.middle if isinstance(ladder, Ladder) else None
    found = {"middle": middle, "draft": ladder.draft}
    return {name: model for name, model in found.items() if model is not None}
