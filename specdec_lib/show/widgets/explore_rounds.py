"""The explorer of one round, step by step, with every random number that decides."""

import html
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.protocols import Draft
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.show import figures
from specdec_lib.show.steps import Step, steps_of
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import LATE, Values, choice, push_button, slider, text_knobs
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.trying import DraftTrial
from specdec_lib.workload import Ladder, Prompt

RULES = {"look_up": (look_up, "ranked"), "reject": (reject, "distinct")}  # with their siblings
RULE = "how the target accepts: by its own choice, or by a coin per guess"


def round_steps(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    *,
    draft: Draft | None = None,
    start: Values | None = None,
) -> Panel:
    """Knobs for one round over `figures.tree`, `figures.mask` and `figures.step`: a step at a time,
    forward and back.

    draft    any draft, of your own too; without it, a tree of the ladder's draft model with knobs
             for its budget and depth
    start    where some of the knobs start

    Under `look_up` the ladder's draft ranks its guesses by the noise that it shares with the
    target; under `reject` it draws them without replacement.
    """
    trial = DraftTrial(ladder, prompts)
    steps = lru_cache(64)(partial(_steps, trial, draft))  # read again, models may round otherwise

    def draw(step: int, **at: Any) -> Shown:
        found = steps(**at)
        one = found[step]
        said = f"<span style='white-space:pre-wrap'>{html.escape(one.words)}</span>"
        words = f"<b>step {step} of {len(found) - 1}, {one.kind}:</b> {said}"
        return Shown(_pictures(ladder, one), words)

    def fit(made: Mapping[str, Any]) -> None:
        """A slider over the steps of the round that the knobs are at, and buttons back and on."""
        step, back, on = (made[name] for name in ("step", "previous", "next"))
        step.max = len(steps(**{name: made[name].value for name in whole})) - 1
        back.disabled = step.value == 0
        on.disabled = step.value == step.max

    def go_on(by: int) -> None:
        panel.knobs["step"].value += by

    whole = _round_knobs(trial, sized=draft is None)
    stepper = {
        "step": ipywidgets.IntSlider(tooltip="of the round, from 0 on", **LATE),
        "previous": push_button("‹ previous step", partial(go_on, -1)),
        "next": push_button("next step ›", partial(go_on, 1)),
    }
    bookmark = Bookmark()  # no notebook has a draft of one's own
    if draft is None:
        bookmark = Bookmark(
            "00_one_round",
            named=("budget", "depth", "temperature", "seed"),
            more=trial.number_of,
            always=("step",),  # how many there are hangs on the round
        )
    panel = Panel(
        stepper | whole, draw, start=start, fit=fit, bookmark=bookmark, heights=(340, 520)
    )
    return panel


def _round_knobs(trial: DraftTrial, *, sized: bool) -> dict[str, ipywidgets.DOMWidget]:
    """The knobs of a round, if it is sized with those of its tree."""
    found: dict[str, ipywidgets.DOMWidget] = {"rule": choice(RULES, RULE)}
    if sized:
        found["budget"] = slider(range(1, 17), 8, "guesses in the tree, nodes without the root")
        found["depth"] = slider(range(1, 9), 4, "deepest guess, nodes")
    found |= text_knobs(trial.prompts)
    del found["top_k"]  # the steps show whole distributions
    return found


def _steps(trial: DraftTrial, draft: Draft | None, **at: Any) -> list[Step]:
    """The steps of the round after the text that the knobs are at."""
    ladder = trial.ladder
    context, chance = trial.read(at)
    rule, siblings = RULES[at["rule"]]
    if draft is None:
        draft = TreeDraft(
            ladder.draft,
            budget=at["budget"],
            depth=at["depth"],
            siblings=siblings,
            match=ladder.match("draft", chance.sampler, siblings=siblings),
        )
    return steps_of(ladder.target, draft, context, chance, rule=rule, text=ladder.text)


def _pictures(ladder: Ladder, one: Step) -> tuple[go.Figure, go.Figure]:
    """The guesses with the accepted path so far, and what decides in this step."""
    table = pd.DataFrame(list(one.numbers))
    bonus = str(one.numbers[-1]["text"]) if one.kind == "emit" else None
    title = f"{one.tree.guesses} guesses so far, {len(one.path)} accepted"
    labels = [ladder.text(token) for token in one.tree.tokens]
    tree = figures.tree(one.tree, labels=labels, path=one.path, bonus=bonus, title=title)
    if one.kind == "score":
        return tree, figures.mask(one.tree, labels=labels)
    if one.kind not in ("context", "emit"):
        return tree, figures.step(table, title=f"{one.kind}: the numbers that decide")
    title = "the end of the text so far"
    if one.kind == "emit":
        title = f"emitted by this round: {len(table)} tokens for one pass of the target"
    table = table[["text", "source"]].rename(columns={"text": "token"}).assign(round=0)
    return tree, figures.origins(table, title=title)
