"""One round, step by step: propose, score, verify, with every random number that decides."""

import html
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.show import figures
from specdec_lib.show.steps import Step, steps_of
from specdec_lib.show.widgets.knobs import check_names, choice, look, of_text, slider
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.trying import Trial
from specdec_lib.workload import Ladder, Prompt

RULES = {"look_up": look_up, "reject": reject}
SIBLINGS = {"look_up": "ranked", "reject": "distinct"}
BUDGETS, DEPTHS = range(1, 17), range(1, 9)
HEIGHTS = (300, 400)  # pixels
LAST = 14  # tokens of the context that are shown
START = {
    "rule": "look_up",
    "budget": 8,
    "depth": 4,
    "temperature": 0.7,
    "seed": 0,
    "text": "",
    "step": 0,
}


def round_steps(
    ladder: Ladder, prompts: Sequence[Prompt], *, start: Mapping[str, Any] | None = None
) -> Panel:
    """Knobs for one round over `figures.tree`, `figures.mask` and `figures.step`: a step at a time,
    forward and back.

    start    where knobs stand first: rule, step, budget, depth, temperature, seed, prompt, text

    Under `look_up` the draft ranks its guesses by the noise that it shares with the target; under
    `reject` it draws them without replacement.
    Raises ValueError if there is no prompt, or a knob starts where it cannot stand.
    """
    trial = Trial(ladder, prompts, max_new_tokens=max(DEPTHS) + 1)
    knobs = _knobs(trial.names, START | {"prompt": trial.names[0]} | dict(start or {}))

    told = lru_cache(64)(partial(_told, ladder, trial))

    def draw(step: int, **at: Any) -> Shown:
        steps, context = told(**at), trial.context(at["prompt"], at["text"])
        one = steps[step]
        words = f"<b>step {step} of {len(steps) - 1}, {one.kind}:</b> <span style='white-space:pre-wrap'>{html.escape(one.words)}</span>"
        return Shown((_tree(ladder, one), _numbers(ladder, one, context.tokens)), words)

    _join(knobs, told, (start or {}).get("step", START["step"]))
    return Panel(knobs, draw, heights=HEIGHTS)


def _told(
    ladder: Ladder,
    trial: Trial,
    *,
    rule: str,
    budget: int,
    depth: int,
    temperature: float,
    seed: int,
    prompt: str,
    text: str,
) -> list[Step]:
    """The steps of the round that the knobs ask for."""
    chance = Chance(seed, Sampler(temperature))
    match = ladder.match("draft", chance.sampler, siblings=SIBLINGS[rule])
    draft = TreeDraft(
        ladder.draft, budget=budget, depth=depth, siblings=SIBLINGS[rule], match=match
    )
    return steps_of(
        ladder.target,
        draft,
        trial.context(prompt, text),
        chance,
        rule=RULES[rule],
        text=ladder.text,
    )


def _join(
    knobs: Mapping[str, ipywidgets.ValueWidget | ipywidgets.Button],
    told: Callable[..., list[Step]],
    first: int,
) -> None:
    """Let the step knob reach as far as the round that the others ask for has steps, and begin at
    one.  Raises ValueError if it cannot.
    """
    step, asking = (
        knobs["step"],
        {name: knob for name, knob in knobs.items() if name not in ("step", "previous", "next")},
    )

    def fit(_: object = None) -> None:
        try:
            step.max = len(told(**{name: knob.value for name, knob in asking.items()})) - 1
        except ValueError:  # the panel says it
            return

    def show_ends(_: object = None) -> None:
        knobs["previous"].disabled, knobs["next"].disabled = step.value == 0, step.value == step.max

    fit()
    if not 0 <= first <= step.max:
        raise ValueError(f"the knob 'step' must start at one of 0…{step.max}, got {first}")
    step.value = first
    show_ends()
    for knob in asking.values():
        knob.observe(fit, names="value")
    step.observe(show_ends, names=["value", "max"])


def _knobs(
    names: Sequence[str], start: Mapping[str, Any]
) -> dict[str, ipywidgets.ValueWidget | ipywidgets.Button]:
    check_names(start, (*START, "prompt"))
    step = ipywidgets.IntSlider(
        value=0,
        min=0,
        max=100,
        description="step",
        continuous_update=False,
        **look("step", "of the round, from 0 on"),
    )
    back, on = (
        ipywidgets.Button(description=name, tooltip=tip, layout=ipywidgets.Layout(width="auto"))
        for name, tip in _MOVES.items()
    )
    back.on_click(lambda _: setattr(step, "value", max(step.min, step.value - 1)))
    on.on_click(lambda _: setattr(step, "value", min(step.max, step.value + 1)))
    return {"step": step, "previous": back, "next": on} | {
        "rule": choice(
            "rule",
            list(RULES),
            start["rule"],
            "how the target accepts: its own choice looked up, or guesses tested by a coin",
        ),
        "budget": slider(
            "budget",
            BUDGETS,
            start["budget"],
            tooltip="guesses in the tree, nodes without the root",
        ),
        "depth": slider("depth", DEPTHS, start["depth"], tooltip="deepest guess, nodes"),
        **of_text(names, start, law="of both laws", noise="of all noise, coins and draws"),
    }


_MOVES = {"‹ previous step": "one step back", "next step ›": "one step on"}


def _tree(ladder: Ladder, one: Step) -> go.Figure:
    """The guesses and the accepted path so far."""
    bonus = one.numbers[-1]["text"] if one.kind == "emit" else None
    title = f"{one.tree.guesses} guesses so far, {len(one.path)} accepted"
    return figures.tree(
        one.tree,
        labels=[ladder.text(token) for token in one.tree.tokens],
        path=one.path,
        bonus=bonus,
        title=title,
    )


def _numbers(ladder: Ladder, one: Step, tokens: Sequence[int]) -> go.Figure:
    """What decides in this step."""
    if one.kind == "score":
        return figures.mask(one.tree, labels=[ladder.text(token) for token in one.tree.tokens])
    if one.kind == "context":
        table = pd.DataFrame(
            {
                "token": [ladder.text(token) for token in tokens[-LAST:]],
                "source": "context",
                "round": 0,
            }
        )
        return figures.origins(table).update_layout(
            title={"text": f"the end of the {len(tokens)} tokens so far"}
        )
    table = pd.DataFrame(list(one.numbers))
    if one.kind == "emit":
        emitted = figures.origins(
            table.rename(columns={"text": "token", "token": "number"}).assign(round=1)
        )
        return emitted.update_layout(
            title={"text": f"emitted by this round: {len(table)} tokens for one pass of the target"}
        )
    return figures.step(table, title=TITLES[one.kind])


TITLES = {
    "propose": "what the draft's guesses rest on",
    "choose": "the target's candidates: log-probability + noise = sum",
    "coin": "is this child kept?",
    "draw": "the final draw",
}
