"""Two tidy tables from records: a row per guess that was looked at, and a row per round."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from specdec_lib.core.decode import Generation
from specdec_lib.core.tree import ROOT

if TYPE_CHECKING:
    from pandas import DataFrame

GUESS = (
    "round",
    "depth",
    "rank",
    "parent_rank",
    "siblings",
    "source",
    "confidence",
    "accepted",
    "tried",
)
ROUND = (
    "round",
    "root_position",
    "proposed",
    "deepest",
    "tried",
    "accepted",
    "emitted",
    "source",
    "stop",
)
COUNTED = (
    "at_risk",
    "rate",
    "low",
    "high",
    "prompts",
    "survival",
    "low_edge",
    "high_edge",
    "rounds",
    "tokens_per_round",
    "accepted_per_round",
)


def collect(
    generations: Iterable[tuple[Mapping[str, object], Generation]],
) -> "tuple[DataFrame, DataFrame]":
    """A row per guess that was looked at (each child of the root and of each accepted node), and a
    row per round.

    generations    each with its labels, which become columns: its "prompt", the draft, the
                   temperature, the prompt's domain, …

    Columns of a guess: the labels; round, from 0; depth, 1 for a child of the root; rank among its
    siblings in draw order, from 0; parent_rank, −1 at depth 1; siblings, how many there were,
    itself included; source; confidence, its score ÷ its parent's, 0 where that is 0; accepted;
    tried, whether it was accepted or came before an accepted sibling. All rows together give
    P(accepted | the parent was reached), under any rule. `reject` tests siblings in order and never
    comes to those after an accepted one: its rate per test is that of the rows where `tried` is
    true. Columns of a round: the labels; round; root_position; proposed; deepest, the depth of the
    tree; tried, accepted and emitted (with the bonus), as in `Round`; source, who guessed the first
    emitted token; stop, why the generation ended, "" before its last round.
    Raises ValueError if there is no generation, one has no prompt or other labels than the first,
    or a label has the name of another column.
    """
    import pandas as pd

    names, looked_at, played = None, [], []
    for labels, generation in generations:
        names = tuple(name for name in labels if name != "prompt") if names is None else names
        if set(labels) != {*names, "prompt"}:
            raise ValueError(
                f"a generation needs the labels {', '.join((*names, 'prompt'))}, got"
                f" {', '.join(labels)}"
            )
        if taken := set(names) & {*GUESS, *ROUND, *COUNTED}:
            raise ValueError(
                f"{', '.join(sorted(taken))} is a column of its own, label it differently"
            )
        start = (*(labels[name] for name in names), labels["prompt"])
        looked_at += [(*start, *row) for row in _guess_rows(generation)]
        played += [(*start, *row) for row in _round_rows(generation)]
    if names is None:
        raise ValueError("acceptance is counted over generations, got none")
    return pd.DataFrame(looked_at, columns=[*names, "prompt", *GUESS]), pd.DataFrame(
        played, columns=[*names, "prompt", *ROUND]
    )


def _guess_rows(generation: Generation) -> Iterator[tuple]:
    for number, played in enumerate(generation.rounds):
        tree, parent_rank = played.tree, -1
        for above, node in enumerate((ROOT, *played.path)):
            children, score = tree.children(node), tree.scores[node]
            accepted = (
                children.index(played.path[above]) if above < played.accepted else len(children)
            )
            for rank, child in enumerate(children):
                confidence = tree.scores[child] / score if score else 0.0
                place = (number, above + 1, rank, parent_rank, len(children))
                yield (*place, tree.sources[child], confidence, rank == accepted, rank <= accepted)
            parent_rank = accepted


def _round_rows(generation: Generation) -> Iterator[tuple]:
    last = len(generation.rounds) - 1
    for number, played in enumerate(generation.rounds):
        counts = (
            played.proposed,
            max(played.tree.depths),
            played.tried,
            played.accepted,
            len(played.emitted),
        )
        yield (
            number,
            played.tree.root_position,
            *counts,
            played.sources[0],
            generation.stop if number == last else "",
        )
