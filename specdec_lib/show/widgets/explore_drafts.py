"""The explorers of drafts on a text: what a tree is expected, measured and predicted to bring, and
what a draft brings with a scout and without.
"""

import html
import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import mean
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Generation, Round, rounds
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.bytes_moved import generation_bytes, model_shape
from specdec_lib.measure.machine import HERE
from specdec_lib.measure.machine_prices import Machines
from specdec_lib.measure.settings.explorers import GUESSERS, TreeSize, guesser, offered_by
from specdec_lib.measure.settings.ladder_drafts import LadderDrafts
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.trial import sweep_table, trial_of, work_of
from specdec_lib.show import figures, tables
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import Values, choice, slider, text_knobs
from specdec_lib.show.widgets.machine_menu import NOBODY, UNTIMED, MachineMenu, priced_panel
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.trying import DraftTrial, PassTimes
from specdec_lib.show.widgets.width_knobs import (
    BY_BUDGET,
    BY_WIDTHS,
    NAMES,
    WidthKnobs,
    size_of_widths,
)
from specdec_lib.show.widgets.words import aligned_table, counted
from specdec_lib.theory import ModelShape, Rates, Work, best_tree
from specdec_lib.workload import Ladder, Prompt

TREE_PRESETS = {
    "a chain of 5": {"shape": BY_WIDTHS, "widths": "1,1,1,1,1"},
    "wide at the root": {"shape": BY_WIDTHS, "widths": "4,2,1,1"},
    "best of 8": {"shape": BY_BUDGET, "budget": 8},
    "best of 32": {"shape": BY_BUDGET, "budget": 32, "depth": 8},
    "greedy": {"temperature": 0.0},
}

SCOUTS = "none", "n-gram", "Max-Gram", "draft, for the middle model"
NO_SCOUT, TABLE, COPIES, MODEL = SCOUTS
STAGE_PRESETS = {
    "chain, no scout": {"shape": "chain", "budget": 5, "scout": NO_SCOUT},
    "tree, no scout": {"shape": "tree", "budget": 16, "scout": NO_SCOUT},
    "the paper's: tree, n-gram scout": dict(shape="tree", budget=16, scout=TABLE, scout_budget=8),
}


def tree_explorer(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    *,
    machine: str = "",
    start: Values | None = None,
) -> Panel:
    """Knobs for a tree and its text over `figures.tree` and `figures.mask`. On the fast runtime a
    change of the tree shows in a tenth of a second.

    machine    whose prices the predicted speed-up has at first, as in files' names: "" this one's
               if it was timed, else the README's; "here" this one's
    start      where some of the knobs start

    Raises ValueError without a prompt, and for a machine of which nothing is stored.
    """
    trial = DraftTrial(ladder, prompts)
    menu = MachineMenu(Machines(machine, ladder))
    widths = WidthKnobs()
    tip = "the best of a budget and a depth, or so many children per node at each depth"
    knobs = {
        "shape": choice((BY_BUDGET, BY_WIDTHS), tip),
        "budget": slider(range(1, 33), 16, "guesses in the tree, nodes without the root"),
        "depth": slider(range(1, 13), 6, "deepest guess, nodes"),
        **widths.knobs(),
        "draft": choice(offered_by(ladder, GUESSERS), "what guesses"),
        "round": slider(range(1, 11), 1, "which is drawn, from the end of the prompt on"),
        "machine": menu.menu,
        **text_knobs(trial.prompts),
    }
    bookmark = Bookmark(
        "01_tree_construction",
        named=("budget", "depth", "temperature", "seed"),
        more=partial(_tree_parameters, trial),
        always=("shape",),  # turned widths take it
        implied=NAMES,
    )
    return priced_panel(
        menu,
        knobs,
        partial(_draw, trial, menu.machines),
        fit=widths.follow,
        bookmark=bookmark,
        start=start,
        presets=TREE_PRESETS,
        heights=(520, 610),
    )


def _tree_parameters(trial: DraftTrial, at: Values) -> dict[str, object]:
    """What notebook 01 needs beside parameters that are named as knobs are."""
    found: dict[str, object] = trial.domain_of(at)
    if at["machine"] not in (HERE, NOBODY):
        found["machine"] = at["machine"]
    return found


def _draw(trial: DraftTrial, machines: Machines, **at: Any) -> Shown:
    ladder = trial.ladder
    number = at["round"]
    by_widths = at["shape"] == BY_WIDTHS
    size = size_of_widths(at["widths"]) if by_widths else TreeSize(at["budget"], at["depth"])
    context, chance = trial.read(at)
    draft = guesser(ladder, chance.sampler, at["draft"], size)
    generation = trial.follow(context, chance, draft)
    if number > (count := len(generation.rounds)):
        raise ValueError(f"this text has {count} rounds, there is no round {number}")
    fitted = at["draft"] in ("draft", "middle")  # trees, whose seconds in the host are known
    one = generation.rounds[number - 1]
    work = work_of(generation.rounds, ladder.target.name)
    times = PassTimes.read(machines, at["machine"])
    words = _asked(at, size) + _words(ladder, generation, one)
    words += _speed(times, work, at["temperature"], fitted=fitted)
    counts = f"{one.accepted} of {one.proposed} guesses accepted"
    title = f"round {number}: {counts}; on an edge, the score of its path"
    return Shown(_pictures(ladder, one, title), words)


def _asked(at: Values, size: TreeSize) -> str:
    """Which tree the knobs ask for, as HTML."""
    asked = f"the best {counted(size.budget)} up to depth {size.depth}"
    if size.widths:
        each = " · ".join(map(str, size.widths))
        asked = f"{each} children per node, {counted(size.budget)}"
    return f"Asked of {html.escape(at['draft'])}: <b>{asked}</b>."


def _words(ladder: Ladder, generation: Generation, one: Round) -> str:
    """Expected and measured counts of a round and of all, as HTML."""

    def counts(rounds: Sequence[Round]) -> dict[str, float]:
        tried = sum(each.tried for each in rounds)
        return {
            "tokens per round, expected from the scores": mean(sum(r.tree.scores) for r in rounds),
            "tokens per round, measured": mean(len(each.emitted) for each in rounds),
            "acceptance rate": sum(r.accepted for r in rounds) / tried if tried else math.nan,
            "guesses": mean(each.proposed for each in rounds),
        }

    every = f"all {len(generation.rounds)} rounds of {len(generation.tokens)} tokens"
    here = counts([one])
    rows = [(name, float(here[name]), value) for name, value in counts(generation.rounds).items()]
    emitted = html.escape("".join(map(ladder.text, one.emitted)))
    table = aligned_table(("", "this round", every), rows)
    return f"{table}Emitted in this round: <code>{emitted}</code><br>"


def _speed(times: PassTimes | None, work: Work, temperature: float, *, fitted: bool) -> str:
    """The speed-up that measured passes predict, with the host's seconds if they are `fitted` for
    such drafts and were measured there, as HTML.
    """
    if times is None:
        return UNTIMED
    if missing := sorted({model for model, _, _ in work.passes} - set(times.tables)):
        place = html.escape(times.machine)
        return f"No speed-up is predicted: {', '.join(missing)} is not among the times of {place}."
    host = fitted and not times.speeds.empty
    speed, alone = (times.speed_up(work, temperature, host=which) for which in (host, False))
    how = "passes alone: the host's own time was not measured for such drafts"
    if fitted:
        how = "passes alone: the host's own time was not measured on it"
    if host:
        how = f"{alone:.2f} if the host's own code, measured without top-k, took no time in either"
    named = html.escape(times.machine)
    return (
        f"Predicted speed: <b>{speed:.2f} times</b> plain decoding, by the pass times of {named};"
        f" {how}."
    )


def best_shape(rates: Rates, *, budget: int, depth: int, width: int) -> go.Figure:
    """The best tree of a budget, a depth and a width, its children per node, under these rates."""
    allowed = [list(vector)[:width] for vector in rates]
    tree = best_tree(allowed, budget, depth)
    title = f"{tree.guesses} guesses, {tree.depth} deep"
    return figures.shapes(tables.shape_nodes({"best static": tree}, allowed), title=title)


def one_round(
    ladder: Ladder, draft: Draft, context: Context, *, seed: int, temperature: float
) -> go.Figure:
    """The tree of one round after `context`, with the path that the target accepts."""
    chance = Chance(seed, Sampler(temperature))
    target = ladder.target
    played, _ = next(rounds(target, draft, context, chance, max_new_tokens=target.max_positions))
    said = "".join(map(ladder.text, played.emitted))
    counts = f"{played.accepted} of {played.proposed} guesses accepted"
    title = f"{counts}, {len(played.emitted)} tokens emitted: {said!r}"
    return _pictures(ladder, played, title)[0]


def _pictures(ladder: Ladder, played: Round, title: str) -> tuple[go.Figure, go.Figure]:
    """The tree of a round with its accepted path and the target's own token, and its mask."""
    labels = [ladder.text(token) for token in played.tree.tokens]
    # a full context leaves no room for a token of the target's own
    has_bonus = len(played.emitted) > played.accepted
    bonus = ladder.text(played.emitted[-1]) if has_bonus else None
    tree = figures.tree(played.tree, labels=labels, path=played.path, bonus=bonus, title=title)
    return tree, figures.mask(played.tree, labels=labels)


def stage_explorer(
    ladder: Ladder, prompts: Sequence[Prompt], *, start: Values | None = None
) -> Panel:
    """Knobs for a staged draft over `figures.stages`: counted passes, tokens and bytes of one text
    under this setting, its one-stage draft and none; `start` says where some of its knobs start.

    Bytes are those of half-precision weights, caches and activations; n-grams are taken as free.
    Raises ValueError for a model of another kind than `model_shape` knows.
    """
    trial = DraftTrial(ladder, prompts)
    scouts = offered_by(ladder, SCOUTS)
    models = ("draft",) if ladder.middle is None else ("draft", "middle")
    shapes = {model.name: model_shape(model) for model in ladder.models}

    def draw(**at: Any) -> Shown:
        context, chance = trial.read(at)
        drafts = _drafts(ladder, chance.sampler, at)
        played = {name: trial.follow(context, chance, draft) for name, draft in drafts.items()}
        same = "one text of the target: its tokens are the same throughout"
        figure = figures.stages(_counts(played, prompts[0], shapes))
        return Shown((figure,), f"A {at['shape']} of {at['budget']}, {same}.")

    knobs = {
        "model": choice(models, "whose guesses the target verifies", label="drafted by"),
        "shape": choice(("tree", "chain"), "of the draft's guesses"),
        "budget": slider(range(1, 33), 16, "guesses, nodes without the root"),
        "depth": slider(range(1, 13), 8, "deepest guess of a tree, nodes"),
        "scout": choice(scouts, "what guesses for the draft, in its own passes"),
        "scout_budget": slider(range(1, 17), 8, "its guesses below a node", "scout budget"),
    } | text_knobs(trial.prompts)
    start = {"temperature": 0.0, "scout": scouts[1]} | dict(start or {})
    presets = {name: one for name, one in STAGE_PRESETS.items() if one["scout"] in scouts}
    bookmark = Bookmark("03_staged_decoding", named=("seed",), more=trial.number_of)
    return Panel(knobs, draw, start=start, presets=presets, bookmark=bookmark, heights=(260,))


def _drafts(ladder: Ladder, sampler: Sampler, at: Values) -> dict[str, Draft]:
    """No draft, the draft of a shape and size, and it with a scout, by name."""
    scout = at["scout"]
    most = at["scout_budget"]
    budget = at["budget"]
    depth = at["depth"]
    model = "middle" if scout == MODEL else at["model"]  # whose scout is the one-layer draft
    drafts = LadderDrafts(ladder, sampler)
    if at["shape"] == "chain":
        one = drafts.chain(budget, model=model)
    else:
        one = drafts.tree(budget, depth, model=model)
    found = {"plain decoding": NoDraft(), model: one}
    if scout != NO_SCOUT:
        name = scout.partition(",")[0]
        deepest = {TABLE: 6, COPIES: most, MODEL: min(depth, 6)}[scout]
        obeyed = model if scout == MODEL else "draft"  # the table of n-grams was matched with it
        below = guesser(ladder, sampler, name, TreeSize(most, deepest), obeyed=obeyed)
        staged = StagedTree(one, below, guided=2 if scout == TABLE else 1)
        found[f"{model}, scout: {name}"] = staged
    return found


def _counts(
    generations: Mapping[str, Generation], prompt: Prompt, shapes: Mapping[str, ModelShape]
) -> pd.DataFrame:
    """The table of `figures.stages`; plain decoding comes first."""
    rows = sweep_table(
        trial_of(Setting(name, NoDraft()), prompt, one) for name, one in generations.items()
    )
    moved = generation_bytes(rows, shapes) / rows.tokens
    drafting = rows.filter(regex="_passes$").drop(columns="target_passes").sum(axis=1)
    counts = {
        "tokens per round": rows.tokens / rows.rounds,
        "draft passes per round": drafting / rows.rounds,
        "target passes per token": rows.rounds / rows.tokens,
        "bytes per token ÷ plain decoding's": moved / moved[0],
    }
    table = pd.DataFrame(counts).assign(stack=rows.draft, levels=range(1, 1 + len(rows)))
    table = table.melt(["stack", "levels"], var_name="metric")
    return table.assign(low=table.value, high=table.value)
