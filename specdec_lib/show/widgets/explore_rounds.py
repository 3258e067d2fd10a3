"""The explorer of one round, step by step: propose, score, verify, with every random number that
decides.
"""

import contextlib
import html
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.show import figures
from specdec_lib.show.steps import Step, steps_of
from specdec_lib.show.widgets.knobs import LABEL_WIDTH, choice, make_knobs, slider, text_knobs
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.trying import DraftTrial
from specdec_lib.workload import Ladder, Prompt

RULES = {"look_up": (look_up, "ranked"), "reject": (reject, "distinct")}  # with their siblings
HEIGHTS = (300, 400)  # pixels
LAST = 14  # tokens of the context that are shown
RULE = "how the target accepts: by its own choice, or by a coin per guess"
KNOBS = {
    "rule": choice(list(RULES), "look_up", RULE),
    "budget": slider(range(1, 17), 8, "guesses in the tree, nodes without the root"),
    "depth": slider(range(1, 9), 4, "deepest guess, nodes"),
}
TITLES = {
    "propose": "what the draft's guesses rest on",
    "choose": "the target's candidates: log-probability + noise = sum",
    "coin": "is this child kept?",
    "draw": "the final draw",
}


def round_steps(
    ladder: Ladder, prompts: Sequence[Prompt], *, start: Mapping[str, Any] | None = None
) -> Panel:
    """Knobs for one round over `figures.tree`, `figures.mask` and `figures.step`: a step at a time,
    forward and back.

    start    where knobs start: rule, step, budget, depth, temperature, seed, prompt, text

    Under `look_up` the draft ranks its guesses by the noise that it shares with the target; under
    `reject` it draws them without replacement.
    Raises ValueError if there is no prompt, or a knob starts where it cannot stand.
    """
    trial = DraftTrial(ladder, prompts)

    @lru_cache(64)
    def steps(**at: Any) -> list[Step]:
        chance, (rule, siblings) = trial.chance(at), RULES[at["rule"]]
        match = ladder.match("draft", chance.sampler, siblings=siblings)
        size = {"budget": at["budget"], "depth": at["depth"]}
        draft = TreeDraft(ladder.draft, siblings=siblings, match=match, **size)
        context, told = trial.context(at), {"rule": rule, "text": ladder.text}
        return steps_of(ladder.target, draft, context, chance, **told)

    def draw(step: int, **at: Any) -> Shown:
        one, last = steps(**at)[step], len(steps(**at)) - 1
        said = f"<span style='white-space:pre-wrap'>{html.escape(one.words)}</span>"
        words = f"<b>step {step} of {last}, {one.kind}:</b> {said}"
        return Shown(_pictures(ladder, one, trial.context(at).tokens), words)

    start = {"step": 0} | dict(start or {})
    first, text = start.pop("step"), text_knobs(list(trial.prompts))
    del text["top_k"]  # the steps show whole distributions
    knobs = make_knobs(KNOBS | text, start)
    return Panel(_stepper(knobs, steps, first) | knobs, draw, heights=HEIGHTS)


def _stepper(
    knobs: Mapping[str, ipywidgets.ValueWidget], steps: Callable[..., list[Step]], first: int
) -> dict[str, Any]:
    """A slider over the steps of the round that the knobs are at, and buttons back and on.  Raises
    ValueError if the round has no step `first`.
    """
    look = {"layout": ipywidgets.Layout(width="auto"), "tooltip": "of the round, from 0 on"}
    step = ipywidgets.IntSlider(description="step", continuous_update=False, min=0, **look)
    step.style.description_width = LABEL_WIDTH
    back, on = (
        ipywidgets.Button(description=label, layout=ipywidgets.Layout(width="auto"))
        for label in ("‹ previous step", "next step ›")
    )

    def fit(_: object = None) -> None:
        with contextlib.suppress(ValueError):  # the panel shows why
            step.max = len(steps(**{name: knob.value for name, knob in knobs.items()})) - 1

    def disable_ends(_: object = None) -> None:
        back.disabled, on.disabled = step.value == 0, step.value == step.max

    def go(by: int) -> None:
        step.value = min(max(step.value + by, 0), step.max)

    fit()
    if not 0 <= first <= step.max:
        raise ValueError(f"the knob 'step' must start at one of 0…{step.max}, got {first}")
    step.value = first
    disable_ends()
    for knob in knobs.values():
        knob.observe(fit, names="value")
    step.observe(disable_ends, names=["value", "max"])
    back.on_click(lambda _: go(-1))
    on.on_click(lambda _: go(1))
    return {"step": step, "previous": back, "next": on}


def _pictures(ladder: Ladder, one: Step, tokens: Sequence[int]) -> tuple[go.Figure, go.Figure]:
    """The guesses with the accepted path so far, and what decides in this step."""
    table = pd.DataFrame(list(one.numbers))
    bonus = one.numbers[-1]["text"] if one.kind == "emit" else None
    title = f"{one.tree.guesses} guesses so far, {len(one.path)} accepted"
    labels = [ladder.text(token) for token in one.tree.tokens]
    tree = figures.tree(one.tree, labels=labels, path=one.path, bonus=bonus, title=title)
    if one.kind == "score":
        return tree, figures.mask(one.tree, labels=labels)
    if one.kind not in ("context", "emit"):
        return tree, figures.step(table, title=TITLES[one.kind])
    title = f"emitted by this round: {len(table)} tokens for one pass of the target"
    if one.kind == "context":
        table = pd.DataFrame({"text": map(ladder.text, tokens[-LAST:]), "source": "context"})
        title = f"the end of the {len(tokens)} tokens so far"
    table = table.rename(columns={"token": "number", "text": "token"}).assign(round=0)
    return tree, figures.origins(table, title=title)
