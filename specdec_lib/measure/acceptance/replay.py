"""A text's ranks in, the rounds of any fixed tree along it out: exact, and without a model.

Under `look_up` the text is the target's own, whatever guesses are made, and a guess of rank r at a
position is the same token in every tree that comes there. So the rank that the text takes at each
position settles every round of every tree of ranked siblings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, Shape, TokenTree
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance.rates import interval
from specdec_lib.workload import Prompt, seeds

if TYPE_CHECKING:
    from pandas import DataFrame

RANKS = 16

Taken = Sequence[int | None]
"""Per token of a text the rank at which it would have been guessed, from 0; None where it is not
among the first `RANKS`.
"""


def taken_ranks(
    generation: Generation, draft: Draft, chance: Chance, *, ranks: int = RANKS
) -> tuple[int | None, ...]:
    """The rank of each generated token among the children that `draft` would give its context.

    draft     a tree's own widths do not matter, it is asked for so many `ranks` in one pass over
              the text; another draft is asked at each position, and its own width below the root is
              what is known
    chance    the one that the text was generated with

    Raises ValueError for siblings that are drawn: what they hold depends on where a round starts.
    """
    if (siblings := getattr(draft, "siblings", "ranked")) not in ("ranked", "top"):
        raise ValueError(
            f'only "ranked" or "top" siblings are the same in every tree, got {siblings!r}'
        )
    tokens = generation.tokens
    prompt = Context.of(generation.context.tokens[: len(generation.context) - len(tokens)])
    guessed = _guessed(draft, prompt, tokens, chance, ranks)
    return tuple(
        each.index(token) if token in each else None
        for each, token in zip(guessed, tokens, strict=True)
    )


def _guessed(
    draft: Draft, prompt: Context, tokens: Sequence[int], chance: Chance, ranks: int
) -> Iterator[list[int]]:
    """What would be guessed for each of the tokens, best first."""
    if isinstance(draft, TreeDraft):
        chain = TokenTree.rooted(prompt).grown(
            tokens[:-1], range(len(tokens) - 1), source="", scores=[0.0] * (len(tokens) - 1)
        )
        for node, logits in enumerate(draft.model.score(prompt, chain)):
            yield [child.token for child in draft.children(chain, node, logits, chance, ranks)]
        return
    for length in range(len(tokens)):
        tree = draft.propose(prompt.extended(tokens[:length]), chance)
        yield [tree.tokens[child] for child in tree.children(ROOT)][:ranks]


def texts_of(
    played: Iterable[tuple[Any, Prompt, Generation]], draft: Draft, *, seed: int = 0
) -> dict[float, list[tuple[int | None, ...]]]:
    """`taken_ranks` of what `sweep.generations` yields, by temperature; `seed` is the one given to
    it.
    """
    found: dict[float, list[tuple[int | None, ...]]] = {}
    for setting, prompt, generation in played:
        chance = Chance(seeds([prompt], seed)[0], setting.sampler)
        found.setdefault(setting.sampler.temperature, []).append(
            taken_ranks(generation, draft, chance)
        )
    return found


def replayed(shape: Shape, taken: Taken) -> list[int]:
    """How many tokens each round of a tree of this shape emits along the text, the correction or
    bonus included.

    The walk goes on where the rank taken has a slot; else the round ends with that token. The
    text's end cuts the last round.
    """
    return [min(len(walk), len(taken) - start) for start, walk in _walks(shape, taken)]


def replayed_tokens(
    trees: Mapping[str, Shape], texts: Sequence[Taken], *, seed: int = 0
) -> "DataFrame":
    """`tokens` of each tree along the texts, a prompt each, with its interval: draft,
    tokens_per_round, _low and _high, rounds, prompts.
    """
    import pandas as pd

    rows = []
    for name, shape in trees.items():
        rounds = [len(replayed(shape, taken)) for taken in texts]
        ratio, low, high = interval([len(taken) for taken in texts], rounds, seed)
        rows.append((name, ratio, low, high, sum(rounds), len(texts)))
    return pd.DataFrame(
        rows,
        columns=[
            "draft",
            "tokens_per_round",
            "tokens_per_round_low",
            "tokens_per_round_high",
            "rounds",
            "prompts",
        ],
    )


def replayed_guesses(shape: Shape, texts: Sequence[Taken]) -> "DataFrame":
    """What `rank_rates` reads of the rows of guesses, for a tree of this shape along the texts:
    prompt, depth, rank, parent_rank, accepted.

    The last token of a text has no guesses: a limit takes them away. Where a stop token ended the
    text they were there, and are left out.
    """
    import pandas as pd

    children, rows = _children(shape), []
    for prompt, taken in enumerate(texts):
        for start, walk in _walks(shape, taken):
            for depth, node in enumerate(walk[: max(0, len(taken) - 1 - start)], 1):
                taken_here = taken[start + depth - 1]
                rows += [
                    (prompt, depth, rank, shape.ranks[node] if node else -1, rank == taken_here)
                    for rank in range(len(children[node]))
                ]
    return pd.DataFrame(rows, columns=["prompt", "depth", "rank", "parent_rank", "accepted"])


def position_rates(texts: Sequence[Taken], *, ranks: int = RANKS, seed: int = 0) -> "DataFrame":
    """How often each rank was taken, over all positions of the texts, wherever rounds start: rank,
    at_risk, rate, low, high.

    Raises ValueError if there is no position.
    """
    import pandas as pd

    lengths = [len(taken) for taken in texts]
    if not sum(lengths):
        raise ValueError("rates need at least 1 position, got none")
    rows = []
    for rank in range(ranks):
        rate, low, high = interval([taken.count(rank) for taken in texts], lengths, seed)
        rows.append((rank, sum(lengths), rate, low, high))
    return pd.DataFrame(rows, columns=["rank", "at_risk", "rate", "low", "high"])


def _walks(shape: Shape, taken: Taken) -> Iterator[tuple[int, list[int]]]:
    """Per round where it starts, and the nodes it comes to, root first: as many as it emits, one
    more where the text ends below the last.
    """
    children, start = _children(shape), 0
    while start < len(taken):
        walk = [ROOT]
        for rank in taken[start:]:
            if rank is None or rank >= len(children[walk[-1]]):
                break
            walk.append(children[walk[-1]][rank])
        yield start, walk
        start += len(walk)


def _children(shape: Shape) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in shape.parents]
    for node, parent in enumerate(shape.parents[1:], 1):
        children[parent].append(node)
    return children
