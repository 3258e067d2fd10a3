"""Figures that plain sliders draw anew: one round, the best shape, a faster draft."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round, rounds
from specdec_lib.core.protocols import Draft
from specdec_lib.show import figures
from specdec_lib.theory import Gain, Overhead, PassTable, Rates, best_tree
from specdec_lib.workload import Ladder


def one_round(
    ladder: Ladder, draft: Draft, context: Context, *, seed: int, temperature: float
) -> go.Figure:
    """The tree of one round after `context`, with the path that the target accepts."""
    chance, target = Chance(seed, Sampler(temperature)), ladder.target
    limit = {"max_new_tokens": target.max_positions}
    played, _ = next(rounds(target, draft, context, chance, **limit))
    said = "".join(map(ladder.text, played.emitted))
    counts = f"{played.accepted} of {played.proposed} guesses accepted"
    title = f"{counts}, {len(played.emitted)} tokens emitted: {said!r}"
    return draw_round(ladder, played, title)


def draw_round(ladder: Ladder, played: Round, title: str) -> go.Figure:
    """The tree of a round with its accepted path and the target's own token."""
    labels = [ladder.text(token) for token in played.tree.tokens]
    # a full context leaves no room for a token of the target's own
    has_bonus = len(played.emitted) > played.accepted
    bonus = ladder.text(played.emitted[-1]) if has_bonus else None
    return figures.tree(played.tree, labels=labels, path=played.path, bonus=bonus, title=title)


def best_shape(rates: Rates, *, budget: int, depth: int, width: int) -> go.Figure:
    """The best tree of a budget under these rates, no deeper than `depth` and with at most `width`
    children per node.
    """
    allowed = [list(vector)[:width] for vector in rates]
    tree = best_tree(allowed, budget, depth)
    title = f"{tree.guesses} guesses, {tree.depth} deep"
    return figures.shapes(figures.slots({"best static": tree}, allowed), title=title)


def faster_draft(
    gains: Callable[[Mapping[str, PassTable], Overhead, Overhead], Sequence[Gain]],
    tables: Mapping[str, PassTable],
    overheads: tuple[Overhead, Overhead],
    *,
    draft: float,
    host: float,
) -> go.Figure:
    """Speed-up against the budget if the draft were `draft` times as fast as its table says, and
    all code outside the models `host` times.

    gains        from tables and the two overheads to gains, as of `theory.tree_gains`
    overheads    of a tree's round and of a plain one, as measured
    """
    faster = dict(tables) | {"draft": tables["draft"].faster(draft)}
    hosts = [
        Overhead(one.round / host, one.guess / host, one.draft_pass / host) for one in overheads
    ]
    found = pd.DataFrame(gains(faster, *hosts)).drop(columns="width")
    best = f"{max(found.speed_up):.2f} times plain decoding"
    title = {"text": f"draft {draft:g} × as fast, host {host:g} ×: {best}"}
    return figures.budget_speed_ups(found).update_layout(title=title, height=500, margin={"t": 96})
