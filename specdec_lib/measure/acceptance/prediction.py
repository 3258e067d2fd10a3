"""A wide tree on development prompts predicts what a dozen other trees yield on held-out ones.

"root", "depth and rank" and "depth, rank and parent" know the rounds of one wide tree and split its
rates so far; "every position" has a rate per rank over whole texts; "replay" plays the tree's
rounds along each text: a guess of rank r is the same token in every fixed tree that reaches it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation
from specdec_lib.core.files import DATA
from specdec_lib.core.protocols import Draft, StateReader
from specdec_lib.core.tree import ROOT, Shape, TokenTree
from specdec_lib.core.tree.shape import children_of
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.measure.acceptance.rates import rank_rates
from specdec_lib.measure.cluster import Cluster, LadderRecipe, spread_rows
from specdec_lib.measure.ratios import interval, named_interval, sampling_of
from specdec_lib.measure.replaying import generations
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import TargetText, known_texts
from specdec_lib.measure.text_writing import texts_after
from specdec_lib.theory import best_tree, expected_tokens, monotone
from specdec_lib.workload import Ladder, Prompt, seeds

LADDER = LadderRecipe(device="cpu", runtime="fast")
PLACE = DATA / "measured" / "predicted.csv"
SAMPLERS = (Sampler(0.0), Sampler(1.0))
# the draft's tree, and the one that predicts
QUICK = (4, 2, 1, 1)
WIDE = (6, 3, 2, 1, 1, 1)
COLUMNS = ["temperature", "name", "predictor", "predicted", "measured", "low", "high", "prompts"]
RANKS = 16
# the rank from 0 at which each token of a text would have been guessed; None beyond `RANKS`
Taken = Sequence[int | None]
PREDICTORS = ("root", "depth and rank", "depth, rank and parent", "every position", "replay")


def measure_acceptance(
    development: Sequence[Prompt], held_out: Sequence[Prompt], cluster: Cluster | None = None
) -> pd.DataFrame:
    """`compare_predictions` of `predicted_shapes` by temperature: predicted on development prompts
    and measured on held-out ones.
    """
    ladder = LADDER.load()
    known, unseen = (
        ranks_of_prompts(
            prompts, ladder, texts_after(prompts, SAMPLERS, ladder, cluster=cluster), cluster
        )
        for prompts in (development, held_out)
    )
    tables = []
    for temperature, taken in known.items():
        trees = predicted_shapes(taken)
        guesses = replayed_guesses(Shape.of_widths(WIDE), taken)
        measured = replayed_tokens(trees, unseen[temperature])
        compared = compare_predictions(predict_tokens(trees, guesses, taken), measured)
        tables.append(compared.assign(temperature=temperature))
    return pd.concat(tables)[[*COLUMNS, "error"]]


def ranks_of_prompts(
    prompts: Sequence[Prompt],
    ladder: Ladder,
    texts: Sequence[TargetText],
    cluster: Cluster | None = None,
) -> dict[float, list[tuple[int | None, ...]]]:
    """`ranks_by_temperature` of what the target writes after these prompts."""
    items = [
        (key_of(prompt), (prompt, [text for text in texts if text.is_of(prompt)]))
        for prompt in prompts
    ]
    rows = spread_rows(rank_rows, items, ladder, {}, RowCache(None), cluster=cluster)
    found: dict[float, list[tuple[int | None, ...]]] = {}
    for row in rows:
        found.setdefault(row["temperature"], []).append(tuple(row["taken"]))
    return found


def rank_rows(ladder: Ladder, item: tuple[Prompt, Sequence[TargetText]]) -> list[Row]:
    """`taken_ranks` of the draft's tree on one prompt under `SAMPLERS`."""
    prompt, texts = item
    draft = TreeDraft(ladder.draft, widths=QUICK)
    settings = [Setting("", draft, sampler) for sampler in SAMPLERS]
    made = generations(settings, [prompt], ladder, texts=texts, progress=False)
    return [
        {"temperature": temperature, "taken": taken}
        for temperature, every in ranks_by_temperature(made, draft).items()
        for taken in every
    ]


def taken_ranks(generation: Generation, draft: Draft, chance: Chance) -> tuple[int | None, ...]:
    """The rank of each generated token among the children that `draft` would give its context:
    `RANKS` of a `TreeDraft`, in one pass over the text; of another draft, and where its model reads
    the target's states, as many as its own width.

    Raises ValueError for siblings that are drawn: what they hold depends on where a round starts.
    """
    tokens = generation.tokens
    prompt = Context.of(generation.context.tokens[: len(generation.context) - len(tokens)])
    if (
        isinstance(draft, TreeDraft)
        and draft.siblings in ("ranked", "top")
        and not (isinstance(draft.model, StateReader) and draft.model.target is not None)
    ):
        chain = TokenTree.of_paths(prompt, [tokens[:-1]])
        rows = enumerate(draft.model.score(prompt, chain))
        children = (draft.children(chain, node, row, chance, RANKS) for node, row in rows)
        guesses = ([child.token for child in own] for own in children)
    else:
        contexts = (prompt.extended(tokens[:length]) for length in range(len(tokens)))
        guesses = (_first_guesses(draft.propose(one, chance)) for one in contexts)
    both = zip(guesses, tokens, strict=True)
    return tuple(own.index(token) if token in own else None for own, token in both)


def _first_guesses(tree: TokenTree) -> list[int]:
    if tree.has_rows:
        raise ValueError('only "ranked" or "top" siblings are the same in every tree')
    return [tree.tokens[child] for child in tree.children(ROOT)][:RANKS]


def ranks_by_temperature(
    generations: Iterable[tuple[Any, Prompt, Generation]], draft: Draft, *, seed: int = 0
) -> dict[float, list[tuple[int | None, ...]]]:
    """`taken_ranks` of what `replaying.generations` yields with this seed, by temperature."""
    found: dict[float, list[tuple[int | None, ...]]] = {}
    for setting, prompt, generation in generations:
        chance = Chance(seeds([prompt], seed)[0], setting.sampler)
        taken = taken_ranks(generation, draft, chance)
        found.setdefault(setting.sampler.temperature, []).append(taken)
    return found


def ranks_of_models(
    prompts: Sequence[Prompt],
    ladder: Ladder,
    models: Sequence[str],
    samplers: Sequence[Sampler] = SAMPLERS,
    *,
    seed: int = 0,
    max_new_tokens: int = 64,
) -> dict[str, dict[float, list[tuple[int | None, ...]]]]:
    """`ranks_by_temperature` of the guesses of these models of a ladder ("draft", "middle"), by
    name, along what the target writes, which is read from the stored texts where they have it.
    """
    plainly = [Setting("plain", NoDraft(), sampler) for sampler in samplers]
    texts = known_texts(samplers, ladder, seed)
    limits = {"seed": seed, "max_new_tokens": max_new_tokens, "progress": False}
    made = list(generations(plainly, prompts, ladder, texts=texts, **limits))
    drafts = {name: TreeDraft(getattr(ladder, name), widths=(1,)) for name in models}
    return {name: ranks_by_temperature(made, draft, seed=seed) for name, draft in drafts.items()}


def first_guess_rates(ranks: Mapping[str, Mapping[float, Sequence[Taken]]]) -> pd.DataFrame:
    """How often a model's likeliest guess is the target's token: model, sampling, and the columns
    of `position_rates`.

    ranks    of `ranks_of_models`
    """
    rows = [
        position_rates(taken, ranks=1).assign(model=model, sampling=sampling_of(temperature, None))
        for model, by_temperature in ranks.items()
        for temperature, taken in by_temperature.items()
    ]
    return pd.concat(rows, ignore_index=True)


def replay_shape(shape: Shape, taken: Taken) -> Iterator[tuple[int, list[int]]]:
    """The rounds of a tree of this shape: where each starts, and the nodes that the text reaches,
    the root first; it emits as many tokens, but where the text ends.
    """
    children = children_of(shape.parents)
    start = 0
    while start < len(taken):
        reached = [ROOT]
        for rank in taken[start:]:
            if rank is None or rank >= len(children[reached[-1]]):
                break
            reached.append(children[reached[-1]][rank])
        yield start, reached
        start += len(reached)


def _rounds(shape: Shape, texts: Sequence[Taken]) -> list[int]:
    return [len([*replay_shape(shape, taken)]) for taken in texts]


def replayed_tokens(trees: Mapping[str, Shape], texts: Sequence[Taken]) -> pd.DataFrame:
    """Of each tree along the texts: draft, tokens_per_round, _low and _high, rounds, prompts."""
    rows = []
    for name, shape in trees.items():
        rounds = _rounds(shape, texts)
        ratio = named_interval("tokens_per_round", interval(map(len, texts), rounds))
        rows.append({"draft": name} | ratio | {"rounds": sum(rounds), "prompts": len(texts)})
    return pd.DataFrame(rows)


def replayed_guesses(shape: Shape, texts: Sequence[Taken]) -> pd.DataFrame:
    """What `rank_rates` reads of the rows of guesses, for a tree of this shape along the texts:
    depth, rank, parent_rank, accepted; without guesses for a text's last token.
    """
    children = children_of(shape.parents)
    rows = []
    for taken in texts:
        for start, nodes in replay_shape(shape, taken):
            for depth, node in enumerate(nodes[: max(0, len(taken) - 1 - start)], 1):
                above = shape.ranks[node] if node else -1
                found = taken[start + depth - 1]
                ranks = range(len(children[node]))
                rows += [(depth, rank, above, rank == found) for rank in ranks]
    return pd.DataFrame(rows, columns=["depth", "rank", "parent_rank", "accepted"])


def position_rates(texts: Sequence[Taken], *, ranks: int = RANKS) -> pd.DataFrame:
    """How often each rank was taken at all positions: rank, at_risk, rate, low, high, prompts."""
    lengths = [len(taken) for taken in texts]
    rows = []
    for rank in range(ranks):
        rate = interval([taken.count(rank) for taken in texts], lengths, share=True)
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


def _expected_by_parent(shape: Shape, looked_at: pd.DataFrame) -> float:
    """`expected_tokens`, with separate rates below depth 1 where the parent was a first guess."""
    deeper = looked_at[looked_at.depth > 1].assign(depth=looked_at.depth - 1)
    root = rank_rates(looked_at[looked_at.depth == 1])
    first = deeper.parent_rank == 0
    after = [rank_rates(rows) if len(rows) else [[]] for rows in (deeper[~first], deeper[first])]
    paths = [1.0]
    for parent, depth, rank in [*zip(shape.parents, shape.depths, shape.ranks, strict=True)][1:]:
        rates = root if depth == 1 else after[shape.ranks[parent] == 0]
        vector = rates[min(max(depth - 1, 1), len(rates)) - 1]
        paths.append(paths[parent] * vector[rank] if rank < len(vector) else 0.0)
    return float(sum(paths))


def compare_predictions(predicted: pd.DataFrame, measured: pd.DataFrame) -> pd.DataFrame:
    """`predict_tokens` and `replayed_tokens` of the same trees, and the error (a share)."""
    ends = {f"tokens_per_round_{end}": end for end in ("low", "high")}
    columns = {"draft": "name", "tokens_per_round": "measured", "prompts": "prompts"} | ends
    found = predicted.merge(measured[[*columns]].rename(columns=columns), "left", "name")
    return found.assign(error=found.predicted / found.measured - 1)


def errors(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Per group of `compare_predictions` the median_error and largest_error, without their signs,
    and share_inside the intervals, NaN where there are none.
    """
    inside = (table.low <= table.predicted) & (table.predicted <= table.high)
    inside = inside.astype(float).where(table.low.notna())
    groups = table.assign(size=abs(table.error), inside=inside).groupby(list(by), sort=False)
    sizes = {"median_error": ("size", "median"), "largest_error": ("size", "max")}
    return groups.agg(**sizes, share_inside=("inside", "mean")).reset_index()
