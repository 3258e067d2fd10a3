"""The rounds of a setting along a recorded text; here those of a fixed tree of ranked siblings: a
guess of rank r at a position is the same token in every tree that reaches it.

Under `look_up` the text is the target's own, whatever is proposed: a round accepts the proposals
with which the text goes on, and then emits the text's next token.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, Shape
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.replay.recording import chain_of
from specdec_lib.workload import Prompt, seeds

RANKS = 16

Taken = Sequence[int | None]
"""The rank from 0 at which each token of a text would have been guessed; None where it is not among
the first `RANKS`.
"""


class RoundAlong(NamedTuple):
    """One round of a setting along a text.

    start       the place of the text's token that the first proposal stands for
    accepted    how many proposals the text confirms
    emitted     tokens: one more than was accepted, but where the text ends
    """

    start: int
    accepted: int
    emitted: int
    proposal: Any


def rounds_along(length: int, propose: Callable[[int], tuple[int, Any]]) -> Iterator[RoundAlong]:
    """The rounds along a text; `propose` tells, for a start, how many proposals are accepted, and
    which they are.
    """
    start = 0
    while start < length:
        accepted, proposal = propose(start)
        yield RoundAlong(start, accepted, min(accepted + 1, length - start), proposal)
        start += accepted + 1


def taken_ranks(
    generation: Generation, draft: Draft, chance: Chance, *, ranks: int = RANKS
) -> tuple[int | None, ...]:
    """The rank of each generated token among the children that `draft` would give its context.

    draft     a `TreeDraft` gives so many `ranks` in one pass over the text; another draft proposes
              at each position, as many as its own width below the root
    chance    the one that the text was generated with

    Raises ValueError for siblings that are drawn: what they hold depends on where a round starts.
    """
    tokens = generation.tokens
    prompt = Context.of(generation.context.tokens[: len(generation.context) - len(tokens)])
    guesses = _guesses(draft, prompt, tokens, chance, ranks)
    return tuple(
        each.index(token) if token in each else None
        for each, token in zip(guesses, tokens, strict=True)
    )


def _guesses(
    draft: Draft, prompt: Context, tokens: Sequence[int], chance: Chance, ranks: int
) -> Iterator[list[int]]:
    """What would be guessed for each of the tokens, best first."""
    if isinstance(draft, TreeDraft):
        _check_siblings(draft.siblings in ("ranked", "top"))
        chain = chain_of(prompt, tokens[:-1])
        for node, logits in enumerate(draft.model.score(prompt, chain)):
            yield [child.token for child in draft.children(chain, node, logits, chance, ranks)]
        return
    for length in range(len(tokens)):
        tree = draft.propose(prompt.extended(tokens[:length]), chance)
        _check_siblings(not tree.has_rows)
        yield [tree.tokens[child] for child in tree.children(ROOT)][:ranks]


def _check_siblings(fixed: bool) -> None:
    if not fixed:
        raise ValueError(
            'only "ranked" or "top" siblings are the same in every tree, got some that are drawn'
        )


def ranks_by_temperature(
    generations: Iterable[tuple[Any, Prompt, Generation]], draft: Draft, *, seed: int = 0
) -> dict[float, list[tuple[int | None, ...]]]:
    """`taken_ranks` of what `sweep.grid.generations` yields, by the setting's temperature.

    seed    the one that was given to `generations`
    """
    found: dict[float, list[tuple[int | None, ...]]] = {}
    for setting, prompt, generation in generations:
        chance = Chance(seeds([prompt], seed)[0], setting.sampler)
        taken = taken_ranks(generation, draft, chance)
        found.setdefault(setting.sampler.temperature, []).append(taken)
    return found


def replay_shape(shape: Shape, taken: Taken) -> Iterator[RoundAlong]:
    """The rounds of a tree of this shape; a proposal is the nodes that the text reaches."""
    children = shape_children(shape)

    def propose(start: int) -> tuple[int, list[int]]:
        reached = [ROOT]
        for rank in taken[start:]:
            if rank is None or rank >= len(children[reached[-1]]):
                break
            reached.append(children[reached[-1]][rank])
        return len(reached) - 1, reached

    return rounds_along(len(taken), propose)


def shape_children(shape: Shape) -> list[list[int]]:
    """The children of each node."""
    children: list[list[int]] = [[] for _ in shape.parents]
    for node, parent in enumerate(shape.parents[1:], 1):
        children[parent].append(node)
    return children
