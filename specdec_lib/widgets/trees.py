"""Which tree, on which text: drawn with its scores, the accepted path and its mask, and what it is expected, measured and predicted to bring."""

import html
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import ipywidgets

from specdec_lib import figures
from specdec_lib.chance import Chance, Sampler
from specdec_lib.decode import Generation, Round
from specdec_lib.replay import work_of
from specdec_lib.widgets.panel import Panel, Shown, choice, slider, typed, widened
from specdec_lib.widgets.trying import GUESSERS, REMEMBERED, TOP_KS, Guesser, Machine, Plan, Trial
from specdec_lib.workload import Ladder, Prompt

BUDGETS, DEPTHS, ROUNDS, SEEDS = range(1, 33), range(1, 13), range(1, 11), range(20)
TEMPERATURES = (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
MOST = 64  # guesses that are drawn
HEIGHTS = (430, 480)  # pixels
BY_BUDGET, BY_WIDTHS = "budget", "widths per depth"
START = {"budget": 16, "depth": 6, "temperature": 0.7, "top_k": 50, "seed": 0}
PRESETS = {
    "a chain of 5": {"shape": BY_WIDTHS, "widths": "1,1,1,1,1"},
    "wide at the root": {"shape": BY_WIDTHS, "widths": "4,2,1,1"},
    "best of 8": {"shape": BY_BUDGET, "budget": 8},
    "best of 32": {"shape": BY_BUDGET, "budget": 32, "depth": 8},
    "greedy": {"temperature": 0.0},
}


def tree_explorer(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    *,
    start: Mapping[str, Any] | None = None,
    guessers: Mapping[str, Guesser] = GUESSERS,
    machine: Machine | None = None,
    max_new_tokens: int = 32,
) -> Panel:
    """Knobs for a tree and its text over `figures.tree` and `figures.mask`.

    ladder            on the fast runtime a change shows in a fraction of a second
    start             where knobs stand first: shape, budget, depth, widths, temperature, top_k, draft, prompt, text, seed, round
    guessers          drafts by name: the ladder, a plan and a sampler in, a draft out
    machine           whose measured passes the predicted speed-up is of; None takes the stored measurement
    max_new_tokens    that are decoded for what is measured

    Raises ValueError if there is no prompt, or a knob starts where it cannot stand.
    """
    trial = Trial(ladder, prompts, max_new_tokens)
    machine = Machine.stored() if machine is None else machine

    @lru_cache(REMEMBERED)
    def played(plan: Plan, sampler: Sampler, draft: str, prompt: str, text: str, seed: int) -> Generation:
        return trial.generation(guessers[draft](ladder, plan, sampler), trial.context(prompt, text), Chance(seed, sampler))

    def draw(**at: Any) -> Shown:
        plan = Plan.of(at["budget"], at["depth"], at["widths"] if at["shape"] == BY_WIDTHS else "", most=MOST)
        if at["shape"] == BY_WIDTHS and plan.widths is None:
            raise ValueError("widths are whole numbers, one per depth, such as 4,2,1,1; got none")
        generation = played(plan, Sampler(at["temperature"], top_k=at["top_k"]), at["draft"], at["prompt"], at["text"], at["seed"])
        if at["round"] > len(generation.rounds):
            raise ValueError(f"this text has {len(generation.rounds)} rounds, there is no round {at['round']}")
        one = generation.rounds[at["round"] - 1]
        work = work_of(generation, ladder.target.name)
        predicted = [machine.speed_up(work, at["temperature"], kind=kind) for kind in ("tree", None)]
        words = _words(ladder, generation, at["round"]) + _speed(*predicted, machine.name)
        return Shown((_tree(ladder, one, at["round"]), figures.mask(one.tree, labels=_labels(ladder, one))), words)

    knobs = _knobs(trial.names, list(guessers), START | {"prompt": trial.names[0], "draft": next(iter(guessers))} | dict(start or {}))
    return Panel(knobs, draw, presets=PRESETS, heights=HEIGHTS)


def _knobs(names: Sequence[str], drafts: Sequence[str], start: Mapping[str, Any]) -> dict[str, ipywidgets.ValueWidget]:
    """The knobs, where they stand first."""
    known = ("shape", "budget", "depth", "widths", "temperature", "top_k", "draft", "prompt", "text", "seed", "round")
    if unknown := sorted(set(start) - set(known)):
        raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")
    shape = choice("shape", (BY_BUDGET, BY_WIDTHS), start.get("shape", BY_BUDGET), "the best guesses of a budget, or so many children per node")
    widths = typed("widths", start.get("widths", "4,2,1,1"), "children per node at depth 0, 1, …: used with the shape 'widths per depth'", "4,2,1,1")
    sizes = {
        "budget": slider("budget", BUDGETS, start["budget"], tooltip="guesses in the tree, nodes without the root"),
        "depth": slider("depth", DEPTHS, start["depth"], tooltip="deepest guess, nodes"),
    }

    def used(_: object = None) -> None:
        widths.disabled = shape.value != BY_WIDTHS
        for knob in sizes.values():
            knob.disabled = shape.value == BY_WIDTHS

    used()
    shape.observe(used, names="value")
    return {"shape": shape, **sizes, "widths": widths} | {
        "draft": choice("draft", drafts, start["draft"], "who guesses"),
        "temperature": slider(
            "temperature", widened(TEMPERATURES, start["temperature"]), start["temperature"], tooltip="of the target's law; 0 is greedy"
        ),
        "top_k": choice("top-k", TOP_KS, start["top_k"], "tokens that the law keeps"),
        "seed": slider("seed", widened(SEEDS, start["seed"]), start["seed"], tooltip="of all noise"),
        "prompt": choice("prompt", names, start["prompt"], "held-out prompt that is continued"),
        "round": slider("round", ROUNDS, start.get("round", 1), tooltip="which round is drawn, from the end of the prompt on"),
        "text": typed(
            "own text", start.get("text", ""), "continued in place of the prompt; Tab leaves the field and draws", "in place of the prompt", lines=3
        ),
    }


def _labels(ladder: Ladder, one: Round) -> list[str]:
    return [ladder.text(token) for token in one.tree.tokens]


def _tree(ladder: Ladder, one: Round, number: int) -> Any:
    title = f"round {number}: {one.accepted} of {one.proposed} guesses accepted; on an edge, the score of its path"
    bonus = ladder.text(one.emitted[-1]) if len(one.emitted) > one.accepted else None
    return figures.tree(one.tree, labels=_labels(ladder, one), path=one.path, bonus=bonus, title=title)


def _words(ladder: Ladder, generation: Generation, number: int) -> str:
    """Expected and measured, as HTML."""
    rounds, one = generation.rounds, generation.rounds[number - 1]
    worth = [sum(each.tree.scores) for each in rounds]
    emitted = html.escape("".join(ladder.text(token) for token in one.emitted))
    tried, accepted = sum(each.tried for each in rounds), sum(each.accepted for each in rounds)
    rows = [
        ("tokens per round, expected from the scores", f"{worth[number - 1]:.2f}", f"{sum(worth) / len(worth):.2f}"),
        ("tokens per round, measured", f"{len(one.emitted)}", f"{generation.tokens_per_round:.2f}"),
        ("acceptance rate", f"{one.accepted / one.tried:.2f}" if one.tried else "–", f"{accepted / tried:.2f}" if tried else "–"),
        ("guesses", f"{one.proposed}", f"{sum(each.proposed for each in rounds) / len(rounds):.1f}"),
    ]
    head = f"<tr><th></th><th>this round</th><th>all {len(rounds)} rounds of {len(generation.tokens)} tokens</th></tr>"
    body = "".join(
        f"<tr><td style='text-align:left'>{name}</td><td style='text-align:right'>{here}</td><td style='text-align:right'>{all_}</td></tr>"
        for name, here, all_ in rows
    )
    return f"<table>{head}{body}</table>Emitted in this round: <code>{emitted}</code><br>"


def _speed(predicted: float | None, alone: float | None, machine: str) -> str:
    """What measured passes foretell, as HTML."""
    if predicted is None or alone is None:
        return f"No speed-up is predicted: {html.escape(machine)} has no stored pass times of this draft."
    times = f"<b>{predicted:.2f} times</b> plain decoding, {alone:.2f} if the host's own code took no time"
    return f"Predicted speed: {times}; by the stored pass times of {html.escape(machine)}, fast runtime."
