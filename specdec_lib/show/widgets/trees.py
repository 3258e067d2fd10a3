"""Which tree, on which text: drawn with its scores, the accepted path and its mask, and what it is
expected, measured and predicted to bring.
"""

import html
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import ipywidgets

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, Round
from specdec_lib.measure.replay import work_of
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import check_names, choice, of_text, slider, typed
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.trying import (
    HOSTS,
    REMEMBERED,
    Guesser,
    Machine,
    Plan,
    Trial,
    guessers_of,
)
from specdec_lib.theory import Work
from specdec_lib.workload import Ladder, Prompt

BUDGETS, DEPTHS, ROUNDS = range(1, 33), range(1, 13), range(1, 11)
MOST = 64  # guesses that are drawn
HEIGHTS = (430, 480)  # pixels
BY_BUDGET, BY_WIDTHS = "budget", "widths per depth"
SIZES = {"shape": BY_BUDGET, "budget": 16, "depth": 6, "widths": "4,2,1,1"}
START = SIZES | {"temperature": 0.7, "top_k": 50, "seed": 0, "round": 1, "text": ""}
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
    guessers: Mapping[str, Guesser] | None = None,
    machine: Machine | None = None,
    max_new_tokens: int = 32,
) -> Panel:
    """Knobs for a tree and its text over `figures.tree` and `figures.mask`.

    ladder            on the fast runtime a change shows in a fraction of a second
    start             where knobs stand first: shape, budget, depth, widths, temperature, top_k,
                      draft, prompt, text, seed, round
    guessers          drafts by name: the ladder, a plan and a sampler in, a draft out; None takes
                      those that the ladder has the parts for
    machine           whose measured passes the predicted speed-up is of; None takes the stored
                      measurement. Other models have no prediction
    max_new_tokens    that are decoded for what is measured

    Raises ValueError if there is no prompt, or a knob starts where it cannot stand.
    """
    trial = Trial(ladder, prompts, max_new_tokens)
    guessers = guessers_of(ladder) if guessers is None else guessers
    machine = (Machine.stored() if machine is None else machine).of(ladder)

    @lru_cache(REMEMBERED)
    def played(
        plan: Plan, sampler: Sampler, draft: str, prompt: str, text: str, seed: int
    ) -> tuple[Generation, str | None]:
        one = guessers[draft](ladder, plan, sampler)
        return trial.generation(one, trial.context(prompt, text), Chance(seed, sampler)), HOSTS.get(
            type(one)
        )

    def draw(**at: Any) -> Shown:
        sampler = Sampler(at["temperature"], top_k=at["top_k"])
        generation, kind = played(
            _plan(at), sampler, at["draft"], at["prompt"], at["text"], at["seed"]
        )
        if at["round"] > len(generation.rounds):
            raise ValueError(
                f"this text has {len(generation.rounds)} rounds, there is no round {at['round']}"
            )
        one = generation.rounds[at["round"] - 1]
        words = _words(ladder, generation, at["round"]) + _speed(
            machine, work_of(generation, ladder.target.name), at["temperature"], kind
        )
        return Shown(
            (_tree(ladder, one, at["round"]), figures.mask(one.tree, labels=_labels(ladder, one))),
            words,
        )

    knobs = _knobs(
        trial.names,
        list(guessers),
        START | {"prompt": trial.names[0], "draft": next(iter(guessers))} | dict(start or {}),
    )
    return Panel(knobs, draw, presets=PRESETS, heights=HEIGHTS)


def _plan(at: Mapping[str, Any]) -> Plan:
    plan = Plan.of(
        at["budget"], at["depth"], at["widths"] if at["shape"] == BY_WIDTHS else "", most=MOST
    )
    if at["shape"] == BY_WIDTHS and plan.widths is None:
        raise ValueError("widths are whole numbers, one per depth, such as 4,2,1,1; got none")
    return plan


def _knobs(
    names: Sequence[str], drafts: Sequence[str], start: Mapping[str, Any]
) -> dict[str, ipywidgets.ValueWidget]:
    """The knobs, where they stand first."""
    check_names(start, (*START, "prompt", "draft"))
    shape = choice(
        "shape",
        (BY_BUDGET, BY_WIDTHS),
        start["shape"],
        "the best guesses of a budget, or so many children per node",
    )
    widths = typed(
        "widths",
        start["widths"],
        "children per node at depth 0, 1, …: used with the shape 'widths per depth'",
        "4,2,1,1",
    )
    sizes = {
        "budget": slider(
            "budget",
            BUDGETS,
            start["budget"],
            tooltip="guesses in the tree, nodes without the root",
        ),
        "depth": slider("depth", DEPTHS, start["depth"], tooltip="deepest guess, nodes"),
    }

    def used(_: object = None) -> None:
        widths.disabled = shape.value != BY_WIDTHS
        for knob in sizes.values():
            knob.disabled = shape.value == BY_WIDTHS

    used()
    shape.observe(used, names="value")
    which = slider(
        "round",
        ROUNDS,
        start["round"],
        tooltip="which round is drawn, from the end of the prompt on",
    )
    own = of_text(names, start)
    last = own.pop("text")
    found = {
        "shape": shape,
        **sizes,
        "widths": widths,
        "draft": choice("draft", drafts, start["draft"], "who guesses"),
    }
    return found | own | {"round": which, "text": last}


def _labels(ladder: Ladder, one: Round) -> list[str]:
    return [ladder.text(token) for token in one.tree.tokens]


def _tree(ladder: Ladder, one: Round, number: int) -> Any:
    title = f"round {number}: {one.accepted} of {one.proposed} guesses accepted; on an edge, the score of its path"
    bonus = ladder.text(one.emitted[-1]) if len(one.emitted) > one.accepted else None
    return figures.tree(
        one.tree, labels=_labels(ladder, one), path=one.path, bonus=bonus, title=title
    )


def _words(ladder: Ladder, generation: Generation, number: int) -> str:
    """Expected and measured, as HTML."""
    rounds, one = generation.rounds, generation.rounds[number - 1]
    worth = [sum(each.tree.scores) for each in rounds]
    emitted = html.escape("".join(ladder.text(token) for token in one.emitted))
    tried, accepted = sum(each.tried for each in rounds), sum(each.accepted for each in rounds)
    rows = [
        (
            "tokens per round, expected from the scores",
            f"{worth[number - 1]:.2f}",
            f"{sum(worth) / len(worth):.2f}",
        ),
        ("tokens per round, measured", f"{len(one.emitted)}", f"{generation.tokens_per_round:.2f}"),
        (
            "acceptance rate",
            f"{one.accepted / one.tried:.2f}" if one.tried else "–",
            f"{accepted / tried:.2f}" if tried else "–",
        ),
        (
            "guesses",
            f"{one.proposed}",
            f"{sum(each.proposed for each in rounds) / len(rounds):.1f}",
        ),
    ]
    head = f"<tr><th></th><th>this round</th><th style='padding-left:2em'>all {len(rounds)} rounds of {len(generation.tokens)} tokens</th></tr>"
    body = "".join(
        f"<tr><td style='text-align:left'>{name}</td><td style='text-align:right'>{here}</td><td"
        f" style='text-align:right'>{all_}</td></tr>"
        for name, here, all_ in rows
    )
    return f"<table>{head}{body}</table>Emitted in this round: <code>{emitted}</code><br>"


def _speed(machine: Machine, work: Work, temperature: float, kind: str | None) -> str:
    """What measured passes foretell, as HTML; with the host's seconds where they were fitted for
    this kind of draft.
    """
    name, alone = html.escape(machine.name), machine.speed_up(work, temperature, kind=None)
    if alone is None:
        return f"No speed-up is predicted: no pass times of these models are stored for {name}."
    passes = f"by the stored pass times of {name}, fast runtime"
    predicted = None if kind is None else machine.speed_up(work, temperature, kind=kind)
    if predicted is None:
        return f"Predicted speed: <b>{alone:.2f} times</b> plain decoding, passes alone: the host's own time was not measured for such drafts; {passes}."
    times = f"<b>{predicted:.2f} times</b> plain decoding, {alone:.2f} if the host's own code took no time in either"
    return f"Predicted speed: {times}; {passes}, and its host's, measured without top-k."
