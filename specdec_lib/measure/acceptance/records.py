"""Two tidy tables from generations: a row per guess that was looked at, and a row per round."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pandas as pd

from specdec_lib.core.decode import Generation
from specdec_lib.core.tree import ROOT, MatchTable
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.workload import Prompt

LABELS = "draft temperature top_k rule domain repetition prompt".split()
GUESS = "round depth rank parent_rank siblings source confidence accepted tried".split()
ROUND = "round root_position proposed deepest tried accepted emitted source stop".split()
SAME = 1e-6  # a confidence is a quotient of products: equal ones differ in the last digits


def collect(
    generations: Iterable[tuple[Setting, Prompt, Generation]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row per guess that was looked at (each child of the root and of each accepted node), and a
    row per round, of what `sweep.grid.generations` yields.

    Both begin with draft, temperature, top_k, rule, domain, repetition (of the text) and prompt.
    Of a guess: round, from 0; depth, 1 for a child of the root; rank among its siblings in draw
    order, from 0; parent_rank, −1 at depth 1; siblings, itself included; source; confidence, its
    score ÷ its parent's, 0 where that is 0; accepted; tried, whether it was accepted or came before
    an accepted sibling: `reject` comes to no others, and its rate per test is that of these.
    Of a round: round; root_position; proposed; deepest, the depth of the tree; tried, accepted and
    emitted (with the bonus), as in `Round`; source, who guessed the first emitted token; stop, why
    the generation ended, "" before its last round.
    """
    looked_at, played = [], []
    for setting, prompt, generation in generations:
        sampler, share = setting.sampler, repetition(generation.tokens)
        labels = (setting.name, sampler.temperature, sampler.top_k, setting.rule.__name__)
        labels += (prompt.domain, share, prompt.name)
        looked_at += [(*labels, *row) for row in _guess_rows(generation)]
        played += [(*labels, *row) for row in _round_rows(generation)]
    return pd.DataFrame(looked_at, columns=LABELS + GUESS), pd.DataFrame(
        played, columns=LABELS + ROUND
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
        tree, stop = played.tree, generation.stop if number == last else ""
        counts = (played.tried, played.accepted, len(played.emitted))
        sizes = (tree.root_position, played.proposed, max(tree.depths))
        yield (number, *sizes, *counts, played.sources[0], stop)


def with_gaps(guesses: pd.DataFrame, match: MatchTable) -> pd.DataFrame:
    """The guesses that this match table scored, with a column `gap`, their bin in nats: "0.5–1"; of
    bins of a rank with the same rate the first is named.  Raises ValueError if the table does not
    look at gaps, or gave no guess its confidence.
    """
    if not match.edges:
        raise ValueError(f"match table {match.name!r} does not look at gaps")
    lows = (0.0, *match.edges)  # a gap at an edge lies in the bin above it
    names = [f"{low:g}–{high:g}" for low, high in pairwise(lows)] + [f"{lows[-1]:g} and more"]

    def bin_of(rank: int, confidence: float) -> int | None:
        rates = enumerate(match.rate(rank, low) for low in lows)
        same = (i for i, rate in rates if math.isclose(rate, confidence, rel_tol=SAME))
        return next(same, None)

    bins = [bin_of(*one) for one in zip(guesses["rank"], guesses["confidence"], strict=True)]
    gaps = [None if one is None else names[one] for one in bins]
    found = guesses.assign(gap=gaps, bin=bins).dropna(subset=["gap"])
    if found.empty:
        why = "were they scored by another, or at temperature 0?"
        raise ValueError(f"no guess has a confidence of match table {match.name!r}: {why}")
    return found.sort_values("bin", kind="stable").drop(columns="bin")
