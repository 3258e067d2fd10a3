"""The explorer of trees: what a tree on a text is expected, measured and predicted to bring."""

import html
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, Round, rounds
from specdec_lib.core.protocols import Draft
from specdec_lib.measure.replay import work_of
from specdec_lib.show import figures
from specdec_lib.show.widgets import trying
from specdec_lib.show.widgets.knobs import choice, slider, text_field, text_knobs
from specdec_lib.show.widgets.panel import Panel, Shown, Values
from specdec_lib.show.widgets.trying import DraftTrial, PassTimes, TreeSize
from specdec_lib.theory import Work
from specdec_lib.workload import Ladder, Prompt

HEIGHTS = (430, 480)  # pixels
TREES = ("draft", "middle")  # guess by a tree, for which the host's seconds were fitted
BY_BUDGET, BY_WIDTHS = "budget", "widths per depth"
SHAPE = "the best guesses of a budget, or so many per node"
PER_DEPTH = "children per node at depth 0, 1, …; used with 'widths per depth'"
KNOBS = {
    "shape": choice((BY_BUDGET, BY_WIDTHS), SHAPE),
    "budget": slider(range(1, 33), 16, "guesses in the tree, nodes without the root"),
    "depth": slider(range(1, 13), 6, "deepest guess, nodes"),
    "widths": text_field("4,2,1,1", PER_DEPTH, "4,2,1,1"),
}
PRESETS = {
    "a chain of 5": {"shape": BY_WIDTHS, "widths": "1,1,1,1,1"},
    "wide at the root": {"shape": BY_WIDTHS, "widths": "4,2,1,1"},
    "best of 8": {"shape": BY_BUDGET, "budget": 8},
    "best of 32": {"shape": BY_BUDGET, "budget": 32, "depth": 8},
    "greedy": {"temperature": 0.0},
}


def tree_explorer(
    ladder: Ladder, prompts: Sequence[Prompt], *, start: Values | None = None
) -> Panel:
    """Knobs for a tree and its text over `figures.tree` and `figures.mask`.

    ladder    on the fast runtime a change shows in a fraction of a second
    start     where some of its knobs start
    Raises ValueError if there is no prompt, or a knob starts where it cannot stand.
    """
    trial, times = DraftTrial(ladder, prompts), PassTimes.read(ladder)
    which = "which round is drawn, from the end of the prompt on"
    knobs = KNOBS | {
        "draft": choice(trying.offered_by(ladder, trying.GUESSERS), "what guesses"),
        "round": slider(range(1, 11), 1, which),
    }
    look = {"start": start, "fit": _disable_unused, "presets": PRESETS, "heights": HEIGHTS}
    return Panel(knobs | text_knobs(trial.prompts, top_k=50), partial(_draw, trial, times), **look)


def _disable_unused(made: Values) -> None:
    for name, shape in {"widths": BY_WIDTHS, "budget": BY_BUDGET, "depth": BY_BUDGET}.items():
        made[name].disabled = made["shape"].value != shape


def _draw(trial: DraftTrial, times: PassTimes, **at: Any) -> Shown:
    ladder, number, by_widths = trial.ladder, at["round"], at["shape"] == BY_WIDTHS
    size = trying.size_of_widths(at["widths"]) if by_widths else TreeSize(at["budget"], at["depth"])
    generation = trial.generation(at, trying.guesser, at["draft"], size)
    if number > (count := len(generation.rounds)):
        raise ValueError(f"this text has {count} rounds, there is no round {number}")
    one = generation.rounds[number - 1]
    work, fitted = work_of(generation.rounds, ladder.target.name), at["draft"] in TREES
    words = _words(ladder, generation, one) + _speed(times, work, at["temperature"], fitted)
    counts = f"{one.accepted} of {one.proposed} guesses accepted"
    title = f"round {number}: {counts}; on an edge, the score of its path"
    labels = [ladder.text(token) for token in one.tree.tokens]
    return Shown((draw_round(ladder, one, title), figures.mask(one.tree, labels=labels)), words)


def _words(ladder: Ladder, generation: Generation, one: Round) -> str:
    """Expected and measured counts of a round and of all, as HTML."""
    rounds, count = generation.rounds, len(generation.rounds)
    worth, guesses = sum(sum(each.tree.scores) for each in rounds), sum(r.proposed for r in rounds)
    table = {
        "": ["this round", f"all {count} rounds of {len(generation.tokens)} tokens"],
        "tokens per round, expected from the scores": [sum(one.tree.scores), worth / count],
        "tokens per round, measured": [len(one.emitted), generation.tokens_per_round],
        "acceptance rate": [_rate([one]), _rate(rounds)],
        "guesses": [one.proposed, f"{guesses / count:.1f}"],
    }
    look = {"header": False, "border": 0, "float_format": "{:.2f}".format}
    rows = pd.DataFrame(table).T.to_html(**look)
    emitted = html.escape("".join(ladder.text(token) for token in one.emitted))
    return f"{rows}Emitted in this round: <code>{emitted}</code><br>"


def _rate(rounds: Sequence[Round]) -> str:
    tried = sum(one.tried for one in rounds)
    return f"{sum(one.accepted for one in rounds) / tried:.2f}" if tried else "–"


def _speed(times: PassTimes, work: Work, temperature: float, fitted: bool) -> str:
    """The speed-up that measured passes predict, as HTML; with the host's seconds where they were
    `fitted` for this kind of draft.
    """
    name, alone = html.escape(times.machine), times.speed_up(work, temperature, host=False)
    if alone is None:
        return f"No speed-up is predicted: no pass times of these models are stored for {name}."
    passes = f"by the stored pass times of {name}, fast runtime"
    speed = times.speed_up(work, temperature, host=fitted)
    how = f"passes alone: the host's own time was not measured for such drafts; {passes}."
    if fitted:
        how = (
            f"{alone:.2f} if the host's own code took no time in either; {passes}, and its host's,"
        )
        how += " measured without top-k."
    return f"Predicted speed: <b>{speed:.2f} times</b> plain decoding, {how}"


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
