"""Two tidy tables from generations, a row per guess looked at and a row per round; and rates."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import numpy as np
import pandas as pd

from specdec_lib.core.decode import Generation
from specdec_lib.core.tree import ROOT, MatchTable
from specdec_lib.measure.ratios import interval, named_interval
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import repetition
from specdec_lib.workload import Prompt

LABELS = "draft temperature top_k rule domain repetition prompt".split()
GUESS = "round depth rank parent_rank siblings source confidence accepted tried".split()
ROUND = "round root_position proposed deepest tried accepted emitted source stop".split()
OF_A_GUESS = ("rank", "source", "confidence", "tried")  # siblings differ in them
# a confidence is a quotient of products: equal ones differ in the last digits
DIGITS = 12
SAME = 1e-6


def collect(
    generations: Iterable[tuple[Setting, Prompt, Generation]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row per guess that was looked at (each child of the root and of each accepted node), and a
    row per round, of what `replaying.generations` yields. Both begin with the columns draft,
    temperature, top_k, rule, domain, repetition (of the generated text) and prompt.

    guesses    round, depth (1 below the root), rank (from 0 in draw order), parent_rank (−1 below
               the root), siblings (how many share the parent, with the guess itself), source,
               confidence (the guess's score ÷ its parent's), accepted, tried (it or no sibling
               before it was accepted)
    rounds     round, root_position, proposed, deepest (the depth of its tree), tried, accepted,
               emitted (a count), source (of the first emitted token), stop ("" before the last one)
    """
    looked_at = []
    played = []
    for setting, prompt, generation in generations:
        sampler = setting.sampler
        share = repetition(generation.tokens)
        labels = (setting.name, sampler.temperature, sampler.top_k, setting.rule_name)
        labels += (prompt.domain, share, prompt.name)
        looked_at += [(*labels, *row) for row in _guess_rows(generation)]
        played += [(*labels, *row) for row in _round_rows(generation)]
    guesses = pd.DataFrame(looked_at, columns=LABELS + GUESS)
    return guesses, pd.DataFrame(played, columns=LABELS + ROUND)


def _guess_rows(generation: Generation) -> Iterator[tuple]:
    for number, played in enumerate(generation.rounds):
        tree = played.tree
        parent_rank = -1
        path = (ROOT, *played.path)
        for depth, (node, chosen) in enumerate(zip_longest(path, played.path), 1):
            children = tree.children(node)
            score = tree.scores[node]
            accepted = children.index(chosen) if chosen is not None else len(children)
            for rank, child in enumerate(children):
                confidence = tree.scores[child] / score if score else 0.0
                place = (number, depth, rank, parent_rank, len(children))
                yield (*place, tree.sources[child], confidence, rank == accepted, rank <= accepted)
            parent_rank = accepted


def _round_rows(generation: Generation) -> Iterator[tuple]:
    last = len(generation.rounds) - 1
    for number, played in enumerate(generation.rounds):
        tree = played.tree
        sizes = (tree.root_position, played.proposed, max(tree.depths))
        counts = (played.tried, played.accepted, len(played.emitted))
        stop = generation.stop if number == last else ""
        yield (number, *sizes, *counts, played.sources[0], stop)


def with_gaps(guesses: pd.DataFrame, match: MatchTable) -> pd.DataFrame:
    """The guesses that this match table scored, with a column `gap`, their bin in nats: "0.5–1"; of
    bins of a rank with the same rate the first.  Raises ValueError if it scored none by gaps.
    """
    # a gap at an edge lies in the bin above it
    names = match.bins
    lows = (0.0, *match.edges)

    def bin_of(rank: int, confidence: float) -> int | None:
        known = [match.rate(rank, low) for low in lows]
        same = np.isclose(known, confidence, rtol=SAME, atol=0)
        return int(same.argmax()) if same.any() else None

    bins = [bin_of(*one) for one in zip(guesses["rank"], guesses["confidence"], strict=True)]
    binned = guesses.assign(bin=pd.Series(bins, guesses.index))
    found = binned.dropna(subset=["bin"]).sort_values("bin", kind="stable")
    if found.empty:
        raise ValueError(
            f"no guess has a confidence of match table {match.name!r}: were they scored by another,"
            " or at temperature 0?"
        )
    return found.assign(gap=[names[int(one)] for one in found.pop("bin")])


def rates(table: pd.DataFrame, by: Sequence[str] = (), *, per: str = "guess") -> pd.DataFrame:
    """How often a guess is accepted, per group of the rows of guesses: the columns of `by`,
    at_risk, accepted, rate, low, high, prompts. Numbers are sorted, other labels keep their order.

    per    "guess": each row counts once; "node": each node that was reached and had children counts
           once, and is accepted where one of them was; `by` has nothing in which siblings differ
    """
    if per not in ("node", "guess"):
        raise ValueError(f'per is "node" or "guess", got {per!r}')
    if per == "node" and (differing := [name for name in by if name in OF_A_GUESS]):
        raise ValueError(f"siblings differ in {', '.join(differing)}: this rate is per guess")
    counted = table.assign(at_risk=table["rank"].eq(0) if per == "node" else True)
    groups = _by_prompt(counted, by, ["at_risk", "accepted"])
    return pd.DataFrame([group | _rate(sums) for group, sums in groups])


def hazards(table: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """`rates` per node by depth: P(a guess at this depth is accepted | there was one to look at),
    and `survival`, their product so far: P(a round gets so deep) if rounds whose tree ended were
    like those that went on.  Source: Kaplan and Meier 1958, with a tree's end as censoring.
    """
    found = rates(table, [*by, "depth"], per="node")
    groups = found.groupby(list(by), dropna=False) if by else found
    return found.assign(survival=groups["rate"].cumprod())


def rates_by_confidence(
    table: pd.DataFrame, *, bins: int = 10, by: Sequence[str] = ()
) -> pd.DataFrame:
    """Acceptance rates of guesses of similar confidence: `by`, low_edge, high_edge, the mean
    confidence, and the columns of `rates` per guess.

    bins    equally wide on [0, 1]; a bin holds its low edge, the last both; an empty one has no row
    """
    if bins < 1:
        raise ValueError(f"a calibration needs at least 1 bin, got {bins}")
    confidence = table["confidence"].astype(float).round(DIGITS)
    edges = (np.arange(bins + 1) / bins).round(DIGITS)
    place = np.searchsorted(edges[:-1], confidence, side="right") - 1
    named = {"low_edge": edges[place], "high_edge": edges[place + 1]}
    counted = table.assign(at_risk=True, confidence=confidence, **named)
    groups = _by_prompt(counted, [*by, *named], ["at_risk", "accepted", "confidence"])
    return pd.DataFrame(
        group | {"confidence": sums.confidence.sum() / sums.at_risk.sum()} | _rate(sums)
        for group, sums in groups
    )


def expected_calibration_error(table: pd.DataFrame, *, bins: int = 10) -> float:
    """The mean distance of confidence and acceptance rate over the bins, weighted by their
    guesses: Guo et al. 2017, equation 3.
    """
    found = rates_by_confidence(table, bins=bins)
    return float(np.average(abs(found.confidence - found.rate), weights=found.at_risk))


def rank_rates(table: pd.DataFrame, *, by_depth: bool = True, least: int = 30) -> list[list[float]]:
    """P(the child at a rank is accepted | its parent was reached and had one there), by depth and
    rank; of all depths as one unless `by_depth`.

    least    the first depth with fewer reached nodes, and all below it, count with the last that
             had enough; the first rank that was there less often ends its list
    """
    _check(table, ())
    level = table["depth"] if by_depth else table["depth"].clip(upper=1)
    reached = level[table["rank"] == 0].value_counts()
    reached = reached.reindex(range(1, level.max() + 1), fill_value=0)
    last = max(1, int((reached >= least).cumprod().sum()))
    counted = []
    for _, group in table.groupby(level.clip(upper=last)):
        ranks = group.groupby("rank").accepted.agg(["mean", "count"])
        often = int((ranks["count"].iloc[1:] >= least).cumprod().sum())
        counted.append(ranks["mean"].iloc[: 1 + often].astype(float).tolist())
    return counted


def tokens(table: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Emitted (tokens_per_round) and accepted tokens (accepted_per_round) ÷ rounds, each with its
    interval, from the rows of rounds: `by`, rounds, prompts, and these.
    """
    groups = _by_prompt(table.assign(rounds=1), by, ["rounds", "emitted", "accepted"])
    return pd.DataFrame(
        group
        | {"rounds": int(sums.rounds.sum()), "prompts": len(sums)}
        | named_interval("tokens_per_round", interval(sums.emitted, sums.rounds))
        | named_interval("accepted_per_round", interval(sums.accepted, sums.rounds))
        for group, sums in groups
    )


def _check(table: pd.DataFrame, by: Sequence[str]) -> None:
    """Raises ValueError for a table without rows, or `by` that is not different columns of it."""
    known = [name for name in table.columns if name != "accepted"]
    if len(set(by)) < len(by) or not set(by) <= set(known):
        raise ValueError(f"by holds different columns of {', '.join(known)}; got {', '.join(by)}")
    if table.empty:
        raise ValueError("a rate needs at least 1 row, got an empty table")


def _by_prompt(
    table: pd.DataFrame, by: Sequence[str], counts: list[str]
) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Per group of `by` its columns, and the sums of `counts` per prompt."""
    _check(table, by)
    keys = list(dict.fromkeys([*by, "prompt"]))
    sums = table.groupby(keys, sort=False, dropna=False, observed=True)[counts].sum().reset_index()
    if not by:
        yield {}, sums
        return

    def order(column: pd.Series) -> pd.Series | np.ndarray:
        numeric = pd.api.types.is_numeric_dtype(column)
        return column if numeric else pd.factorize(column, use_na_sentinel=False)[0]

    ordered = sums.sort_values(list(by), key=order, kind="stable")
    for key, group in ordered.groupby(list(by), sort=False, dropna=False):
        yield dict(zip(by, key, strict=True)), group


def _rate(sums: pd.DataFrame) -> dict[str, float]:
    at_risk = sums[sums.at_risk > 0]
    rate, low, high = interval(at_risk.accepted, at_risk.at_risk, share=True)
    return {
        "at_risk": int(at_risk.at_risk.sum()),
        "accepted": int(at_risk.accepted.sum()),
        "rate": rate,
        "low": low,
        "high": high,
        "prompts": len(at_risk),
    }
