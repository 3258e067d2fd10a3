"""Tokens per round of any fixed tree, predicted in five ways and compared with measurements.

"root", "depth and rank" and "depth, rank and parent" know the rounds of one wide tree and split its
rates so far; "every position" has a rate per rank over whole texts; "replay" plays the tree's
rounds along each text: a guess of rank r is the same token in every fixed tree that reaches it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import ROOT, Shape, TokenTree
from specdec_lib.core.tree.shape import children_of
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance.rates import rank_rates
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.replay.cascade_rounds import RoundAlong, rounds_along
from specdec_lib.theory import best_tree, expected_tokens, monotone
from specdec_lib.workload import Prompt, seeds

RANKS = 16
# the rank from 0 at which each token of a text would have been guessed; None beyond `RANKS`
Taken = Sequence[int | None]
PREDICTORS = ("root", "depth and rank", "depth, rank and parent", "every position", "replay")


def taken_ranks(generation: Generation, draft: Draft, chance: Chance) -> tuple[int | None, ...]:
    """The rank of each generated token among the children that `draft` would give its context:
    `RANKS` of a `TreeDraft`, in one pass over the text; of another draft as many as its own width.

    Raises ValueError for siblings that are drawn: what they hold depends on where a round starts.
    """
    tokens = generation.tokens
    prompt = Context.of(generation.context.tokens[: len(generation.context) - len(tokens)])
    guesses = zip(_guesses(draft, prompt, tokens, chance), tokens, strict=True)
    return tuple(each.index(token) if token in each else None for each, token in guesses)


def _guesses(
    draft: Draft, prompt: Context, tokens: Sequence[int], chance: Chance
) -> Iterator[list[int]]:
    """What would be guessed for each of the tokens, best first."""
    if isinstance(draft, TreeDraft):
        _check_siblings(draft.siblings in ("ranked", "top"))
        chain = TokenTree.of_paths(prompt, [tokens[:-1]])
        for node, logits in enumerate(draft.model.score(prompt, chain)):
            yield [child.token for child in draft.children(chain, node, logits, chance, RANKS)]
        return
    for length in range(len(tokens)):
        tree = draft.propose(prompt.extended(tokens[:length]), chance)
        _check_siblings(not tree.has_rows)
        yield [tree.tokens[child] for child in tree.children(ROOT)][:RANKS]


def _check_siblings(fixed: bool) -> None:
    if not fixed:
        raise ValueError('only "ranked" or "top" siblings are the same in every tree')


def ranks_by_temperature(
    generations: Iterable[tuple[Any, Prompt, Generation]], draft: Draft, *, seed: int = 0
) -> dict[float, list[tuple[int | None, ...]]]:
    """`taken_ranks` of what `sweep.grid.generations` yields with this seed, by temperature."""
    found: dict[float, list[tuple[int | None, ...]]] = {}
    for setting, prompt, generation in generations:
        chance = Chance(seeds([prompt], seed)[0], setting.sampler)
        taken = taken_ranks(generation, draft, chance)
        found.setdefault(setting.sampler.temperature, []).append(taken)
    return found


def replay_shape(shape: Shape, taken: Taken) -> Iterator[RoundAlong]:
    """The rounds of a tree of this shape; a proposal is the nodes that the text reaches."""
    children = children_of(shape.parents)

    def propose(start: int) -> tuple[int, list[int]]:
        reached = [ROOT]
        for rank in taken[start:]:
            if rank is None or rank >= len(children[reached[-1]]):
                break
            reached.append(children[reached[-1]][rank])
        return len(reached) - 1, reached

    return rounds_along(len(taken), propose)


def replayed_tokens(trees: Mapping[str, Shape], texts: Sequence[Taken]) -> pd.DataFrame:
    """Of each tree along the texts: draft, tokens_per_round, _low and _high, rounds, prompts."""
    rows = []
    for name, shape in trees.items():
        rounds = _rounds(shape, texts)
        ratio = named_interval("tokens_per_round", bootstrap(map(len, texts), rounds))
        rows.append({"draft": name} | ratio | {"rounds": sum(rounds), "prompts": len(texts)})
    return pd.DataFrame(rows)


def replayed_guesses(shape: Shape, texts: Sequence[Taken]) -> pd.DataFrame:
    """What `rank_rates` reads of the rows of guesses, for a tree of this shape along the texts:
    prompt, depth, rank, parent_rank, accepted; without guesses for a text's last token.
    """
    children, rows = children_of(shape.parents), []
    for prompt, taken in enumerate(texts):
        for start, _, _, nodes in replay_shape(shape, taken):
            for depth, node in enumerate(nodes[: max(0, len(taken) - 1 - start)], 1):
                above, found = shape.ranks[node] if node else -1, taken[start + depth - 1]
                ranks = range(len(children[node]))
                rows += [(prompt, depth, rank, above, rank == found) for rank in ranks]
    return pd.DataFrame(rows, columns=["prompt", "depth", "rank", "parent_rank", "accepted"])


def position_rates(texts: Sequence[Taken], *, ranks: int = RANKS) -> pd.DataFrame:
    """How often each rank was taken at all positions: rank, at_risk, rate, low, high, prompts."""
    lengths, rows = [len(taken) for taken in texts], []
    for rank in range(ranks):
        rate = bootstrap([taken.count(rank) for taken in texts], lengths)
        rows.append((rank, sum(lengths), *rate, len(texts)))
    return pd.DataFrame(rows, columns=["rank", "at_risk", "rate", "low", "high", "prompts"])


def predicted_shapes(texts: Sequence[Taken]) -> dict[str, Shape]:
    """Chains, regular trees, and the best fixed trees for the rates of these texts."""
    rates = monotone([position_rates(texts).rate.tolist()])
    regular = ((8,), (3, 3), (2, 2, 2), (2, 1, 1, 1), (4, 2, 1, 1))
    return (
        {f"chain of {length}": Shape.chain(length) for length in (1, 2, 4, 6, 8)}
        | {"·".join(map(str, widths)): Shape.of_widths(widths) for widths in regular}
        | {f"best of {budget}": best_tree(rates, budget, 8) for budget in (8, 16, 32)}
    )


def predict_tokens(
    trees: Mapping[str, Shape], looked_at: pd.DataFrame, texts: Sequence[Taken]
) -> pd.DataFrame:
    """Tokens per round of each tree by each predictor: name, predictor, predicted; from the
    guesses of a wide tree (`looked_at`) and `taken_ranks` along the same texts.
    """
    every = monotone([position_rates(texts).rate.tolist()])
    root = monotone(rank_rates(looked_at[looked_at.depth == 1]))
    by_depth = rank_rates(looked_at)
    deeper = monotone([[rate / max(1.0, sum(one)) for rate in one] for one in by_depth])
    rows = []
    for name, shape in trees.items():
        values = (
            expected_tokens(shape, root),
            expected_tokens(shape, deeper),
            _expected_by_parent(shape, looked_at),
            expected_tokens(shape, every),
            sum(map(len, texts)) / sum(_rounds(shape, texts)),
        )
        rows += [(name, *pair) for pair in zip(PREDICTORS, values, strict=True)]
    return pd.DataFrame(rows, columns=["name", "predictor", "predicted"])


def compare_predictions(predicted: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """`predict_tokens` beside `replayed_tokens` of the same trees: with measured, low, high,
    prompts, and error (a share).
    """
    columns = {"draft": "name", "tokens_per_round": "measured", "prompts": "prompts"}
    columns |= {"tokens_per_round_low": "low", "tokens_per_round_high": "high"}
    found = predicted.merge(measured[list(columns)].rename(columns=columns), "left", "name")
    return found.assign(error=found.predicted / found.measured - 1)


def errors(table: pd.DataFrame, by: Sequence[str] = ("predictor",)) -> pd.DataFrame:
    """Per group of `compare_predictions` the median_error and largest_error, without their signs,
    and share_inside the intervals, NaN where there are none.
    """
    inside = (table.low <= table.predicted) & (table.predicted <= table.high)
    inside = inside.astype(float).where(table.low.notna())
    groups = table.assign(size=abs(table.error), inside=inside).groupby(list(by), sort=False)
    sizes = {"median_error": ("size", "median"), "largest_error": ("size", "max")}
    return groups.agg(**sizes, share_inside=("inside", "mean")).reset_index()


def _rounds(shape: Shape, texts: Sequence[Taken]) -> list[int]:
    return [sum(1 for _ in replay_shape(shape, taken)) for taken in texts]


def _expected_by_parent(shape: Shape, looked_at: pd.DataFrame) -> float:
    """`expected_tokens`, with separate rates below depth 1 where the parent was a first guess."""
    deeper = looked_at[looked_at.depth > 1].assign(depth=looked_at.depth - 1)
    root, first = rank_rates(looked_at[looked_at.depth == 1]), deeper.parent_rank == 0
    after = [rank_rates(rows) if len(rows) else [[]] for rows in (deeper[~first], deeper[first])]
    paths = [1.0]
    nodes = list(zip(shape.parents, shape.depths, shape.ranks, strict=True))
    for parent, depth, rank in nodes[1:]:
        rates = root if depth == 1 else after[shape.ranks[parent] == 0]
        vector = rates[min(max(depth - 1, 1), len(rates)) - 1]
        paths.append(paths[parent] * vector[rank] if rank < len(vector) else 0.0)
    return float(sum(paths))
